"""Measures of one device by windows that need what came before: distance, share of time, rise of a counter. Pure.

Windows tumble, from multiples of `every_seconds` since 1970. A step from one reading to the next belongs to the window of its later one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT
from gold.counters import Count, Kind, count, tidied
from gold.flows.slices import Instants, Slice, Stepped, codes, instants, micros, without_flow
from gold.flows.spec import Counter, Distance, DutyCycle
from gold.instants import SECOND
from gold.schema import MEASURES

COLUMNS = without_flow(MEASURES)
ITEM = pa.schema(
    [*(("device_id", pa.string()), ("event_time", INSTANT), ("value", pa.float64()), ("other", pa.float64())), ("is_on", pa.bool_())]
)
"""Carried: what has not been in a closed window, and before it the last one of each device. `other`: the longitude; else null."""
COUNTED = ITEM.remove(3).remove(3).append(pa.field("state", pa.list_(pa.float64())))
"""Carried of a counter: readings that have not been in a closed window, and the state of each meter before them."""
EARTH_RADIUS = 6_371_008.8
"""Mean radius in metres (IUGG)."""
Numbers = npt.NDArray[Any]


class _Items:
    """Items in order of device and time, as arrays."""

    def __init__(self, items: pa.Table) -> None:
        items = items.sort_by([("device_id", "ascending"), ("event_time", "ascending")])
        self.table, self.device, self.time = items, codes(items["device_id"]), micros(items["event_time"])
        self.value = items["value"].to_numpy()

    def is_behind_one(self) -> npt.NDArray[np.bool_]:
        """Whether the item before is of the same device."""
        return np.append(False, self.device[1:] == self.device[:-1])[: len(self.device)]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield where the items of each device begin and end."""
        begins = np.flatnonzero(~self.is_behind_one())
        return zip(begins.tolist(), [*begins[1:].tolist(), len(self.device)], strict=False)


def distance(flow: Distance, this: Slice) -> Stepped:
    """Great circles between positions that follow each other. A latitude without its longitude counts nowhere."""
    sides = [this.readings.filter(pc.equal(this.readings["metric"], metric)) for metric in (flow.latitude, flow.longitude)]
    longitude = sides[1].select(["device_id", "event_time", "value"]).rename_columns(["device_id", "event_time", "other"])
    positions = sides[0].select(["device_id", "event_time", "value"]).join(longitude, ["device_id", "event_time"], join_type="inner")
    items = _Items(pa.concat_tables([this.carried, _items(positions)]))
    is_position = _are_positions(flow, items)
    placed = np.flatnonzero(is_position)
    is_same_device = items.device[placed[1:]] == items.device[placed[:-1]]
    steps = placed[1:][is_same_device]
    metres, speed = np.zeros(len(items.time)), np.zeros(len(items.time))
    metres[steps], speed[steps] = _way(items, placed[:-1][is_same_device], steps)
    is_step = np.zeros(len(items.time), np.bool_)
    is_step[steps] = True
    here = np.flatnonzero(is_step | ~is_position)
    measures = {"value": metres[here], "highest": speed[here], "count": is_step[here], "glitches": ~is_position[here]}
    stepped = _by_window(flow.every_seconds, this, items, here, items.time[here], measures)
    end = _window_bounds(flow.every_seconds, this)[1]
    return Stepped(stepped.rows, _left(_Items(items.table.filter(pa.array(is_position | (items.time >= end)))), end))


def _are_positions(flow: Distance, items: _Items) -> npt.NDArray[np.bool_]:
    """Say which items are places on earth that the device may have reached from its last one."""
    latitude, longitude = items.value, items.table["other"].to_numpy()
    are: npt.NDArray[np.bool_] = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180) & ((latitude != 0) | (longitude != 0))
    for first, last in items.spans():
        placed = first + np.flatnonzero(are[first:last])
        if (_way(items, placed[:-1], placed[1:])[1] <= flow.most_plausible_speed).all():
            continue
        before = placed[0]
        for at in placed[1:]:
            are[at] = _way(items, before, at)[1] <= flow.most_plausible_speed
            before = at if are[at] else before
    return are


def _way(items: _Items, there: Numbers, here: Numbers) -> tuple[Numbers, Numbers]:
    """The metres from one item to another, and the speed in metres a second."""
    other = items.table["other"].to_numpy()
    latitudes, longitudes = np.radians([items.value[there], items.value[here]]), np.radians([other[there], other[here]])
    of_latitude, of_longitude = (np.sin(np.diff(sides, axis=0)[0] / 2) ** 2 for sides in (latitudes, longitudes))
    half = of_latitude + np.cos(latitudes[0]) * np.cos(latitudes[1]) * of_longitude
    metres = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1)))
    return metres, metres / ((items.time[here] - items.time[there]) / SECOND)


def counter(flow: Counter, this: Slice) -> Stepped:
    """Count what each meter rose by; the first reading of a meter is no step."""
    items = _Items(pa.concat_tables([this.carried.filter(this.carried["value"].is_valid()), _items(this.readings, COUNTED)]))
    states = {row["device_id"]: Count.from_list(row["state"]) for row in this.carried.filter(this.carried["state"].is_valid()).to_pylist()}
    end = _window_bounds(flow.every_seconds, this)[1]
    rises, kinds, after = np.zeros(len(items.time)), np.full(len(items.time), -1, np.int8), states | {}
    for first, last in items.spans():
        device = items.table["device_id"][first].as_py()
        closed = first + int(np.searchsorted(items.time[first:last], end))
        for begin, until in ((first, closed), (closed, last)):
            counted = count(flow, states.get(device), items.time[begin:until], items.value[begin:until])
            rises[begin:until], kinds[begin:until] = counted.rises, counted.kinds
            states[device] = counted.state
            if until == closed:
                after[device] = counted.state
    here = np.flatnonzero(kinds >= 0)
    names = {"glitches": Kind.GLITCH, "wraps": Kind.WRAP, "resets": Kind.RESET}
    counts = {name: kinds[here] == kind for name, kind in names.items()}
    stepped = _by_window(flow.every_seconds, this, items, here, items.time[here], {"value": rises[here], "highest": rises[here], **counts})
    sizes = [0.0 if (state := after[device]) is None else state.last for device in stepped.rows["device_id"].to_pylist()]
    value = pa.array(map(tidied, stepped.rows["value"].to_pylist(), sizes), pa.float64())
    rows = stepped.rows.set_column(COLUMNS.get_field_index("value"), COLUMNS.field("value"), value)
    carried = [{"device_id": device, "state": state.to_list()} for device, state in sorted(after.items()) if state is not None]
    return Stepped(rows, pa.concat_tables([items.table.filter(pa.array(items.time >= end)), pa.Table.from_pylist(carried, COUNTED)]))


def duty_cycle(flow: DutyCycle, this: Slice) -> Stepped:
    """Each reading holds until the next one, at most `hold_seconds`; time of a reading of which the predicate is null is not known."""
    met = this.readings.append_column("is_on", this.readings["fits_0"])
    items = _Items(pa.concat_tables([this.carried, _items(met)]))
    every, begin, end = flow.every_seconds * SECOND, *_window_bounds(flow.every_seconds, this)
    is_last = ~np.append(items.is_behind_one()[1:], False)[: len(items.time)]
    following = np.where(is_last, end, np.append(items.time[1:], 0)[: len(items.time)])
    until = np.minimum(np.minimum(items.time + flow.hold_seconds * SECOND, following), end)
    since = np.maximum(items.time, begin)
    here = np.flatnonzero((since < until) & items.table["is_on"].is_valid().to_numpy())
    windows = (until[here] - 1) // every - since[here] // every + 1
    here = np.repeat(here, windows)
    window = since[here] // every + np.arange(len(here)) - np.repeat(windows.cumsum() - windows, windows)
    seconds_known = (np.minimum(until[here], (window + 1) * every) - np.maximum(since[here], window * every)) / SECOND
    on = np.where(pc.fill_null(items.table["is_on"], False).to_numpy()[here], seconds_known, 0)
    count = (items.time[here] // every == window).astype(np.int64)
    measures = {"value": on, "known_seconds": seconds_known, "count": count}
    stepped = _by_window(flow.every_seconds, this, items, here, window * every, measures)
    share = pc.divide(stepped.rows["value"], stepped.rows["known_seconds"])
    return Stepped(stepped.rows.set_column(COLUMNS.get_field_index("value"), COLUMNS.field("value"), share), stepped.carried)


def _items(rows: pa.Table, schema: pa.Schema = ITEM) -> pa.Table:
    columns = [rows[name] if name in rows.column_names else pa.nulls(len(rows), schema.field(name).type) for name in schema.names]
    return pa.table(columns, schema)


def _window_bounds(every_seconds: int, this: Slice) -> tuple[int, int]:
    """The windows that close in this slice: from the first instant of the first to the first after the last."""
    every = every_seconds * SECOND
    return this.after // every * every, this.until // every * every


def _by_window(  # noqa: PLR0917
    every_seconds: int, this: Slice, items: _Items, here: Numbers, time: Instants, measures: dict[str, Numbers]
) -> Stepped:
    """Measures at places `here` of items, each at a time, summed up by device and window; of `highest` the greatest."""
    every, begin, end = every_seconds * SECOND, *_window_bounds(every_seconds, this)
    is_due = (time >= begin) & (time < end)
    columns = {"count": np.ones(len(here), np.int64)} | measures
    steps = {
        name: pa.array(column[is_due].astype(np.int64) if column.dtype == bool else column[is_due]) for name, column in columns.items()
    }
    keyed = pa.table({"device_id": items.table["device_id"].take(here[is_due]), "window": pa.array(time[is_due] // every), **steps})
    summed = keyed.group_by(["device_id", "window"]).aggregate([(name, "max" if name == "highest" else "sum") for name in steps])
    window = summed["window"].to_numpy()
    columns = {"device_id": summed["device_id"], "window_start": instants(window * every), "window_end": instants((window + 1) * every)}
    columns |= {name: summed[f"{name}_{'max' if name == 'highest' else 'sum'}"] for name in steps}
    rows = pa.table([columns.get(field.name, pa.nulls(len(summed), field.type)) for field in COLUMNS], COLUMNS)
    return Stepped(rows, _left(items, end))


def _left(items: _Items, end: int) -> pa.Table:
    """Return the items that are in no closed window, and before them the last items of each device."""
    is_before = items.time < end
    is_behind_me = np.append((items.is_behind_one() & is_before)[1:], False)[: len(items.time)]
    return items.table.filter(pa.array(~(is_before & is_behind_me)))
