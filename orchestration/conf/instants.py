"""Formats of event times: which one reads the values of a field."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

Scalar = str | int | float | bool

ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d(?::?\d\d)?)?")
EPOCH_UNITS = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000}
EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""2000 to 2100, in seconds: a number outside is taken for no time."""
PATTERNS = {
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyy/MM/dd HH:mm:ss": "%Y/%m/%d %H:%M:%S",
    "yyyy/MM/dd HH:mm": "%Y/%m/%d %H:%M",
    "dd.MM.yyyy HH:mm:ss": "%d.%m.%Y %H:%M:%S",
    "dd.MM.yyyy HH:mm": "%d.%m.%Y %H:%M",
    "dd/MM/yyyy HH:mm:ss": "%d/%m/%Y %H:%M:%S",
    "dd/MM/yyyy HH:mm": "%d/%m/%Y %H:%M",
    "MM/dd/yyyy HH:mm:ss": "%m/%d/%Y %H:%M:%S",
    "MM/dd/yyyy HH:mm": "%m/%d/%Y %H:%M",
    "MM/dd/yyyy hh:mm:ss a": "%m/%d/%Y %I:%M:%S %p",
    "dd-MM-yyyy HH:mm:ss": "%d-%m-%Y %H:%M:%S",
    "dd-MM-yyyy HH:mm": "%d-%m-%Y %H:%M",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyyMMdd'T'HHmmss": "%Y%m%dT%H%M%S",
    "yyyy-MM-dd": "%Y-%m-%d",
}
"""Spark's pattern, and the same for Python. Where day and month can be either, the day comes first."""


@dataclass(frozen=True)
class TimeFormat:
    """`names_zone`: every value says which zone it is in. `is_ambiguous`: day and month could change places."""

    format: str
    names_zone: bool
    is_ambiguous: bool = False


def time_format_of(values: Sequence[Scalar]) -> TimeFormat | None:
    """The format that reads at least 19 of 20 values; None where there is none."""
    texts = [str(value).strip() for value in values]
    matches = [match for text in texts if (match := ISO.fullmatch(text))]
    if matches and _is_most(len(matches), texts):
        return TimeFormat("iso", all(match.group(1) for match in matches))
    for name in EPOCH_UNITS:
        if _is_most(sum(_epoch_second(text, name) is not None for text in texts), texts):
            return TimeFormat(name, names_zone=True)
    thinned = texts[:: max(1, len(texts) // 100)]  # parsing dates is slow, and most fields are none
    possible = [name for name in PATTERNS if _is_most(_readable(thinned, name), thinned)]
    counts = {name: _readable(texts, name) for name in possible}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None:
        return None
    swapped = best.replace("dd", "..").replace("MM", "dd").replace("..", "MM")
    return TimeFormat(_spark_pattern(best, texts), False, is_ambiguous=counts.get(swapped) == counts[best])


def _readable(texts: Sequence[str], pattern: str) -> int:
    return sum(_parsed(text, pattern) is not None for text in texts)


def seconds_of(value: Scalar, format: str) -> float | None:
    """Seconds since 1970 for the length of intervals: a text that names no zone counts as UTC. None where it cannot be read."""
    text = str(value).strip()
    if format in EPOCH_UNITS:
        return _epoch_second(text, format)
    if format == "iso":
        parsed = _parsed_iso(text) if ISO.fullmatch(text) else None
    else:
        parsed = next((time for name in PATTERNS if _loose(name) == _loose(format) and (time := _parsed(text, name))), None)
    return parsed.timestamp() if parsed else None


def _parsed_iso(text: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _is_most(count: int, texts: Sequence[str]) -> bool:
    return bool(texts) and count >= 0.95 * len(texts)


def _epoch_second(text: str, unit: str) -> float | None:
    try:
        second = float(text) / EPOCH_UNITS[unit]
    except ValueError:
        return None
    return second if EARLIEST <= second < LATEST else None


def _parsed(text: str, pattern: str) -> datetime | None:
    if "yyyyMM" in pattern and len(text) != len(pattern.replace("'", "")):
        return None  # without separators Python would cut any number of ten digits into a date
    try:
        return datetime.strptime(text, PATTERNS[pattern]).replace(tzinfo=UTC)
    except ValueError:
        return None


def _spark_pattern(pattern: str, texts: Sequence[str]) -> str:
    """Spark wants two digits for `dd`, but takes one or two for `d`."""
    width = len(pattern.replace("'", "")) + pattern.endswith("a")
    return pattern if all(len(text) == width for text in texts) else _loose(pattern)


def _loose(pattern: str) -> str:
    return pattern.replace("dd", "d").replace("MM", "M").replace("HH", "H").replace("hh", "h")
