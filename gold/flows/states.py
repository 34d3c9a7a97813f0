"""States: one row of each change of the state of one device, by a table of transitions or by its silence. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bronze.schema import INSTANT
from gold.flows.slices import LINEAGE, Slice, Stepped, codes, fits, micros, without_flow
from gold.flows.spec import Silence, StateMachine, Transition
from gold.instants import SECOND
from gold.schema import STATES

COLUMNS = without_flow(STATES)
IN_ORDER = [("device_id", "ascending"), ("event_time", "ascending"), ("metric", "ascending")]
STATE = pa.schema([("device_id", pa.string()), ("state", pa.string()), ("since", INSTANT)])
"""Carried: the state of each device."""
LAST = pa.schema([("device_id", pa.string()), ("event_time", INSTANT)])
"""Carried: the last reading of each device."""
HEARD, SILENT = "heard", "silent"


class _Change(NamedTuple):
    """`reading`: the place of the one that caused it; None where time did."""

    device_id: str
    at: int
    state: str
    previous: str
    since: int
    reading: int | None


def state_machine(flow: StateMachine, this: Slice) -> Stepped:
    """`this.carried`: STATE. The first state of a device begins at its first reading. Time goes before a reading of the same instant."""
    readings = this.readings.sort_by(IN_ORDER)
    devices, names, since_micros = this.carried["device_id"].to_pylist(), this.carried["state"].to_pylist(), micros(this.carried["since"])
    states = dict(zip(devices, zip(names, since_micros.tolist(), strict=True), strict=True))
    met = [fits(readings, at) for at in range(len(flow.transitions))]
    changes: list[_Change] = []

    def pass_time(device_id: str, until: int) -> None:
        while change := _by_time(flow, device_id, states[device_id], until):
            changes.append(change)
            states[device_id] = change.state, change.at

    for index, (device_id, at) in enumerate(zip(readings["device_id"].to_pylist(), micros(readings["event_time"]).tolist(), strict=True)):
        if device_id not in states:
            states[device_id] = flow.initial, at
        pass_time(device_id, at)
        state, since = states[device_id]
        fitting = (to for way, to in enumerate(flow.transitions) if to.source == state and met[way][index])
        if (transition := next(fitting, None)) is not None:
            changes.append(_Change(device_id, at, transition.target, state, since, index))
            states[device_id] = transition.target, at
    for device_id in states:
        pass_time(device_id, this.until)
    carried = [{"device_id": device_id, "state": state, "since": since} for device_id, (state, since) in states.items()]
    return Stepped(_rows(changes, readings), pa.Table.from_pylist(carried, STATE))


def silence(flow: Silence, this: Slice) -> Stepped:
    """`this.carried`: LAST. A reading after exactly `after_seconds` comes in time."""
    patience = flow.after_seconds * SECOND
    readings = this.readings.sort_by(IN_ORDER)
    items = pa.concat_tables([this.carried, readings.select(LAST.names)])
    order = np.lexsort((micros(items["event_time"]), codes(items["device_id"])))
    device, time = codes(items["device_id"])[order], micros(items["event_time"])[order]
    names, is_last = items["device_id"].take(order), np.append(device[1:] != device[:-1], True)[: len(order)]
    # Where a device is carried as silent, the slice before has said so: its silence began before this slice.
    until = np.append(time[1:], 0)[: len(order)]
    until[is_last] = np.maximum(this.until, time[is_last])
    begins = time + patience
    is_silent, is_back = (until > begins) & (begins >= this.after), (until > begins) & ~is_last
    index = order - len(this.carried)
    changes = [
        *_changes(names, np.flatnonzero(is_silent), lambda at: (int(begins[at]), SILENT, HEARD, int(time[at]), None)),
        *_changes(names, np.flatnonzero(is_back), lambda at: (int(time[at + 1]), HEARD, SILENT, int(begins[at]), int(index[at + 1]))),
    ]
    last = items.take(order[is_last])
    return Stepped(_rows(changes, readings), last)


def _changes(names: pa.ChunkedArray, places: Any, describe: Any) -> Iterator[_Change]:
    for at in places.tolist():
        yield _Change(names[at].as_py(), *describe(at))


def _by_time(flow: StateMachine, device_id: str, now: tuple[str, int], until: int) -> _Change | None:
    """The change that time alone makes of a state by an instant."""
    state, since = now
    timed = [to for to in flow.transitions if to.source == state and to.after_seconds is not None]
    first: Transition | None = min(timed, key=lambda to: to.after_seconds or 0, default=None)
    if first is None or (at := since + (first.after_seconds or 0) * SECOND) > until:
        return None
    return _Change(device_id, at, first.target, state, since, None)


def _rows(changes: list[_Change], readings: pa.Table) -> pa.Table:
    of_reading = readings.take(pa.array([change.reading for change in changes], pa.int64()))
    columns: dict[str, Any] = {
        "device_id": [change.device_id for change in changes],
        "changed_at": [change.at for change in changes],
        "state": [change.state for change in changes],
        "previous": [change.previous for change in changes],
        "seconds": [(change.at - change.since) / SECOND for change in changes],
        "value": of_reading["value"],
        **{name: of_reading[name] for name in LINEAGE},
    }
    return pa.table({name: columns[name] for name in COLUMNS.names}, COLUMNS)
