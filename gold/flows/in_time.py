"""Readings that are in time for a flow, where sources are of several lanes. Pure.

A flow counts what is before its `final` instant: the least, over the lanes that have brought it a reading, of a lane's newest reading less
its lateness. Each lane keeps to that, but one that brings its first reading later may be behind. What it brings then is left out, as
what is late for silver is. Which readings these are depends on bronze alone, and not on how many batches a step takes: a reading of a
bronze batch is in time if it is not before `final` after the batch before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from gold.flows.slices import THE_BEGINNING
from gold.instants import SECOND


@dataclass(frozen=True)
class Brought:
    """Readings of a bronze batch by one lane. `newest`: of all. `oldest`: of those that the flow takes; None for none. Both in microseconds
    since 1970."""

    bronze_batch: int
    lane: str
    newest: int
    oldest: int | None


@dataclass(frozen=True)
class LaneBound:
    """`last`: the bronze batch after which no source is left to it; None: it has some."""

    lateness_seconds: int
    last: int | None = None


@dataclass(frozen=True)
class Late:
    """Readings of these bronze batches, the last one included, that are before an instant."""

    first: int
    last: int
    before: int


@dataclass(frozen=True)
class Final:
    """Readings before `at` are final. `newest`: by lane that has brought a reading, since it did."""

    at: int = THE_BEGINNING
    newest: dict[str, int] = field(default_factory=dict)


def advance(final: Final, brought: Iterable[Brought], lanes: Mapping[str, LaneBound]) -> tuple[Final, list[Late]]:
    """Pass bronze batches, in their order; returns also the readings of them that are left out."""
    at, newest, late = final.at, dict(final.newest), list[Late]()
    for batch, of_batch in groupby(brought, attrgetter("bronze_batch")):
        parts = list(of_batch)
        if any(part.oldest is not None and part.oldest < at for part in parts):
            first = late.pop().first if late and late[-1].before == at else batch
            late.append(Late(first, batch, at))
        for part in parts:
            if part.oldest is not None or part.lane in newest:
                newest[part.lane] = max(part.newest, newest.get(part.lane, part.newest))
        newest = {lane: instant for lane, instant in newest.items() if (last := lanes[lane].last) is None or batch <= last}
        # Whole milliseconds, as Spark counts a watermark in them.
        bounds = (instant // 1000 * 1000 - lanes[lane].lateness_seconds * SECOND for lane, instant in newest.items())
        at = max(at, min(bounds, default=at))
    return Final(at, newest), late
