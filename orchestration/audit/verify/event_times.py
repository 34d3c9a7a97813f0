"""The time of each row: from the texts of its fields, by the arrival of its event, or by what the reader of its file said of its hour."""

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.audit.verify.instants import NUMBER_FORMATS, instants_of
from orchestration.audit.verify.numerals import with_point
from silver.spec import PayloadFormat, Time

SECOND_HOUR = b"second"
YEAR_10000, MOST_DIGITS = 253_402_300_800_000_000, 16


def event_times(texts: Any, event_at: pa.Array, events: pa.Table, shape: PayloadFormat) -> tuple[pa.Array, pa.Array]:
    """Return microseconds since 1970 of each row, null where nobody knows them, and whether its local time is there once. `texts`: those of
    the times, none for the arrival. `event_at`: the event of a row, among `events`."""
    micros, is_once = _own_times(texts, event_at, events, shape)
    if shape.id is None:
        return micros, is_once
    # A message that repeats one before it has a header: how much later it says it was.
    shifts = pa.array(map(_shift, events["headers"].to_pylist()), pa.int64()).take(event_at)
    return pa.array(map(_before, micros.to_pylist(), shifts.to_pylist()), pa.int64()), is_once


def _own_times(texts: Any, event_at: pa.Array, events: pa.Table, shape: PayloadFormat) -> tuple[pa.Array, pa.Array]:
    time = shape.time
    if time.arrival:
        return events["received_at"].combine_chunks().cast(pa.int64()).take(event_at), pa.repeat(True, len(event_at))
    if time.format in NUMBER_FORMATS:
        texts = map(partial(_with_point, shape), texts)
    encoded = pa.array(texts, pa.string()).dictionary_encode()
    if time.repeated_hour != "in_order":
        return _instants(encoded, time)
    first, is_once = _instants(encoded, replace(time, repeated_hour=None))
    second, _ = _instants(encoded, replace(time, repeated_hour="second"))
    hours = [next((e["value"] for e in entries or () if e["key"] == "repeated_hour"), None) for entries in events["headers"].to_pylist()]
    hour = pa.array(hours, pa.binary()).take(event_at)
    is_known = pc.or_(hour.is_valid(), pc.fill_null(pc.equal(first, second), True))  # a time that is skipped is the same by both
    return pc.if_else(pc.fill_null(pc.equal(hour, SECOND_HOUR), False), second, first), pc.or_(is_once, is_known)


def _shift(entries: Any) -> int:
    content = next((entry["value"] for entry in reversed(entries or ()) if entry["key"] == "repeated_after_us"), None) or b""
    digits = content.removeprefix(b"-")
    return int(content) if digits.isdigit() and len(digits) <= MOST_DIGITS else 0


def _before(micros: int | None, shift: int) -> int | None:
    """The time that is so much earlier, unless it is beyond the year 9999."""
    return micros if micros is None or micros - shift >= YEAR_10000 else micros - shift


def _instants(encoded: pa.DictionaryArray, time: Time) -> tuple[pa.Array, pa.Array]:
    micros, is_unique = (values.take(encoded.indices) for values in instants_of(encoded.dictionary, time))
    return micros, pc.fill_null(is_unique, True)


def _with_point(shape: PayloadFormat, text: str | None) -> str | None:
    return text and with_point(text, shape.decimal, shape.thousands)
