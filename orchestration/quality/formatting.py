"""Formats results of Great Expectations as text."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from orchestration.quality.outcome import Outcome

LONGEST = 500
SHORTENED = "… ({:,} characters)"
KEYS = ("bronze_batch", "bronze_row", "device_id", "metric", "entity", "window_start", "window_end")
"""Columns that lead from a row to its event, in tables that have them."""


def describe(answer: Mapping[str, Any], count: int, sample: Sequence[str] = ()) -> Outcome:
    """The outcome of one result on a table of `count` rows.

    `sample`: key columns to show of a row that fails; empty: all.
    """
    if error := error_of(answer):
        return Outcome(False, f"could not be evaluated: {shorten(error)}")
    details = answer.get("result") or {}
    if "observed_value" in details:
        return Outcome(answer["success"], text(details["observed_value"]))
    unexpected = details.get("unexpected_count", 0)
    of_rows = f"{unexpected:,}" if unexpected else "none"
    rows = details.get("partial_unexpected_index_list") or [{"value": value} for value in details.get("partial_unexpected_list", [])]
    samples = tuple(
        {column: text(value) for column, value in row.items() if not sample or column in sample or column not in KEYS} for row in rows
    )
    keys = tuple({column: row[column] for column in KEYS if column in row} for row in rows)
    return Outcome(answer["success"], f"{of_rows} of {count:,} rows", details.get("unexpected_percent", 0.0), samples, keys)


def error_of(answer: Mapping[str, Any]) -> str:
    """Why an expectation could not be evaluated, in one line; empty where it could."""
    info = answer.get("exception_info") or {}
    # One that fails in common with others is keyed by the metric that failed.
    raised = [info] if "raised_exception" in info else list(info.values())
    messages = [error["exception_message"] for error in raised if error.get("raised_exception")]
    return next((line for message in messages for line in str(message).splitlines() if line.strip()), "")


def shorten(text: str) -> str:
    """The text, or the start of a long one with its full length. Shortening twice changes nothing."""
    return text if len(text) <= LONGEST + len(SHORTENED) + 20 else text[:LONGEST] + SHORTENED.format(len(text))


def text(value: Any) -> str:
    """A value for people, shortened; times in UTC."""
    match value:
        case datetime():
            formatted = value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ") + "Z"
        case float() if math.isfinite(value):
            formatted = f"{value:,.10g}"
        case None:
            formatted = "null"
        case bool() | str() | date() | float():
            formatted = str(value)
        case int():
            formatted = f"{value:,}"
        case bytes() | bytearray():
            formatted = bytes(value).decode("utf-8", "backslashreplace")
        case Sequence():
            formatted = f"[{', '.join(map(text, value))}]"
        case _:
            formatted = str(value)
    return shorten(formatted)
