"""Messages as bytes, and the truth about each, vectorised over Arrow."""

import json
import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.connectors.simulator.messages import Defect, Kind, Messages
from orchestration.connectors.simulator.plan import Plan

TRUTH = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),  # from 1
        ("part", pa.int32()),  # which measurement of the line, from 0
        ("kind", pa.string()),
        ("defect", pa.string()),  # null unless malformed
        ("device_id", pa.string()),
        ("metric", pa.string()),  # null where malformed, like value and unit: nobody can read them
        ("event_time", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
        ("unit", pa.string()),
    ]
)
"""Grain: one measurement of one line (a malformed line has one row), in order of arrival. Key: file, line, part."""
LISTS = {"wide": ('"values":{', "%s:", "", "}}"), "list": ('"readings":[', '{"name":%s,"v":', "}", "]}")}
"""How an event holds all metrics of a device: what opens them, stands before and after each value, and closes them."""
FIRST_NUMBER = re.compile(rb'":(-?\d)')
FIRST_TEXT = re.compile(rb'":"')


class Lines:
    """The lines of a plan's messages."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = [_text(metric.name) for metric in plan.metrics]
        devices = [(f'{{"device":{_text(device.device_id)}', _member("zone", device.zone) + ',"ts":"') for device in plan.devices]
        if plan.shape == "long":
            metrics = [(f',"metric":{_text(metric.name)},"value":', _member("unit", metric.unit)) for metric in plan.metrics]
            self._heads = _texts(device + metric for device, _ in devices for metric, _ in metrics)
            self._tails = _texts(unit + zone for _, zone in devices for _, unit in metrics)
        else:
            self._heads = _texts(device + zone for device, zone in devices)

    def bytes_of(self, messages: Messages) -> memoryview:
        """One line a message, line ends included; malformed ones are broken in their own way."""
        pieces = self._long(messages) if self._plan.shape == "long" else self._list(messages, *LISTS[self._plan.shape])
        whole = pc.binary_join_element_wise(*pieces, _constant("\n"), _constant(""))
        is_malformed = messages["kind"] == Kind.MALFORMED
        broken = [_broken(whole[int(n)].as_py(), messages[n]) for n in np.flatnonzero(is_malformed)]
        if broken:
            whole = pc.replace_with_mask(whole, pa.array(is_malformed), pa.array(broken, pa.large_binary()))
        _, offsets, data = whole.buffers()
        return memoryview(data)[: np.frombuffer(offsets, np.int64)[len(whole)]]

    def _long(self, messages: Messages) -> list[pa.Array]:
        """{"device":"oven-01","metric":"temperature","value":181.2,"unit":"degC","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z"}"""
        series = pa.array(messages["device"].astype(np.int64) * len(self._names) + messages["metric"])
        numbers = _numbers(messages["value"][:, 0])
        return [self._heads.take(series), numbers, self._tails.take(series), _instants(messages), _constant('Z"}')]

    def _list(self, messages: Messages, opening: str, before: str, after: str, closing: str) -> list[pa.Array]:
        """{"device":"oven-01","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z","values":{"temperature":181.2,"power":1520.5}}"""
        columns = [(_constant(before % name), _numbers(messages["value"][:, n])) for n, name in enumerate(self._names)]
        cells = [pc.binary_join_element_wise(head, numbers, _constant(after), _constant("")) for head, numbers in columns]
        values = pc.binary_join_element_wise(*cells, _constant(","), null_handling="skip")  # a dropout is left out
        heads = self._heads.take(pa.array(messages["device"]))
        return [heads, _instants(messages), _constant(f'Z",{opening}'), values, _constant(closing)]


def truth(messages: Messages, plan: Plan, file: str, first_line: int) -> pa.Table:
    """The truth about the messages, which are lines `first_line` and on of the file."""
    is_malformed = messages["kind"] == Kind.MALFORMED
    is_measured = ~np.isnan(messages["value"])
    is_measured[is_malformed] = np.arange(plan.width) == 0
    part = (np.cumsum(is_measured, axis=1) - 1)[is_measured]
    row, column = np.nonzero(is_measured)
    message, unreadable = messages[row], is_malformed[row]
    metric = pa.array(message["metric"] + column, mask=unreadable)
    columns = [
        pa.repeat(file, len(row)),
        pa.array(row + first_line),
        pa.array(part),
        pa.array([kind.name.lower() for kind in Kind]).take(pa.array(message["kind"])),
        pa.array([None, *(defect.name.lower() for defect in Defect if defect)]).take(pa.array(message["defect"])),
        pa.array([device.device_id for device in plan.devices]).take(pa.array(message["device"])),
        pa.array([metric.name for metric in plan.metrics]).take(metric),
        pa.array(message["event_us"]).cast(TRUTH.field("event_time").type),
        pa.array(messages["value"][row, column], mask=unreadable),
        pa.array([metric.unit for metric in plan.metrics], pa.string()).take(metric),
    ]
    return pa.table([array.cast(field.type) for array, field in zip(columns, TRUTH, strict=True)], TRUTH)


def _numbers(values: np.ndarray) -> pa.Array:
    """Shortest decimal text that reads back as the same number; null for NaN."""
    return pa.array(values, from_pandas=True).cast(pa.large_string()).cast(pa.large_binary())


def _instants(messages: Messages) -> pa.Array:
    """ISO 8601 with milliseconds; its `Z` stands in what follows, since Arrow prints times of a zone slowly."""
    texts = pa.array(messages["event_us"] // 1000).cast(pa.timestamp("ms")).cast(pa.large_string()).cast(pa.large_binary())
    return pc.binary_replace_slice(texts, 10, 11, b"T")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Iterable[str]) -> pa.Array:
    return pa.array([text.encode() for text in texts], pa.large_binary())


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), pa.large_binary())


def _member(name: str, text: str | None) -> str:
    """A member of an object, left out where there is nothing to say."""
    return "" if text is None else f',"{name}":{_text(text)}'


def _broken(line: bytes, message: np.void) -> bytes:
    """The line with its defect; a resend has the same bytes."""
    text = line[:-1]
    broken = {
        Defect.BROKEN_NUMBER: FIRST_NUMBER.sub(rb'":\1..', text, count=1),
        Defect.CUT: text[: 1 + int(message["event_us"]) // 1000 % (len(text) - 1)],
        Defect.EMPTY: b"",
        Defect.TWO_OBJECTS: text * 2,
        Defect.INVALID_UTF8: FIRST_TEXT.sub(b'":"\xff', text, count=1),
    }
    return broken[Defect(message["defect"])] + b"\n"
