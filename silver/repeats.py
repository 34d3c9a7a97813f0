"""Messages that come again, known by an identity of their own: `id` of a source. Pure.

A repeat may say another time than the first one, such as that of a second gateway. Its header in bronze says how much later that is. All
readers of payloads take this off, so the measurements of a repeat have the times of the first one, and are duplicates of its. A replay, a
retry and `verify` need no more than this header.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import HEADERS
from silver.measurements import REPEAT, measurements
from silver.spec import PayloadFormat

Identity = tuple[str, str | None]
"""The id of a message; and of long rows the metric: a device may send each metric of a frame in a message of its own."""


class Repeats:
    """The messages of one source so far. A message is a repeat of the first one with its device and identity if their times are at most the
    lateness apart; of each device those are kept that the last one may repeat."""

    def __init__(self, lateness_seconds: int) -> None:
        self._lateness = lateness_seconds * 1_000_000
        self._by_device: dict[str, dict[Identity, int]] = {}

    def marked(self, events: pa.Table, shape: PayloadFormat) -> pa.Table:
        """The next events of the source (ARRIVED), with REPEAT among the headers of those that repeat one with another time."""
        shifts = dict[int, int]()
        for event, device, identity, micros in _messages(events, shape):
            if shift := micros - self._first(device, identity, micros):
                shifts[event] = shift
        return _with_shifts(events, shifts) if shifts else events

    def _first(self, device: str, identity: Identity, micros: int) -> int:
        """The time of the first message with this identity, which may be this one."""
        earlier = self._by_device.setdefault(device, {})
        first = earlier.get(identity)
        if first is not None and abs(micros - first) <= self._lateness:
            return first
        earlier.pop(identity, None)
        earlier[identity] = micros
        while abs(earlier[oldest := next(iter(earlier))] - micros) > self._lateness:
            del earlier[oldest]
        return micros


def _messages(events: pa.Table, shape: PayloadFormat) -> Iterator[tuple[int, str, Identity, int]]:
    """Yield the index, device, identity and time of the first measurement of each event that has them."""
    as_zone = replace(shape, zone=shape.id)  # a text of each row, as the identity is
    rows = pa.concat_tables(measurements(events, as_zone, pc.max(pc.binary_length(events["payload"])).as_py() or 0))
    rows = rows.sort_by([("event_at", "ascending"), ("part", "ascending")])
    columns = (rows["event_at"], rows["device_id"], rows["zone_text"], rows["metric"], rows["event_time"].cast(pa.int64()))
    last = -1
    for event, device, identity, metric, micros in zip(*(column.to_pylist() for column in columns), strict=True):
        if event != last and None not in (device, identity, micros):
            yield event, device, (identity, None if shape.metrics else metric), micros
        last = event


def _with_shifts(events: pa.Table, shifts: Mapping[int, int]) -> pa.Table:
    headers = events["headers"].to_pylist()
    for event, shift in shifts.items():
        headers[event] = [*(headers[event] or ()), {"key": REPEAT, "value": str(shift).encode()}]
    at = events.schema.get_field_index("headers")
    return events.set_column(at, events.schema.field(at), pa.array(headers, HEADERS))
