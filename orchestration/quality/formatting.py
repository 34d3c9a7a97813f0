"""Results of Great Expectations in words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from orchestration.quality.outcome import Outcome

LONGEST = 500
CUT = "… ({:,} characters)"
KEYS = ("bronze_batch", "bronze_row", "device_id", "metric", "entity", "window_start", "window_end")
"""Columns that lead from a row to its event, in tables that have them."""


def told(answer: Mapping[str, Any], count: int, sample: Sequence[str] = ()) -> Outcome:
    """What one result says about a table of `count` rows.

    `sample`: of its keys only these are shown of a row that fails; empty: all.
    """
    if error := error_of(answer):
        return Outcome(False, f"could not be evaluated: {cut(error)}")
    found = answer.get("result") or {}
    if "observed_value" in found:
        return Outcome(answer["success"], text(found["observed_value"]))
    unexpected = found.get("unexpected_count", 0)
    of_rows = f"{unexpected:,}" if unexpected else "none"
    rows = found.get("partial_unexpected_index_list") or [{"value": value} for value in found.get("partial_unexpected_list", [])]
    samples = tuple(dict(_sample(row, sample)) for row in rows)
    keys = tuple({column: row[column] for column in KEYS if column in row} for row in rows)
    return Outcome(answer["success"], f"{of_rows} of {count:,} rows", found.get("unexpected_percent", 0.0), samples, keys)


def error_of(answer: Mapping[str, Any]) -> str:
    """Why an expectation could not be evaluated, in one line; empty where it could."""
    info = answer.get("exception_info") or {}
    # One that fails in common with others is keyed by the metric that failed.
    raised = [info] if "raised_exception" in info else list(info.values())
    messages = [each["exception_message"] for each in raised if each.get("raised_exception")]
    return next((line for message in messages for line in str(message).splitlines() if line.strip()), "")


def cut(text: str) -> str:
    """A text that fits: the end of a long one is given up. One that was cut is not cut again, and says how long it was at first."""
    return text if len(text) <= LONGEST + len(CUT) + 20 else text[:LONGEST] + CUT.format(len(text))


def text(value: Any) -> str:
    """A value for people, cut where it is long; instants in UTC."""
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
    return cut(shown)


def _sample(row: Mapping[str, Any], sample: Sequence[str]) -> Iterator[tuple[str, str]]:
    for column, value in row.items():
        if not sample or column in sample or column not in KEYS:
            yield column, text(value)
