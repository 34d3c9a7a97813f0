"""A span of time that a view shows: as its address says it, and the spans beside it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.datastructures import QueryParams

from orchestration.utc import from_iso, to_iso

SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
LEAST, LONGEST = timedelta(seconds=10), timedelta(days=3660)


@dataclass(frozen=True)
class Span:
    """From `start`, exclusive, to `end`. `name`: one of SPANS, or empty for one that is between two instants."""

    start: datetime
    end: datetime
    name: str = ""

    @property
    def beside(self) -> dict[str, dict[str, str]]:
        """Return the addresses of the spans before and after it, of a closer and of a wider one; those that exist."""
        half = (self.end - self.start) / 2
        places = {"earlier": (-2, -2), "closer": (0.5, -0.5), "wider": (-1, 1), "later": (2, 2)}
        spans = {}
        for name, (first, last) in places.items():
            try:
                start, end = self.start + first * half, self.end + last * half
            except OverflowError:
                continue
            if LEAST <= end - start <= LONGEST:
                spans[name] = {"from": to_iso(start), "to": to_iso(end)}
        return spans


def span_of(params: QueryParams, newest: datetime, default: str = "hour") -> Span:
    """`from` and `to`, or a `span` of SPANS that ends at `newest`; the default one for what cannot be read."""
    try:
        start, end = from_iso(params["from"]), from_iso(params["to"])
        if LEAST <= end - start <= LONGEST:
            return Span(start, end)
    except (KeyError, ValueError, OverflowError):
        pass
    name = params.get("span", default)
    name = name if name in SPANS else default
    return Span(newest - SPANS[name], newest, name)
