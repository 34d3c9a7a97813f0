"""Instants, dates and lengths of time that are written out. Everything is in UTC."""

import re
from datetime import UTC, date, datetime
from itertools import pairwise

from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.types import INSTANT

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
INSTANTS = re.compile(rf"({DATE.pattern})(?:[ T]([0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,6}})?)?)(Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?")
FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
"""What date_trunc cuts to, by its names in Spark."""


def instant_of(text: str, at: int) -> str:
    """A written instant in DataFusion's SQL; without a zone it is in UTC."""
    return f"arrow_cast('{_instant(text, at).isoformat().removesuffix('+00:00')}Z', '{INSTANT}')"


def spoken_instant(text: str, at: int) -> str:
    """A written instant as Spark shows it."""
    instant = _instant(text, at).replace(tzinfo=None)
    whole, _, fraction = instant.isoformat(" ", "microseconds").partition(".")
    return f"{whole}.{fraction}".rstrip("0").rstrip(".")


def _instant(text: str, at: int) -> datetime:
    found = INSTANTS.fullmatch(text.strip())
    if not found:
        raise differs(f"the instant {text!r}", at, "write it such as 2026-01-05T12:00:00Z")
    day, clock, zone = found.groups()
    try:
        return datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or 'Z'}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise AmissError(f"there is no instant {text!r}", at) from None


def date_of(text: str, at: int) -> str:
    """A written date in DataFusion's SQL."""
    if not DATE.fullmatch(text.strip()):
        raise differs(f"the date {text!r}", at, "write it such as 2026-01-05")
    try:
        return f"cast('{date.fromisoformat(text.strip()).isoformat()}' as date)"
    except ValueError:
        raise AmissError(f"there is no date {text!r}", at) from None


def format_of(pattern: str, at: int) -> str:
    """A pattern of date_format as DataFusion's to_char takes it."""
    parts = re.findall(r"yyyy|MM|dd|HH|mm|ss|[-:./ _]+|.", pattern, re.DOTALL)
    if any(part not in FORMATS and not re.fullmatch(r"[-:./ _]+", part) for part in parts) or _is_repeated(parts):
        raise differs(f"the format {pattern!r}", at, "use yyyy, MM, dd, HH, mm, ss and signs between them")
    return "".join(FORMATS.get(part, part) for part in parts)


def _is_repeated(parts: list[str]) -> bool:
    """Spark takes MMMM for the name of the month, not for MM twice."""
    return any(one[-1] == other[0] and other in FORMATS for one, other in pairwise(parts))
