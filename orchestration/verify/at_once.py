"""Payloads to measurements, many at once: those that a template fits. What comes out is what one_by_one makes of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.verify.instants import instants_of
from orchestration.verify.numerals import number_or_switch
from orchestration.verify.one_by_one import LONGEST_TIME, named, part_of_name
from orchestration.verify.templates import Kind, Path, Template, template_of
from silver.spec import Origin, PayloadFormat, Time

LONGEST = 1_000
"""Bytes of a payload: within them no limit of json_payload on digits, names and depth is reached."""
ENOUGH = 200
"""Payloads that a template has to fit."""
SAMPLES = 4
MOST_TEMPLATES = 16

Columns = dict[str, pa.Array]


def at_once(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> tuple[list[Columns], pa.Array]:
    """Of each template that was found the columns of measurements.MEASUREMENTS, and the places of the events that are left."""
    payloads = events["payload"].combine_chunks()
    is_short = pc.less_equal(pc.binary_length(payloads), min(LONGEST, max_payload_bytes))
    left, long = pc.indices_nonzero(is_short), pc.indices_nonzero(pc.invert(is_short))
    found: list[Columns] = []
    while shape.format == "json" and shape.each is None and len(found) < MOST_TEMPLATES:
        template, fits = _template(payloads.take(left), shape)
        if template is None:
            break
        fitting = left.filter(fits)
        found += _columns(_Alike(events.take(fitting), template), fitting, shape)
        left = left.filter(pc.invert(fits))
    return found, pa.concat_arrays([left, long])


def _template(payloads: pa.Array, shape: PayloadFormat) -> tuple[Template | None, pa.Array]:
    """One that fits enough of the payloads, made of a few of them that lie far apart; and which ones it fits."""
    as_text = {_path(origin.field) for origin in (shape.device, shape.zone, shape.metric, shape.unit) if origin and origin.field}
    as_text.add(_path(shape.time.field))
    values = {*map(_path, shape.metrics.values()), *([_path(shape.value)] if shape.value else [])}
    for at in range(0, len(payloads) if len(payloads) >= ENOUGH else 0, len(payloads) // SAMPLES or 1):
        template = template_of(payloads[at].as_py(), as_text | values, as_text)
        if template is not None and _is_simple(template, shape):
            fits = template.fits(payloads)
            if fits.true_count >= ENOUGH:
                return template, fits
    return None, pa.array([], pa.bool_())


def _is_simple(template: Template, shape: PayloadFormat) -> bool:
    """Of a row of several metrics all that is there has to be numbers: a text may be blank, and then nothing was measured."""
    kinds = [template.values[path].kind for path in map(_path, shape.metrics.values()) if path in template.values]
    return not shape.metrics or (Kind.TEXT not in kinds and any(kind is not Kind.NULL for kind in kinds))


@dataclass(frozen=True)
class _Alike:
    """Events whose payloads have one template."""

    events: pa.Table
    template: Template

    @cached_property
    def texts(self) -> dict[Path, pa.Array]:
        return self.template.texts(self.events["payload"].combine_chunks())

    def names(self, origin: Origin | None) -> pa.Array:
        if origin is None or origin.constant is not None:
            return _all(origin.constant if origin else None, pa.string(), len(self.events))
        if origin.file_name is not None:
            positions = self.events["position"].combine_chunks().fill_null("")
            return _each(positions, partial(part_of_name, re.compile(origin.file_name)), pa.string())
        assert origin.field is not None
        return self.each(origin.field, named, pa.string())

    def numbers(self, field: str) -> pa.Array:
        value = self.template.values.get(_path(field))
        if value is not None and value.kind in {Kind.INTEGER, Kind.NUMBER}:
            return self.texts[_path(field)].cast(pa.float64())
        return self.each(field, number_or_switch, pa.float64())

    def instants(self, time: Time) -> pa.Array:
        texts = self.texts.get(_path(time.field))
        if texts is None:
            return pa.nulls(len(self.events), pa.int64())
        encoded = pc.if_else(pc.less_equal(pc.utf8_length(texts), LONGEST_TIME), texts, None).dictionary_encode()
        return instants_of(encoded.dictionary, time).take(encoded.indices)

    def each(self, field: str, read: Callable[[str], Any], of: pa.DataType) -> pa.Array:
        texts = self.texts.get(_path(field))
        return pa.nulls(len(self.events), of) if texts is None else _each(texts, read, of)


def _columns(alike: _Alike, event_at: pa.Array, shape: PayloadFormat) -> list[Columns]:
    """For each metric of the template."""
    rows = len(event_at)
    is_so = dict.fromkeys(("is_small", "is_utf8", "is_readable"), pa.repeat(True, rows))
    of_event = {
        "event_at": event_at.cast(pa.int32()),
        **is_so,
        "device_id": alike.names(shape.device),
        "zone_text": alike.names(shape.zone),
        "unit_text": alike.names(shape.unit),
        "event_time": alike.instants(shape.time),
    }
    if shape.value is not None:
        metrics = [(0, _each(alike.names(shape.metric), named, pa.string()), shape.value)]
    else:
        there = ((at, name, field) for at, (name, field) in enumerate(shape.metrics.items()) if _path(field) in alike.texts)
        metrics = [(at, _all(named(name), pa.string(), rows), field) for at, name, field in there]
    count = _all(len(metrics), pa.int32(), rows)
    return [
        of_event | {"metric": metric, "number": alike.numbers(field), "part": _all(part, pa.int32(), rows), "parts": count}
        for part, metric, field in metrics
    ]


def _each(texts: pa.Array, read: Callable[[str], Any], of: pa.DataType) -> pa.Array:
    """What each text is read as; a text that comes again is read once."""
    encoded = texts.dictionary_encode()
    return pa.array(map(read, encoded.dictionary.to_pylist()), of).take(encoded.indices)


def _all(value: Any, of: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, of), rows)


def _path(field: str) -> Path:
    return tuple(field.split("."))
