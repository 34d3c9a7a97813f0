"""Payloads to measurements: what each event says, typed, before anything is known about device and metric. Pure, of Arrow.

The only place that reads payloads: Spark's workers call it for batches of a stream or a replay, the account and a retry for a few events.
What could not be read is null, and `is_readable` false; nothing is dropped, and no payload raises anything.
"""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT
from silver.csv_rows import csv_rows
from silver.decoded_rows import decoded_rows
from silver.instants import NUMBER_FORMATS, to_instants
from silver.json_rows import as_text, json_rows
from silver.located_texts import LocatedTexts, header_values, named, texts_of, utf8, whole_column
from silver.numbers import found, to_numbers, to_numbers_or_switches, with_points
from silver.policy import SilverConfig
from silver.records import Rows, Values
from silver.spec import Origin, PayloadFormat

UTF_8 = "utf-8"
SURROGATE_IN_UTF8 = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""Java takes half a surrogate pair in UTF-8 for one bad letter, Python for three."""
REPEATED_HOUR, SECOND_HOUR = "repeated_hour", b"second"
"""A header of an event in bronze, which says by the order of its file which of two local times it has; and what it says of the second."""
REPEAT, LONGEST_SHIFT = "repeated_after_us", r"^-?\d{1,16}$"
"""A header of an event in bronze that repeats one before it: how much later it says it was, in microseconds."""
LAST_MICROS = 253_402_300_799_999_999
"""The end of the year 9999."""
ATTRIBUTES = pa.map_(pa.string(), pa.string())
MEASUREMENTS = pa.schema(
    [
        pa.field("event_at", pa.int32()),  # which event of the table, from 0
        pa.field("payload_bytes", pa.int32()),
        pa.field("is_utf8", pa.bool_()),
        pa.field("is_readable", pa.bool_()),
        pa.field("is_measured", pa.bool_()),  # false where nothing was measured, or nobody knows
        pa.field("device_id", pa.string()),
        pa.field("zone_text", pa.string()),
        pa.field("attributes", ATTRIBUTES),
        pa.field("metric", pa.string()),
        pa.field("number", pa.float64()),
        pa.field("unit_text", pa.string()),
        pa.field("event_time", INSTANT),
        pa.field("is_local_time_unique", pa.bool_()),
        pa.field("part", pa.int32()),
        pa.field("parts", pa.int32()),
    ]
)
"""Grain: one measurement; at least one an event. `part`: its place in the event, `parts`: how many there are, null where nobody counted."""


OF_EVENT = ("source", "ingested_at", "bronze_batch", "bronze_row")
MEASURED = pa.schema(
    [
        *(field for field in MEASUREMENTS if field.name != "event_at"),
        *(("source", pa.string()), ("ingested_at", INSTANT), ("bronze_batch", pa.int64()), ("bronze_row", pa.int64())),
    ]
)
"""Grain: as of MEASUREMENTS, with what names the event."""


class _Cells(NamedTuple):
    """One metric of the rows that have it, `row_at`: None for all. `metric_at`: its place among the metrics of a row."""

    row_at: pa.Array | None
    metric_at: int
    metric: pa.Array
    number: pa.Array
    parts: pa.Array
    is_measured: pa.Array


def measured(events: pa.Table, config: SilverConfig) -> Iterator[pa.Table]:
    """MEASURED of events, in pieces and any order. An event of a source without a shape has none."""
    of_registry = config.load_registry_formats() if config.load_registry_formats else {}
    for source, shape in config.shapes.items():
        is_of_source = pc.equal(events["source"], source)
        of_source = events if pc.all(is_of_source).as_py() else events.filter(is_of_source)
        if len(of_source):
            current = replace(shape, schemas=of_registry[source].schemas) if shape.has_kept_schemas and source in of_registry else shape
            for piece in measurements(of_source, current, config.policy.max_payload_bytes):
                named = of_source.select(OF_EVENT).take(piece["event_at"])
                columns = [(named if name in OF_EVENT else piece)[name] for name in MEASURED.names]
                yield pa.table(columns, MEASURED)


def measurements(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> Iterator[pa.Table]:
    """MEASUREMENTS of events of one shape, in pieces and any order. `events`: payload, header and position of bronze.events, and
    received_at, headers or key if the time of the shape is beside the payload, or decoders ask for them. A payload longer than
    `max_payload_bytes` is not read."""
    payloads = whole_column(events["payload"])
    lengths = pc.binary_length(payloads)
    decoded, is_utf8 = (payloads, pa.repeat(True, len(payloads))) if shape.is_decoded else _decoded(payloads, shape.encoding)
    small = pc.if_else(pc.less_equal(lengths, max_payload_bytes), decoded, None)
    for rows in payload_rows(small, events, shape, max_payload_bytes):
        texts = LocatedTexts(rows, small, events)
        event_time, is_local_time_unique = _times(texts, shape)
        event_time = _of_first(event_time, texts) if shape.id else event_time
        of_event = {"payload_bytes": lengths, "is_utf8": is_utf8, "is_readable": rows.is_readable}
        of_row = {
            "event_at": rows.event_at,
            "element_at": rows.element_at,
            "event_time": event_time,
            "is_local_time_unique": is_local_time_unique,
            "attributes": _attributes(rows, shape),
            **{name: rows.of_event(column) for name, column in of_event.items()},
            "device_id": texts.of(shape.device),
            "zone_text": texts.of(shape.zone),
            "unit_text": _units(texts, shape),
        }
        for cells in _one_a_row(texts, shape, shape.value) if shape.value is not None else _one_a_metric(rows, shape):
            yield _table(of_row, cells, max(len(shape.metrics), 1))


def _times(texts: LocatedTexts, shape: PayloadFormat) -> tuple[pa.Array, pa.Array]:
    """Return the instant of each row, and whether its local time is there once."""
    rows, events = texts.rows, texts.events
    if shape.time.arrival:
        return rows.of_event(whole_column(events["received_at"])), pa.repeat(True, len(rows.event_at))
    is_in_order = shape.time.repeated_hour == "in_order"
    is_second = rows.of_event(_said_second(whole_column(events["headers"]))) if is_in_order else None
    times = texts.of(shape.time)
    times = with_points(times, shape.decimal, shape.thousands) if shape.time.format in NUMBER_FORMATS else times
    return to_instants(times, shape.time, is_second)


def _of_first(times: pa.Array, texts: LocatedTexts) -> pa.Array:
    """Return the times of the rows; of an event that repeats another one those of the first."""
    said = utf8(header_values(whole_column(texts.events["headers"]), REPEAT))
    shifts = pc.if_else(pc.fill_null(pc.match_substring_regex(said, LONGEST_SHIFT), False), said, "0").cast(pa.int64())
    micros = times.cast(pa.int64())
    shifted = pc.subtract(micros, texts.rows.of_event(shifts))
    return pc.if_else(pc.less_equal(shifted, LAST_MICROS), shifted, micros).cast(times.type)


def _units(texts: LocatedTexts, shape: PayloadFormat) -> pa.Array:
    """Return the texts of units; one that does not match is empty, as no unit is called so."""
    if shape.unit is None or not any(locator.match for locator in shape.unit.locators):
        return texts.of(shape.unit)
    matched, unmatched = texts.located(shape.unit)
    return pc.if_else(unmatched.is_valid(), "", matched)


def _said_second(headers: pa.Array) -> pa.Array:
    """Whether events are of the second of two hours by REPEATED_HOUR among their headers; null where none says it."""
    return pc.equal(header_values(headers, REPEATED_HOUR), SECOND_HOUR)


def payload_rows(payloads: pa.Array, events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> Iterable[Rows]:
    """Rows of payloads, which are texts but for those that decoders read; null is not read. `events`: what came with them."""
    if shape.is_decoded:
        return decoded_rows(payloads, events, shape, max_payload_bytes)
    return [csv_rows(payloads, whole_column(events["header"]), shape)] if shape.format == "csv" else json_rows(payloads, shape)


def _one_a_row(texts: LocatedTexts, shape: PayloadFormat, value: Origin) -> Iterator[_Cells]:
    rows, metric = texts.rows, texts.of(shape.metric)
    if value.plain_field:
        number, is_filled, is_no_value = _measured_numbers(rows.values(value.plain_field), metric, shape)
    else:
        matched, unmatched = texts.located(value)
        number, is_filled, is_no_value = _measured_numbers(pc.coalesce(matched, unmatched), metric, shape, unmatched.is_valid())
    # A message that names a metric and has no value is a defect, unless conf says that this means nothing.
    is_named = metric.is_valid().to_numpy(zero_copy_only=False) & (shape.metric is not None and shape.metric.field is not None)
    is_measured = pa.array((is_filled | is_named) & ~is_no_value)
    yield _Cells(None, 0, metric, number, rows.of_event(rows.elements), is_measured)


def _one_a_metric(rows: Rows, shape: PayloadFormat) -> Iterator[_Cells]:
    """Wide to long; a blank says that nothing was measured. The place in the declaration is the part: a blank does not move it."""
    names = [pa.repeat(pa.scalar(metric.strip(" ") or None, pa.string()), len(rows.event_at)) for metric in shape.metrics]
    columns = []
    for name, field in zip(names, shape.metrics.values(), strict=True):
        number, is_filled, is_no_value = _measured_numbers(rows.values(field), name, shape)
        columns.append((number, is_filled & ~is_no_value))
    count = np.sum([is_filled for _, is_filled in columns], axis=0, dtype=np.int32)
    # Wide rows in a list differ in their blanks; how many measurements the whole event holds is then not counted.
    parts = pa.nulls(len(rows.event_at), pa.int32()) if shape.each else _of_one_row(pa.array(count, pa.int32()), rows)
    for metric_at, (name, (number, is_filled)) in enumerate(zip(names, columns, strict=True)):
        row_at = pa.array(np.flatnonzero(is_filled))
        yield _Cells(row_at, metric_at, name.take(row_at), number.take(row_at), parts.take(row_at), pa.repeat(True, len(row_at)))
    row_at = pa.array(np.flatnonzero(count == 0))
    no_metric, no_number = pa.nulls(len(row_at), pa.string()), pa.nulls(len(row_at), pa.float64())
    yield _Cells(row_at, 0, no_metric, no_number, parts.take(row_at), pa.repeat(False, len(row_at)))


def _of_one_row(count: pa.Array, rows: Rows) -> pa.Array:
    return count if rows.is_one_an_event else pc.if_else(pc.equal(rows.of_event(rows.elements), 1), count, None)


def _table(of_row: dict[str, pa.Array], cells: _Cells, width: int) -> pa.Table:
    columns = of_row if cells.row_at is None else {name: column.take(cells.row_at) for name, column in of_row.items()}
    part = pc.add(pc.multiply(columns["element_at"], width), cells.metric_at).cast(pa.int32())
    columns = columns | {"part": part} | {name: column for name, column in cells._asdict().items() if name in MEASUREMENTS.names}
    return pa.table([columns[name] for name in MEASUREMENTS.names], MEASUREMENTS)


def _decoded(payloads: pa.Array, encoding: str) -> tuple[pa.Array, pa.Array]:
    """The payloads as texts, and whether they are in their encoding."""
    with suppress(pa.ArrowInvalid):
        if encoding == UTF_8:
            return payloads.cast(pa.string()), pa.repeat(True, len(payloads))
    both = [_text_of(payload, encoding) for payload in payloads.to_pylist()]
    return pa.array([text for text, _ in both], pa.string()), pa.array([is_whole for _, is_whole in both], pa.bool_())


def _text_of(payload: bytes, encoding: str) -> tuple[str, bool]:
    try:
        return payload.decode(encoding), True
    except UnicodeDecodeError:
        return (SURROGATE_IN_UTF8.sub(b"\xef\xbf\xbd", payload) if encoding == UTF_8 else payload).decode(encoding, "replace"), False


def _without_blanks(values: Values) -> Values:
    if isinstance(values, pa.Array):
        return named(values)
    return [(value.strip(" ") or None) if isinstance(value, str) else value for value in values]


def _attributes(rows: Rows, shape: PayloadFormat) -> pa.Array:
    """The texts of the declared fields by name, null where one is blank; null where none is declared."""
    count, names = len(rows.event_at), [*shape.attributes]
    if not names:
        return pa.nulls(count, ATTRIBUTES)
    texts = pa.concat_arrays([named(texts_of(rows.values(field))) for field in shape.attributes.values()])
    in_rows = np.arange(count * len(names)).reshape(len(names), count).T.ravel()
    offsets = pa.array(np.arange(count + 1) * len(names), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(names * count, pa.string()), texts.take(pa.array(in_rows)))


def _measured_numbers(
    values: Values, metric: pa.Array, shape: PayloadFormat, is_unmatched: pa.Array | None = None
) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Return the same as `_numbers`, with the words that conf has for values; and where a value says that nothing was measured. A text that
    does not match is no number."""
    number, is_filled = _numbers(values, shape)
    number = number if is_unmatched is None else pc.if_else(is_unmatched, None, number)
    is_no_value = np.zeros(len(is_filled), bool)
    if shape.words or shape.not_measured:
        texts = pc.utf8_lower(pc.utf8_trim(texts_of(_without_blanks(values)), ' "'))
        for name, words in shape.words.items():
            of_metric = pc.if_else(pc.equal(metric, name), texts, None)
            number = pc.coalesce(found(of_metric, {word.lower(): value for word, value in words.items()}), number)
        no_values = pa.array([word.strip(" ").lower() for word in shape.not_measured], pa.string())
        no_numbers = to_numbers(with_points(no_values, shape.decimal, shape.thousands))
        is_word = pc.or_(pc.is_in(texts, no_values), pc.is_in(number, no_numbers.filter(pc.is_finite(no_numbers))))
        is_no_value = is_word.to_numpy(zero_copy_only=False) | (~is_filled & ("" in shape.not_measured))
        number = pc.if_else(pa.array(is_no_value), None, number)
    return number, is_filled, is_no_value


def _numbers(values: Values, shape: PayloadFormat) -> tuple[pa.Array, np.ndarray]:
    """Numbers, null where there is none; and where there is a value, whatever it is."""
    if isinstance(values, pa.Array):
        values = named(values)
        return to_numbers_or_switches(with_points(values, shape.decimal, shape.thousands)), values.is_valid().to_numpy(zero_copy_only=False)
    try:
        numbers = pa.array(values, pa.float64())
    except (ValueError, TypeError):  # nearly all are numbers that a double can hold
        values = _without_blanks(values)
        texts = pa.array((as_text(value) if isinstance(value, str) else None for value in values), pa.string())
        texts = to_numbers_or_switches(with_points(texts, shape.decimal, shape.thousands))
        numbers = pc.coalesce(texts, pa.array(map(_number, values), pa.float64()))
        return numbers, np.fromiter((value is not None for value in values), bool, len(values))
    # JSON has no infinities: what is beyond all doubles is no number.
    return pc.if_else(pc.is_finite(numbers), numbers, None), numbers.is_valid().to_numpy(zero_copy_only=False)


def _number(value: object) -> float | None:
    """Convert a number or a switch of JSON; a whole number beyond all doubles is infinite, for the rules to reject."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, int):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
