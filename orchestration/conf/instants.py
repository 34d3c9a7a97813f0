"""Formats of event times: which one reads the values of a field, by the function of silver, and why none does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from orchestration.conf.vocabulary import Scalar, is_number, number_of
from silver.instants import to_instants
from silver.spec import Time

ZONE = re.compile(r".*:\d\d([.,]\d+)? ?([Zz]|UTC|GMT|[+-]\d\d(:?\d\d)?)")
TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?([Mm]\.?)?)?")
ZONE_LETTERS = re.compile(r"(.*\d.*) ([A-Z]{2,5})")
EPOCH_UNITS = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000, "epoch_ns": 1_000_000_000}
EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""2000 to 2100, in seconds: a number outside is taken for no time."""
DATES = ("yyyy-MM-dd", "yyyy/MM/dd", "dd.MM.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "dd-MM-yyyy", "yy-MM-dd", "dd.MM.yy", "dd/MM/yy", "MM/dd/yy")
"""Patterns of dates. The day comes first if day and month can be either."""
NAMED_DATES = ("dd-MMM-yyyy", "dd-MMM-yy", "dd MMM yyyy", "dd/MMM/yyyy", "MMM dd, yyyy")
"""Patterns of dates with the name of a month."""
CLOCKS = (
    *("HH:mm:ss", "HH:mm", "HH:mm:ss.SSSSSS", "HH:mm:ss,SSSSSS", "HH:mm:ss:SSS", "HH:mm:ss SSS", "H[:mm]"),
    *("hh:mm:ss a", "hh:mm a", "hh:mma"),
)
IN_PARTS, WITH_NAME = re.compile(r"\d[-./]\d+[-./]\d"), re.compile(r"\d[-/ ][A-Za-z]{3}[-/ ]\d|^[A-Za-z]{3} \d+, \d")
WHOLE = ("yyyyMMddHHmmss", "yyyyMMdd'T'HHmmss", "yyyyMMdd", "yyyyMMdd HHmmss")
DAYS = "excel"
NUMBERS = (*EPOCH_UNITS, "filetime", DAYS)
MOST_TRIED = 100


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
    if not texts:
        return None
    for name in ("iso", *NUMBERS):
        if _readable(texts, name) >= least * len(texts):
            return TimeFormat(name, names_zone=name in NUMBERS[:-1] or (name != DAYS and all(map(ZONE.fullmatch, texts))))
    blanks = max(re.findall(" +", texts[0]), default=" ")
    thinned = texts[:: max(1, len(texts) // MOST_TRIED)]  # most fields are no dates
    dates = DATES if any(map(IN_PARTS.search, thinned)) else NAMED_DATES if any(map(WITH_NAME.search, thinned)) else ()
    patterns = [pattern.replace(" ", blanks, 1) for pattern in (_patterns(dates) if dates else WHOLE)]
    counts = {name: _readable(texts, name) for name in patterns if _readable(thinned, name) >= least * len(thinned)}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None:
        return None
    swapped = best.translate(str.maketrans("dM", "Md"))
    is_ambiguous = counts.get(swapped) == counts[best]
    # Who writes AM and PM writes the month first.
    return TimeFormat(swapped if is_ambiguous and "a" in best else best, names_zone=False, is_ambiguous=is_ambiguous)


@cache
def _patterns(dates: tuple[str, ...]) -> tuple[str, ...]:
    """Dates with times of day, and alone; then the same for numbers without leading zeros."""
    parted = (*(f"{date} {clock}" for date in dates for clock in CLOCKS), *dates)
    return (*parted, *(re.sub(r"(?<!M)MM(?!M)|([dHh])\1", lambda match: match[0][0], pattern) for pattern in parted))


def seconds_of(values: Sequence[Scalar], format: str) -> list[float | None]:
    """Since 1970, in UTC where a text names no zone. None for what silver cannot read, and for an epoch outside of EARLIEST to LATEST."""
    instants, _ = to_instants(pa.array([str(value).strip() for value in values], pa.string()), Time("time", format))
    seconds = [None if micros is None else micros / 1e6 for micros in instants.cast(pa.int64()).to_pylist()]
    return [None if second is None or (format in NUMBERS and not EARLIEST <= second < LATEST) else second for second in seconds]


def is_epoch(value: Scalar) -> bool:
    """Whether a number may be a time, in any unit."""
    number = number_of(value)
    return number is not None and any(EARLIEST <= number / per_second < LATEST for per_second in EPOCH_UNITS.values())


def why_no_time(values: Sequence[Scalar], is_named: bool) -> str | None:
    """Say what keeps values from being times, if they nearly are or their field is named after a time."""
    texts = [str(value).strip() for value in values]
    letters = [match[2] for text in texts if (match := ZONE_LETTERS.fullmatch(text)) and time_format_of([match[1]])]
    if 2 * len(letters) >= len(texts):
        return f"ends in letters of a zone ({letters[0]}); write its time.format by hand, such as yyyy-MM-dd HH:mm:ss z"
    if not is_named and time_format_of(values):
        return "may hold times, but its name does not say so; name it as time.field by hand"
    if is_named and all(map(TIME_OF_DAY.fullmatch, texts)):
        return f"holds times of day such as {texts[0]}, without a date"
    if is_named and all(map(is_number, texts)):
        return f"holds numbers such as {texts[0]}, no epoch in s, ms or us since 2000: perhaps the uptime, or a clock that was not set"
    return f"has no format that is known (such as {texts[0][:60]}); write its time.format by hand" if is_named else None


def _readable(texts: Sequence[str], format: str) -> int:
    return sum(second is not None for second in seconds_of(texts, format))
