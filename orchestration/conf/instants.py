"""Formats of event times: which one reads the values of a field, and why none does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestration.conf.vocabulary import Scalar, is_number

ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d(?::?\d\d)?)?")
TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?")
ZONE_LETTERS = re.compile(r"(.*\d.*) ([A-Z]{2,5})")
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
        *("MM/dd/yyyy hh:mm:ss a", "yyyyMMddHHmmss", "yyyyMMdd'T'HHmmss", "yyyyMMdd", *DATES),
    )
}
"""Spark's pattern, and the same for Python."""


@dataclass(frozen=True)
class TimeFormat:
    """`names_zone`: every value says which zone it is in. `is_ambiguous`: day and month could change places."""

    format: str
    names_zone: bool
    is_ambiguous: bool = False

    @property
    def is_date(self) -> bool:
        """Whether it has no time of day."""
        return "d" in self.format and not re.search("[Hh]", self.format)


def time_format_of(values: Sequence[Scalar], least: float = 0.95) -> TimeFormat | None:
    """The format that reads this share of the values; None where there is none."""
    texts = [str(value).strip() for value in values]
    matches = [match for text in texts if (match := ISO.fullmatch(text))]
    if matches and _is_most(len(matches), texts, least):
        return TimeFormat("iso", all(match.group(1) for match in matches))
    for name in EPOCH_UNITS:
        if _is_most(_readable(texts, name), texts, least):
            return TimeFormat(name, names_zone=True)
    thinned = texts[:: max(1, len(texts) // 100)]  # parsing dates is slow, and most fields are none
    counts = {name: _readable(texts, name) for name in PATTERNS if _is_most(_readable(thinned, name), thinned, least)}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None:
        return None
    swapped = best.replace("dd", "..").replace("MM", "dd").replace("..", "MM")
    # Spark wants two digits for `dd`, but takes one or two for `d`.
    width = len(best.replace("'", "")) + best.endswith("a")
    blanks = re.search(" {2,}", texts[0])
    format = best if all(len(" ".join(text.split())) == width for text in texts) else _loose(best)
    return TimeFormat(
        format.replace(" ", blanks[0], 1) if blanks else format, names_zone=False, is_ambiguous=counts.get(swapped) == counts[best]
    )


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


def why_no_time(values: Sequence[Scalar], is_named: bool) -> str | None:
    """What keeps values from being times, where they nearly are, or where their field is named after a time."""
    texts = [str(value).strip() for value in values]
    letters = [match[2] for text in texts if (match := ZONE_LETTERS.fullmatch(text)) and time_format_of([match[1]])]
    if all(is_number(text) and EARLIEST <= float(text) / 1e9 < LATEST for text in texts):
        return "holds nanoseconds since 1970, which are not read (epoch_us, epoch_ms and epoch_s are)"
    if 2 * len(letters) >= len(texts):
        return f"ends in letters of a zone ({letters[0]}); write its time.format by hand, such as yyyy-MM-dd HH:mm:ss z"
    if not is_named and time_format_of(values):
        return "may hold times, but its name does not say so; name it as time.field by hand"
    if is_named and all(map(TIME_OF_DAY.fullmatch, texts)):
        return f"holds times of day such as {texts[0]}, without a date"
    if is_named and all(map(is_number, texts)):
        return f"holds numbers such as {texts[0]}, no epoch in s, ms or us since 2000: the uptime, or a clock that was not set"
    return f"has no format that is known (such as {texts[0][:60]}); write its time.format by hand" if is_named else None


def _parsed(text: str, pattern: str) -> float | None:
    if "yyyyMM" in pattern and len(text) != len(pattern.replace("'", "")):
        return None  # without separators Python would cut any number of ten digits into a date
    try:
        return datetime.strptime(text, PATTERNS[pattern]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _readable(texts: Sequence[str], format: str) -> int:
    return sum((seconds_of(text, format) if format in EPOCH_UNITS else _parsed(text, format)) is not None for text in texts)


def _is_most(count: int, texts: Sequence[str], least: float) -> bool:
    return bool(texts) and count >= least * len(texts)


def _loose(pattern: str) -> str:
    return " ".join(pattern.split()).replace("dd", "d").replace("MM", "M").replace("HH", "H").replace("hh", "h")
