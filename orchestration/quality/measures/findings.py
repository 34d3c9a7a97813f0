"""Outcomes of measures: the offenders by name, or why nothing could be checked."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestration.quality.formatting import shorten, text
from orchestration.quality.outcome import Outcome

NAMED = 5
"""Offenders that are named; how many more there are is counted."""
KEYS = ("device_id", "group_name", "metric", "rule", "entity", "feature", "bronze_batch")
"""Columns of an offender that are shown beside its description."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = Mapping[str, Any]


def outcome_of(offenders: Sequence[Row], describe: Callable[[Row], str], passed: str) -> Outcome:
    """Failed with the first offenders described; without offenders passed, with the text `passed`."""
    if not offenders:
        return Outcome(True, passed)
    more = f"; and {len(offenders) - NAMED:,} more" if len(offenders) > NAMED else ""
    # The name of a device may be very long.
    samples = tuple({"what": shorten(describe(row))} | {name: text(row[name]) for name in KEYS if name in row} for row in offenders[:NAMED])
    return Outcome(False, "; ".join(sample["what"] for sample in samples) + more, samples=samples)


def not_checked(reason: str) -> Outcome:
    """No verdict, because data is missing."""
    return Outcome(None, f"not checked: {reason}")


def share(part: float) -> str:
    """0 to 1, for people."""
    return f"{100 * part:.3g} %"


def hour(number: int) -> str:
    """Hours since 1970, as a time in UTC."""
    return f"{EPOCH + timedelta(hours=number):%Y-%m-%d %H:00Z}"


def span(seconds: float) -> str:
    """A duration in the largest unit that it fills."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"
