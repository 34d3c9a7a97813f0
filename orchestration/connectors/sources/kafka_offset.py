"""The offset of a Kafka source: what of each topic bronze has, and where reading goes on.

By topic: `id`; and by its partitions: `next`, the offset of the next message; `read`, the ranges of offsets that bronze has, those of a
backfill among them; `from`, where reading did not go on where it had ended, because the partition is new, or there is a gap.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from orchestration.connectors.kafka_client import Place

TOPICS, ID, NEXT, FROM, READ = "topics", "id", "next", "from", "read"
Known = Mapping[str, Any]
"""Of an offset: by topic."""
Ranges = Sequence[Sequence[int]]
"""Pairs of the first offset, and the one behind the last."""


def next_offset(known: Known, place: Place) -> int | None:
    """Where reading of a partition ended; None where it was never read."""
    offset: int | None = known.get(place[0], {}).get(NEXT, {}).get(str(place[1]))
    return offset


def ranges_read(known: Known, place: Place) -> Ranges:
    """What bronze has of a partition. Of an offset that does not tell, all before the next message: nothing may come twice."""
    read: Ranges = known.get(place[0], {}).get(READ, {}).get(str(place[1]), [[0, next_offset(known, place) or 0]])
    return read


def joined(ranges: Iterable[Sequence[int]]) -> list[list[int]]:
    """The same in order, without empty ones, those that touch as one."""
    whole: list[list[int]] = []
    for begin, end in sorted(ranges, key=itemgetter(0)):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(end, whole[-1][1])
        elif begin < end:
            whole.append([begin, end])
    return whole


def without(ranges: Ranges, others: Ranges) -> list[list[int]]:
    """What of them lies in none of the others."""
    left = joined(ranges)
    for begin, end in others:
        left = joined(part for first, last in left for part in ((first, min(last, begin)), (max(first, end), last)))
    return left
