"""Messages as bytes, and the truth about each. Vectorised over Arrow: two million lines take seconds."""

import json
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.connectors.simulator.arrivals import Defect, Kind, Messages
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
FIRST_NUMBER = re.compile(rb'":(-?\d)')
FIRST_TEXT = re.compile(rb'":"')


def lines(messages: Messages, plan: Plan) -> pa.LargeBinaryArray:
    """One line a message, line ends included; malformed ones are broken in their own way."""
    pieces = {"long": _long, "wide": _wide, "list": _list}[plan.shape](messages, plan)
    whole = pc.binary_join_element_wise(*pieces, _constant("\n"), _constant(""))
    is_malformed = messages["kind"] == Kind.MALFORMED
    if not is_malformed.any():
        return whole
    places = np.flatnonzero(is_malformed)
    broken = [_broken(whole[int(n)].as_py()[:-1], Defect(messages["defect"][n]), int(messages["event_us"][n])) for n in places]
    return pc.replace_with_mask(whole, pa.array(is_malformed), pa.array(broken, pa.large_binary()))


def truth(messages: Messages, plan: Plan, file: str, first_line: int) -> pa.Table:
    """What is known about the messages, which are lines `first_line` and on of the file."""
    is_malformed = messages["kind"] == Kind.MALFORMED
    is_measured = ~np.isnan(messages["value"])
    is_measured[is_malformed] = np.arange(plan.width) == 0
    part = (np.cumsum(is_measured, axis=1) - 1)[is_measured]
    row, column = np.nonzero(is_measured)
    of_row, unreadable = messages[row], is_malformed[row]
    metric = pa.array(of_row["metric"] + column, mask=unreadable)
    columns = [
        pa.repeat(file, len(row)),
        pa.array(row + first_line),
        pa.array(part),
        pa.array([kind.name.lower() for kind in Kind]).take(pa.array(of_row["kind"])),
        pa.array([None, *(defect.name.lower() for defect in Defect if defect)]).take(pa.array(of_row["defect"])),
        pa.array([device.device_id for device in plan.devices]).take(pa.array(of_row["device"])),
        pa.array([metric.name for metric in plan.metrics]).take(metric),
        pa.array(of_row["event_us"]).cast(TRUTH.field("event_time").type),
        pa.array(messages["value"][row, column], mask=unreadable),
        pa.array([metric.unit for metric in plan.metrics], pa.string()).take(metric),
    ]
    return pa.table([array.cast(field.type) for array, field in zip(columns, TRUTH, strict=True)], TRUTH)


def _long(messages: Messages, plan: Plan) -> list[pa.Array]:
    """{"device":"oven-01","metric":"temperature","value":181.2,"unit":"degC","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z"}"""
    series = pa.array(messages["device"].astype(np.int64) * len(plan.metrics) + messages["metric"])
    pairs = [(device, metric) for device in plan.devices for metric in plan.metrics]
    heads = [f'{{"device":{_text(device.device_id)},"metric":{_text(metric.name)},"value":' for device, metric in pairs]
    tails = [f"{_member('unit', metric.unit)}{_member('zone', device.zone)}" + ',"ts":"' for device, metric in pairs]
    return [_taken(heads, series), _numbers(messages["value"][:, 0]), _taken(tails, series), _instants(messages), _constant('"}')]


def _wide(messages: Messages, plan: Plan) -> list[pa.Array]:
    """{"device":"oven-01","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z","values":{"temperature":181.2,"power":1520.5}}"""
    return _all_metrics(messages, plan, begin='"values":{', head="{}:", tail="", end="}}")


def _list(messages: Messages, plan: Plan) -> list[pa.Array]:
    """{"device":"oven-01","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z","readings":[{"name":"temperature","v":181.2}]}"""
    return _all_metrics(messages, plan, begin='"readings":[', head='{{"name":{},"v":', tail="}", end="]}")


def _all_metrics(messages: Messages, plan: Plan, *, begin: str, head: str, tail: str, end: str) -> list[pa.Array]:
    """All measurements of each message between `begin` and `end`: each between its head, which holds its metric, and `tail`."""
    heads = [f'{{"device":{_text(device.device_id)}{_member("zone", device.zone)}' + ',"ts":"' for device in plan.devices]
    cells = [
        pc.binary_join_element_wise(
            _constant(head.format(_text(metric.name))), _numbers(messages["value"][:, n]), _constant(tail), _constant("")
        )
        for n, metric in enumerate(plan.metrics)
    ]
    values = pc.binary_join_element_wise(*cells, _constant(","), null_handling="skip")
    return [_taken(heads, pa.array(messages["device"])), _instants(messages), _constant(f'",{begin}'), values, _constant(end)]


def _numbers(values: np.ndarray) -> pa.Array:
    """Shortest decimal text that reads back as the same number; null for NaN."""
    return pa.array(values, from_pandas=True).cast(pa.large_string()).cast(pa.large_binary())


def _instants(messages: Messages) -> pa.Array:
    """ISO 8601 in UTC with milliseconds."""
    texts = pa.array(messages["event_us"] // 1000).cast(pa.timestamp("ms")).cast(pa.large_string()).cast(pa.large_binary())
    return pc.binary_join_element_wise(pc.binary_replace_slice(texts, 10, 11, b"T"), _constant("Z"), _constant(""))


def _taken(texts: Sequence[str], numbers: pa.Array) -> pa.Array:
    return pa.array([text.encode() for text in texts], pa.large_binary()).take(numbers)


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), pa.large_binary())


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _member(name: str, text: str | None) -> str:
    """A member of an object, left out where there is nothing to say."""
    return "" if text is None else f',"{name}":{_text(text)}'


def _broken(line: bytes, defect: Defect, salt: int) -> bytes:
    """The line with its defect; a resend has the same `salt` and so the same bytes."""
    match defect:
        case Defect.BROKEN_NUMBER:
            line = FIRST_NUMBER.sub(rb'":\1..', line, count=1)
        case Defect.CUT:
            line = line[: 1 + salt // 1000 % (len(line) - 1)]
        case Defect.EMPTY:
            line = b""
        case Defect.TWO_OBJECTS:
            line += line
        case Defect.INVALID_UTF8:
            line = FIRST_TEXT.sub(b'":"\xff', line, count=1)
    return line + b"\n"
