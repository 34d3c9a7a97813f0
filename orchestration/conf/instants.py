"""Formats of event times: which one reads the values of a field."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

Scalar = str | int | float | bool

ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d(?::?\d\d)?)?")
EPOCH_UNITS = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000, "epoch_ns": 1_000_000_000}
EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""2000 to 2100, in seconds: a number outside is taken for no time."""
PYTHON = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S", "a": "%p", "'T'": "T"}
"""What Python has for the letters of a pattern of Spark."""
DATES = ("yyyy-MM-dd", "yyyy/MM/dd", "dd.MM.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "dd-MM-yyyy")
"""Where day and month can be either, the day comes first."""
PATTERNS = {
    pattern: re.sub("|".join(PYTHON), lambda letters: PYTHON[str(letters[0])], pattern)
    for pattern in (
        *(f"{date} {time}" for date in DATES for time in ("HH:mm:ss", "HH:mm")),
        *("MM/dd/yyyy hh:mm:ss a", "yyyyMMddHHmmss", "yyyyMMdd'T'HHmmss", "yyyy-MM-dd"),
    )
}
"""Spark's pattern, and the same for Python."""


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
        if _is_most(_readable(texts, name), texts):
            return TimeFormat(name, names_zone=True)
    thinned = texts[:: max(1, len(texts) // 100)]  # parsing dates is slow, and most fields are none
    counts = {name: _readable(texts, name) for name in PATTERNS if _is_most(_readable(thinned, name), thinned)}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None:
        return None
    swapped = best.replace("dd", "..").replace("MM", "dd").replace("..", "MM")
    # Spark wants two digits for `dd`, but takes one or two for `d`.
    width = len(best.replace("'", "")) + best.endswith("a")
    format = best if all(len(text) == width for text in texts) else _loose(best)
    return TimeFormat(format, names_zone=False, is_ambiguous=counts.get(swapped) == counts[best])


def seconds_of(value: Scalar, format: str) -> float | None:
    """Seconds since 1970 for the length of intervals: a text that names no zone counts as UTC. None where it cannot be read."""
    text = str(value).strip()
    try:
        if format in EPOCH_UNITS:
            second = float(text) / EPOCH_UNITS[format]
            return second if EARLIEST <= second < LATEST else None
        if format == "iso":
            parsed = datetime.fromisoformat(text) if ISO.fullmatch(text) else None
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() if parsed else None
    except ValueError:
        return None
    seconds = (_parsed(text, name) for name in PATTERNS if _loose(name) == _loose(format))
    return next((second for second in seconds if second is not None), None)


def _parsed(text: str, pattern: str) -> float | None:
    if "yyyyMM" in pattern and len(text) != len(pattern.replace("'", "")):
        return None  # without separators Python would cut any number of ten digits into a date
    try:
        return datetime.strptime(text, PATTERNS[pattern]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _readable(texts: Sequence[str], format: str) -> int:
    return sum((seconds_of(text, format) if format in EPOCH_UNITS else _parsed(text, format)) is not None for text in texts)


def _is_most(count: int, texts: Sequence[str]) -> bool:
    return bool(texts) and count >= 0.95 * len(texts)


def _loose(pattern: str) -> str:
    return pattern.replace("dd", "d").replace("MM", "M").replace("HH", "H").replace("hh", "h")
