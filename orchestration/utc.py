"""Instants in UTC: as people write them, and as Delta counts them, in microseconds since 1970."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def aware(instant: datetime) -> datetime:
    """The instant, in UTC where it names no zone."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def from_iso(text: str) -> datetime:
    """The instant of an ISO 8601 text, in UTC where it names no zone; ValueError for any other text."""
    return aware(datetime.fromisoformat(text))


def to_iso(instant: datetime) -> str:
    """ISO 8601 in seconds, of an instant in UTC."""
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def to_micros(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def from_micros(count: int) -> datetime:
    """The instant so many microseconds since 1970; OverflowError beyond the years 1 to 9999."""
    return EPOCH + count * MICROSECOND
