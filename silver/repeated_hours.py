"""Which of two local times a row has in the hour that comes twice, by the order of the rows of its file: `repeated_hour: in_order`. Pure.

Only the reader of a file sees its rows in order. What it finds stands in a header of the event in bronze, so a replay, a retry and `verify`
need no order.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import HEADERS
from silver.measurements import REPEATED_HOUR, SECOND_HOUR, measurements
from silver.spec import PayloadFormat

DAY = 86_400_000_000
FIRST_HOUR = b"first"
ORDER = [("event_at", "ascending"), ("part", "ascending")]

Series = tuple[int, str | None, str | None]
"""Day, device and metric."""


class RepeatedHours:
    """The rows of one file so far. A device and metric are in the second hour once their local time does not rise; before that in the
    first, if the file has a row before the hour. Else nobody knows, and `local_time_is_unique` is broken."""

    def __init__(self, shape: PayloadFormat) -> None:
        """`shape`: its repeated_hour is `in_order`."""
        self._shape, self._has_begun = replace(shape, time=replace(shape.time, repeated_hour=None)), False
        self._last: dict[Series, tuple[int, bytes | None]] = {}

    def with_hours(self, events: pa.Table) -> pa.Table:
        """The next events of the file (ARRIVED), with what is known of their hour in their headers."""
        rows = pa.concat_tables(measurements(events, self._shape, pc.max(pc.binary_length(events["payload"])).as_py() or 0))
        rows = rows.filter(rows["event_time"].is_valid())
        is_once = rows["is_local_time_unique"]
        begins_at = -1 if self._has_begun else pc.min(rows["event_at"].filter(is_once)).as_py()
        self._has_begun = begins_at is not None
        hours: dict[int, bytes] = {}
        twice = rows.filter(pc.invert(is_once)).sort_by(ORDER)
        columns = (twice["event_at"], twice["event_time"].cast(pa.int64()), twice["device_id"], twice["metric"])
        for event, micros, device, metric in zip(*(column.to_pylist() for column in columns), strict=True):
            has_begun = begins_at is not None and begins_at < event
            hour = self._hour((micros // DAY, device, metric), micros, FIRST_HOUR if has_begun else None)
            if hour and hours.get(event) != SECOND_HOUR:
                hours[event] = hour
        if not hours:
            return events
        marks = [[{"key": REPEATED_HOUR, "value": hours[n]}] if n in hours else None for n in range(len(events))]
        at = events.schema.get_field_index("headers")
        return events.set_column(at, events.schema.field(at), pa.array(marks, HEADERS))

    def _hour(self, series: Series, micros: int, first: bytes | None) -> bytes | None:
        last, hour = self._last.get(series, (micros - 1, first))
        self._last[series] = micros, SECOND_HOUR if micros <= last else hour
        return self._last[series][1]
