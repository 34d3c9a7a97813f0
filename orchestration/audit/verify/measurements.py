"""`verify`'s own reading of payloads (the layer's is silver/measurements.py): what each event says, with numbers and instants read.

Nothing is known about device and metric yet. At least one row an event: one that cannot be read has a row without what could not be read.
"""

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from orchestration.audit.verify.event_texts import EventTexts, NoMatch, trimmed_text
from orchestration.audit.verify.event_times import event_times
from orchestration.audit.verify.json_payload import as_text
from orchestration.audit.verify.numerals import number, number_or_switch, with_point
from orchestration.audit.verify.records import Record, decoded_reader, path_of, reader
from silver.decoders.message import messages
from silver.spec import Origin, PayloadFormat

AS_JAVA = "tidemark.as_java"
"""How bytes that are not in their encoding become letters, as silver does it: one U+FFFD for half a surrogate pair, as Java; Python makes
three."""
NOTHING: Record = {}
NO_VALUE = object()
"""A word that says that nothing was measured."""
MEASUREMENTS = pa.schema(
    [
        ("event_at", pa.int32()),  # which event of the table, from 0
        ("is_small", pa.bool_()),
        ("is_utf8", pa.bool_()),
        ("is_readable", pa.bool_()),
        ("is_measured", pa.bool_()),
        ("device_id", pa.string()),
        ("zone_text", pa.string()),
        ("attributes", pa.map_(pa.string(), pa.string())),
        ("metric", pa.string()),
        ("number", pa.float64()),
        ("unit_text", pa.string()),
        ("event_time", pa.int64()),  # microseconds since 1970, UTC
        ("is_local_time_unique", pa.bool_()),
        ("part", pa.int32()),
        ("parts", pa.int32()),
    ]
)


def measurements(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> pa.Table:
    """Grain: one measurement of one event, in any order. `events` are of this shape, with the columns of bronze.events. Schema:
    MEASUREMENTS."""
    payloads, is_utf8 = _decoded(events["payload"], shape)
    is_small = pc.less_equal(pc.binary_length(events["payload"]), max_payload_bytes)
    small = pc.if_else(is_small, payloads, None)
    read = _records(small, events, shape, max_payload_bytes)
    of_event = {"is_small": is_small, "is_utf8": is_utf8, "is_readable": pa.array([records is not None for records in read], pa.bool_())}
    rows = _rows(read, EventTexts(small, events), shape)
    times = [] if shape.time.arrival else rows.texts(shape.time)
    event_time, is_local_time_unique = event_times(map(_matching, times), rows.event_at, events, shape)
    of_row = {name: values.take(rows.event_at) for name, values in of_event.items()} | {
        "event_at": rows.event_at,
        "device_id": rows.names(shape.device),
        "zone_text": rows.names(shape.zone),
        "unit_text": pa.array(["" if isinstance(unit, NoMatch) else unit for unit in rows.texts(shape.unit)], pa.string()),
        "event_time": event_time,
        "is_local_time_unique": is_local_time_unique,
        "attributes": _attributes(rows, shape),
    }
    return pa.concat_tables(_table(of_row, rows, cells) for cells in _cells(rows, shape))


def _records(payloads: Any, events: pa.Table, shape: PayloadFormat, most_bytes: int) -> list[list[Record] | None]:
    """The records of each event, one without decoders; None where it cannot be read."""
    if shape.is_decoded:
        return list(map(decoded_reader(shape), messages(payloads, events, shape, most_bytes)))
    headers = events["header"].to_pylist() if shape.format == "csv" else repeat(None)
    return [None if record is None else [record] for record in map(reader(shape), payloads.to_pylist(), headers)]


def _decoded(payloads: pa.ChunkedArray, shape: PayloadFormat) -> tuple[pa.ChunkedArray | pa.Array, pa.Array]:
    """The payloads, as text where they are one, and whether they are in the encoding of their source."""
    with suppress(pa.ArrowInvalid):
        if shape.is_decoded or shape.encoding == "utf-8":
            return payloads if shape.is_decoded else payloads.cast(pa.string()), pa.repeat(True, len(payloads))
    content: list[bytes] = payloads.to_pylist()
    texts = [payload.decode(shape.encoding, AS_JAVA) for payload in content]
    return pa.array(texts, pa.large_string()), pa.array([_is_whole(payload, shape.encoding) for payload in content], pa.bool_())


def _is_whole(payload: bytes, encoding: str) -> bool:
    try:
        payload.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Java takes half a surrogate pair in UTF-8 for one bad letter, Python for three."""
    assert isinstance(error, UnicodeDecodeError)
    letters = error.object[error.start : error.start + 3]
    is_half_pair = error.encoding == "utf-8" and len(letters) == 3 and letters[0] == 0xED and letters[1] >= 0xA0
    is_half_pair = is_half_pair and all(letter & 0xC0 == 0x80 for letter in letters[1:])
    return "\ufffd", error.start + 3 if is_half_pair else error.end


codecs.register_error(AS_JAVA, _replaced)


@dataclass(frozen=True)
class _Rows:
    """One an event, or one an element where a shape reads a list: `events` and `elements` are the records of each row, `came_with` has what
    came with the events.
    `element_at`: its place in the list. `count`: how many elements the list has, null where there is none; 1 where none is declared."""

    shape: PayloadFormat
    event_at: pa.Array
    events: Sequence[Record]
    elements: Sequence[Record]
    element_at: pa.Array
    count: pa.Array
    came_with: EventTexts

    def values(self, field: str) -> list[Any]:
        is_of_element, path = path_of(field, self.shape)
        return _members(self.elements if is_of_element else self.events, path)

    def texts(self, origin: Origin | None) -> list[str | None]:
        return self.came_with.texts(origin, self.values, self.event_at.to_pylist()) if origin else [None] * len(self.events)

    def names(self, origin: Origin | None) -> pa.Array:
        texts = self.texts(origin)
        return pa.array(map(_matching, texts) if origin and any(locator.match for locator in origin.locators) else texts, pa.string())


def _matching(text: str | None) -> str | None:
    return None if isinstance(text, NoMatch) else text


class _Cells(NamedTuple):
    """The measurements of one metric, of all rows that have it. `row_at`: these rows; None: all of them. `metric_at`: the place of the
    metric in a row of several. `parts`: how many measurements the event holds; null where nobody counts."""

    row_at: NDArray[np.int64] | None
    metric_at: int
    metric: pa.Array
    number: pa.Array
    parts: pa.Array
    is_measured: pa.Array


def _rows(read: Sequence[list[Record] | None], came_with: EventTexts, shape: PayloadFormat) -> _Rows:
    """Rows of the records of each event, which has at least one row."""
    if shape.each is None and not shape.is_decoded:
        event_at, one = pa.array(np.arange(len(read)), pa.int32()), pa.repeat(pa.scalar(1, pa.int32()), len(read))
        events = [records[0] if records else NOTHING for records in read]
        return _Rows(shape, event_at, events, [], pc.subtract(one, 1), one, came_with)
    places: list[tuple[int, int, Record, Record]] = []
    counts: list[int | None] = []
    for at, of_event in enumerate(read):
        begin, records = len(places), of_event or [NOTHING]
        to_list = path_of(shape.each, shape)[1] if shape.each and not shape.paths.have_marks else ()
        lists = [_members([record], to_list)[0] if to_list else [record] for record in records]
        rows = [(record, element or NOTHING) for record, elements in zip(records, lists, strict=True) for element in elements or [NOTHING]]
        places += [(at, n, record, element) for n, (record, element) in enumerate(rows)]
        counts.append(len(places) - begin if len(records) > 1 else None if lists[0] is None else len(lists[0]))
    at_events, at_elements, of_events, of_elements = zip(*places, strict=True) if places else ((), (), (), ())
    event_at, element_at = pa.array(at_events, pa.int32()), pa.array(at_elements, pa.int32())
    count = pa.array(counts, pa.int32()).take(event_at)
    return _Rows(shape, event_at, of_events, of_elements, element_at, count, came_with)


def _cells(rows: _Rows, shape: PayloadFormat) -> Iterator[_Cells]:
    if shape.value is not None:
        metrics, read = rows.names(shape.metric), _reader(shape)
        names_metric = shape.metric is not None and shape.metric.field is not None
        written = rows.values(shape.value.plain_field) if shape.value.plain_field else rows.texts(shape.value)
        values = list(map(read, metrics.to_pylist(), map(_not_blank, written)))
        is_measured = [
            value is not NO_VALUE and (value is not None or (names_metric and metric is not None))
            for value, metric in zip(values, metrics.to_pylist(), strict=True)
        ]
        yield _Cells(None, 0, metrics, _numbers(values, shape), rows.count, pa.array(is_measured, pa.bool_()))
        return
    # A blank says that nothing was measured; its place is still counted.
    read = _reader(shape)
    measured = [[read(metric.strip(" "), _not_blank(value)) for value in rows.values(field)] for metric, field in shape.metrics.items()]
    row_ats = [np.flatnonzero([value is not None and value is not NO_VALUE for value in values]) for values in measured]
    count = np.bincount(np.concatenate(row_ats), minlength=len(rows.events))  # measurements of each row
    is_counted = pa.scalar(False) if shape.each else pc.equal(rows.count, 1)
    parts = pc.if_else(is_counted, pa.array(count, pa.int32()), None)
    for metric_at, (metric, values, row_at) in enumerate(zip(shape.metrics, measured, row_ats, strict=True)):
        metrics = pa.repeat(pa.scalar(metric.strip(" ") or None, pa.string()), len(row_at))
        are_measured = pa.repeat(True, len(row_at))
        yield _Cells(row_at, metric_at, metrics, _numbers([values[at] for at in row_at], shape), parts.take(row_at), are_measured)
    nothing = np.flatnonzero(count == 0)
    blanks = pa.nulls(len(nothing), pa.string()), pa.nulls(len(nothing), pa.float64())
    yield _Cells(nothing, 0, *blanks, parts.take(nothing), pa.repeat(False, len(nothing)))


def _table(of_row: dict[str, pa.Array], rows: _Rows, cells: _Cells) -> pa.Table:
    width = max(len(rows.shape.metrics), 1)
    part = pc.add(pc.multiply(rows.element_at, width), cells.metric_at).cast(pa.int32())
    of_both = of_row | {"part": part}
    taken = of_both if cells.row_at is None else {name: values.take(cells.row_at) for name, values in of_both.items()}
    columns = taken | {"metric": cells.metric, "number": cells.number, "parts": cells.parts, "is_measured": cells.is_measured}
    return pa.table({name: columns[name] for name in MEASUREMENTS.names}).cast(MEASUREMENTS)


def _attributes(rows: _Rows, shape: PayloadFormat) -> pa.Array:
    """Return for each row the declared texts by name; null if none is declared."""
    kind = MEASUREMENTS.field("attributes").type
    if not shape.attributes:
        return pa.nulls(len(rows.events), kind)
    texts = [_names(rows.values(field)).to_pylist() for field in shape.attributes.values()]
    return pa.array([list(zip(shape.attributes, of_row, strict=True)) for of_row in zip(*texts, strict=True)], kind)


def _reader(shape: PayloadFormat) -> Callable[[str | None, Any], Any]:
    """Return a function that maps a value of a metric: a word to the number it stands for, NO_VALUE if nothing was measured, else
    itself."""
    if not shape.words and not shape.not_measured:
        return lambda _, value: value
    words: dict[tuple[str | None, str | None], float] = {
        (metric, word.lower()): meant for metric, kind in shape.words.items() for word, meant in kind.items()
    }
    to_number = partial(_number, shape)
    no_values = {word.strip(" ").lower() for word in shape.not_measured}
    no_numbers = {
        amount
        for word in no_values
        if (amount := number(with_point(word, shape.decimal, shape.thousands))) is not None and math.isfinite(amount)
    }

    def read(metric: str | None, value: Any) -> Any:
        if value is None:
            return NO_VALUE if "" in no_values else None
        text = as_text(value)
        word = None if text is None else text.strip(' "').lower()
        meant = words.get((metric, word), value)
        return NO_VALUE if (word is not None and word in no_values) or to_number(meant) in no_numbers else meant

    return read


def _members(records: Sequence[Record], path: Sequence[str]) -> list[Any]:
    first, *more = path
    values = [record.get(first) for record in records]
    return _members([value or NOTHING for value in values], more) if more else values


def _names(values: Iterable[Any]) -> pa.Array:
    """Values as names."""
    return pa.array(map(trimmed_text, values), pa.string())


def _not_blank(value: Any) -> Any:
    return (value.strip(" ") or None) if type(value) is str else value


def _numbers(values: Sequence[Any], shape: PayloadFormat) -> pa.Array:
    try:
        numbers = pa.array(values, pa.float64())
        return pc.if_else(pc.is_finite(numbers), numbers, None)
    except (ValueError, TypeError):  # nearly all are numbers that a float can hold
        return pa.array(map(partial(_number, shape), values), pa.float64())


def _number(shape: PayloadFormat, value: Any) -> float | None:
    match value:
        case NoMatch():
            return None
        case str():
            return number_or_switch(with_point(value, shape.decimal, shape.thousands))
        case float():
            return value if math.isfinite(value) else None
        case int():
            return float(f"{value:d}")  # by its digits: a whole number beyond all floats is infinite, for the rules to turn away
        case _:
            return None
