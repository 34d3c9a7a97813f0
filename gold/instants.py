"""Instants as microseconds since 1970, in UTC: how flows and alerts count. Loads nothing, as a conf is checked with it."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


def to_micros(at: datetime) -> int:
    """Convert an instant that has a time zone."""
    return (at - EPOCH) // timedelta(microseconds=1)
