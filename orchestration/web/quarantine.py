"""What the view of quarantine shows: rows by rule and source, and of one rule the newest with their payloads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.audit.quarantine import counted, shown
from orchestration.engine.lake import Lake
from orchestration.rendering import short
from orchestration.web.queries import Look

MOST = 20
LONGEST_PAYLOAD = 4000


@dataclass(frozen=True)
class Quarantine:
    """`counts`: a row a rule and source, COUNTED. `rule`: whose rows are shown, the newest first; the most frequent by default."""

    at: datetime
    counts: Sequence[dict[str, Any]]
    rule: str | None
    rows: Sequence[dict[str, Any]]


def shown_quarantine(look: Look) -> Quarantine:
    """`rule`: one that rows break; else the first."""
    lake, rule = Lake(look.conf), look.asked.get("rule", "")
    counts = counted(lake)
    rules = [row["rule"] for row in counts]
    chosen = rule if rule in rules else next(iter(rules), None)
    rows = shown(lake, chosen, None, MOST) if chosen else []
    return Quarantine(look.now, counts, chosen, [row | {"payload": short(row["payload"], LONGEST_PAYLOAD)} for row in rows])
