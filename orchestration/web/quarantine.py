"""The view of quarantine: rows by rule and source; for one rule the newest rows with their payloads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.audit.quarantine import counted, shown
from orchestration.engine.lake import Lake
from orchestration.rendering import short
from orchestration.web.queries import ViewRequest

MOST = 20
LONGEST_PAYLOAD = 4000


@dataclass(frozen=True)
class Quarantine:
    """`counts`: a row a rule and source, COUNTED. `rule`: whose rows are shown, the newest first; the most frequent by default."""

    at: datetime
    counts: Sequence[dict[str, Any]]
    rule: str | None
    rows: Sequence[dict[str, Any]]


def shown_quarantine(request: ViewRequest) -> Quarantine:
    """`rule`: one that rows break; else the first."""
    lake, rule = Lake(request.conf), request.params.get("rule", "")
    counts = counted(lake)
    rules = [row["rule"] for row in counts]
    chosen = rule if rule in rules else next(iter(rules), None)
    rows = shown(lake, chosen, None, MOST) if chosen else []
    return Quarantine(request.now, counts, chosen, [row | {"payload": short(row["payload"], LONGEST_PAYLOAD)} for row in rows])
