"""The view of quarantine: rows by rule and source; for one rule the newest rows with their payloads."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.audit.quarantine import counted, counted_by_file, shown
from orchestration.engine.lake import Lake
from orchestration.rendering import short
from orchestration.web.queries import ViewRequest

MOST, MOST_EXPLAINED, MOST_FILES = 20, 100, 50
SINGLE = re.compile(r",? found .*|(?<![\w.-])-?\d[\d.,:TZ+-]*(?: \d[\d.:+Z-]*)*(?![\w-])")
"""The part of a reason that is about a single row: an excerpt, a number, an instant; not a part of a name."""
LONGEST_PAYLOAD = 4000


@dataclass(frozen=True)
class Quarantine:
    """`counts`: a row a rule and source, COUNTED. `rule`: whose rows are shown, the newest first; the most frequent by default.

    `files`: where they came from, those with the most first; `reasons`: those of the newest MOST_EXPLAINED rows,
    without what is of one row alone.
    """

    at: datetime
    counts: Sequence[dict[str, Any]]
    rule: str | None
    rows: Sequence[dict[str, Any]]
    files: Sequence[dict[str, Any]] = ()
    reasons: Sequence[tuple[str, int]] = ()


def shown_quarantine(request: ViewRequest) -> Quarantine:
    """`rule`: one that rows break; else the first."""
    lake, rule = Lake(request.conf), request.params.get("rule", "")
    counts = counted(lake)
    rules = [row["rule"] for row in counts]
    chosen = rule if rule in rules else next(iter(rules), None)
    explained = shown(lake, chosen, None, MOST_EXPLAINED) if chosen else []
    rows = [row | {"payload": short(row["payload"], LONGEST_PAYLOAD)} for row in explained[:MOST]]
    files = counted_by_file(lake, chosen, MOST_FILES) if chosen else []
    reasons = Counter(SINGLE.sub("…", row["reason"]) for row in explained if row["reason"])
    return Quarantine(request.now, counts, chosen, rows, files, reasons.most_common())
