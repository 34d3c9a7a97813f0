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
SHAPES = {
    "long": ("", '"metric":', ',"value":', "", ""),
    "wide": ('"values":{', "", ":", "", "}"),
    "list": ('"readings":[', '{"name":', ',"v":', "}", "]"),
}
"""The text before all measurements of an event, before and after the name of a metric, after its value, and after all measurements."""
FIRST_NUMBER = re.compile(rb'":(-?\d)')
FIRST_TEXT = re.compile(rb'":"')


class Lines:
    """Write messages as lines; the first default one is

    {"device":"oven-01","metric":"temperature","value":181.2,"unit":"degC","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z"}
    """

    def __init__(self, plan: Plan) -> None:
        opening, before, between, after, closing = SHAPES[plan.shape]
        units = [_member("unit", metric.unit) if plan.shape == "long" else "" for metric in plan.metrics]
        self._heads = _texts(f'{{"device":{_text(device.device_id)},{opening}' for device in plan.devices)
        self._names = _texts(f"{before}{_text(metric.name)}{between}" for metric in plan.metrics)
        self._units = _texts(f"{after}{unit}" for unit in units)
        self._tails = _texts(f'{closing}{_member("zone", device.zone)},"ts":"' for device in plan.devices)

    def bytes_of(self, messages: Messages) -> memoryview:
        """Write one line a message, line ends included; malformed ones are broken in their own way."""
        device, measured = pa.array(messages["device"]), self._measurements(messages)
        # The `Z` of an instant stands in the constant, since Arrow prints times of a zone slowly.
        times = pa.array(messages["event_us"] // 1000).cast(pa.timestamp("ms")).cast(pa.large_string()).cast(pa.large_binary())
        instants = pc.binary_replace_slice(times, 10, 11, b"T")
        whole = _joined(self._heads.take(device), measured, self._tails.take(device), instants, _constant('Z"}\n'))
        is_malformed = messages["kind"] == Kind.MALFORMED
        broken = [_broken(whole[int(n)].as_py(), messages[n]) for n in np.flatnonzero(is_malformed)]
        if broken:
            whole = pc.replace_with_mask(whole, pa.array(is_malformed), pa.array(broken, pa.large_binary()))
        _, offsets, data = whole.buffers()
        return memoryview(data)[: np.frombuffer(offsets, np.int64)[len(whole)]]

    def _measurements(self, messages: Messages) -> pa.Array:
        """Write all measurements of each message; a dropout is left out."""
        is_measured = ~np.isnan(messages["value"])
        row, column = np.nonzero(is_measured)
        metric = pa.array(messages["metric"][row] + column)
        # The shortest decimal text that reads back as the same number.
        numbers = pa.array(messages["value"][is_measured]).cast(pa.large_string()).cast(pa.large_binary())
        texts = _joined(self._names.take(metric), numbers, self._units.take(metric))
        if len(texts) == len(messages):
            return texts
        ends = pa.array(np.cumsum(np.insert(is_measured.sum(axis=1), 0, 0)))
        return pc.binary_join(pa.LargeListArray.from_arrays(ends, texts), _constant(","))


def truth(messages: Messages, plan: Plan, file: str, first_line: int) -> pa.Table:
    """Return the truth about the messages, which are lines `first_line` and on of the file."""
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


def _joined(*pieces: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, _constant(""))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Iterable[str]) -> pa.Array:
    return pa.array([text.encode() for text in texts], pa.large_binary())


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), pa.large_binary())


def _member(name: str, text: str | None) -> str:
    """Write a member of an object, left out where there is nothing to say."""
    return "" if text is None else f',"{name}":{_text(text)}'


def _broken(line: bytes, message: np.void) -> bytes:
    """Break the line by its defect; a resend has the same bytes."""
    text = line[:-1]
    broken = {
        Defect.BROKEN_NUMBER: FIRST_NUMBER.sub(rb'":\1..', text, count=1),
        Defect.CUT: text[: 1 + int(message["event_us"]) // 1000 % (len(text) - 1)],
        Defect.EMPTY: b"",
        Defect.TWO_OBJECTS: text * 2,
        Defect.INVALID_UTF8: FIRST_TEXT.sub(b'":"\xff', text, count=1),
    }
    return broken[Defect(message["defect"])] + b"\n"
