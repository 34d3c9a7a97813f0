"""`columns`: lists beside each other, one a field, become rows; a time may be a start and a step."""

from datetime import datetime, timedelta
from typing import Any

from silver.decoders.exact import number_of, total
from silver.decoders.json_text import check_spread, object_of
from silver.records import UnreadableError


def columns(content: Any, start: str | None = None, step: str | float | None = None) -> list[Any]:
    """{"t": [1, 2], "v": [20, 21], "id": 7} is {"t": 1, "v": 20, "id": 7} and {"t": 2, "v": 21, "id": 7}.

    `start`: the field of the time of the first row, which each row then has as `time`; `step`: the field of the time between two rows, or
    that time itself: in the unit of the start, in seconds where that is a text in ISO 8601.
    """
    members = object_of(content)
    lists = {name: value for name, value in members.items() if isinstance(value, list)}
    others = {name: value for name, value in members.items() if name not in lists}
    counts = {len(values) for values in lists.values()}
    if len(counts) > 1:
        raise UnreadableError(f"its lists differ in length: {', '.join(f'{name} {len(values)}' for name, values in lists.items())}"[:200])
    count = counts.pop() if counts else 0
    check_spread(count, members)
    times = [] if start is None else _times(members.get(start), members.get(step) if isinstance(step, str) else step, count)
    rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    if not lists:
        return [members]
    return [{**others, **row, **({"time": times[at]} if times else {})} for at, row in enumerate(rows)]


def _times(start: Any, step: Any, count: int) -> list[Any]:
    by = number_of(step)
    if not isinstance(start, str):
        first = number_of(start)
        return [total(first, by * n) for n in range(count)]
    try:
        instant = datetime.fromisoformat(start)
        return [(instant + timedelta(microseconds=int(by * n * 1_000_000))).isoformat() for n in range(count)]
    except (ValueError, OverflowError):
        raise UnreadableError("the start is no time in ISO 8601, or rows leave the years 1 to 9999") from None
