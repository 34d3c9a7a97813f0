"""Results of Great Expectations in words."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from orchestration.quality.outcome import Outcome


def told(answer: Mapping[str, Any], count: int) -> Outcome:
    """What one result says about a table of `count` rows."""
    if error := error_of(answer):
        return Outcome(False, f"could not be evaluated: {error}")
    found = answer.get("result") or {}
    if "observed_value" in found:
        return Outcome(answer["success"], text(found["observed_value"]))
    unexpected = found.get("unexpected_count", 0)
    of_rows = f"{unexpected:,}" if unexpected else "none"
    return Outcome(answer["success"], f"{of_rows} of {count:,} rows", found.get("unexpected_percent", 0.0), _samples(found))


def error_of(answer: Mapping[str, Any]) -> str:
    """Why an expectation could not be evaluated, in one line; empty where it could."""
    info = answer.get("exception_info") or {}
    # One that fails in common with others is keyed by the metric that failed.
    raised = [info] if "raised_exception" in info else list(info.values())
    messages = [each["exception_message"] for each in raised if each.get("raised_exception")]
    return next((line for message in messages for line in str(message).splitlines() if line.strip()), "")


def text(value: Any) -> str:
    """A value for people; instants in UTC, which Spark hands over naive and in the zone of this machine."""
    match value:
        case datetime():
            shown = value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ") + "Z"
        case float() if math.isfinite(value):
            shown = f"{value:,.10g}"
        case None:
            shown = "null"
        case bool() | str() | date() | float():
            shown = str(value)
        case int():
            shown = f"{value:,}"
        case bytes() | bytearray():
            shown = bytes(value).decode("utf-8", "backslashreplace")
        case Sequence():
            shown = f"[{', '.join(map(text, value))}]"
        case _:
            shown = str(value)
    return shown


def _samples(found: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
    """Rows where the suite says what to show of them, else values."""
    rows = found.get("partial_unexpected_index_list") or [{"value": value} for value in found.get("partial_unexpected_list", [])]
    return tuple({column: text(value) for column, value in row.items()} for row in rows)
