"""Flows: each kind gives the rows that are right, and the same ones however time was cut and readings came."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.flows.slices import THE_BEGINNING, Slice, instants
from gold.flows.spec import By, Counter, Distance, DutyCycle, FlowSpec, Join, Kind, Pairs, Sessions, Silence, StateMachine, Transition
from gold.flows.steps import nothing_carried, readings_of, step
from gold.instants import SECOND
from tests.declared_flow import flow_of

Reading = tuple[str, str, float, float]
"""Device, metric, seconds, value."""
END = 1000
NO_KEY = 4.0
"""The value of a reading without the attribute that joins ask for; of others the attribute is their value."""


def readings(flow: FlowSpec, rows: Sequence[Reading], fits: Sequence[Any] = ()) -> pa.Table:
    devices, metrics, seconds, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns: list[Any] = [
        pa.array(devices, pa.string()),
        pa.array([device[0] for device in devices], pa.string()),
        pa.array(metrics, pa.string()),
        instants((np.array(seconds, float) * SECOND).astype(np.int64)),
        pa.array(values, pa.float64()),
        pa.array(range(len(rows)), pa.int64()),
        pa.array(range(len(rows)), pa.int64()),
        pa.array([0] * len(rows), pa.int32()),
        *(pa.array([predicate(value) for value in values], pa.bool_()) for predicate in fits),
        pa.array([None if value == NO_KEY else f"{value:g}" for value in values], pa.string()),
    ]
    schema = readings_of(flow)
    return pa.table(columns[: len(schema)], schema)


def stepped(of: Kind, rows: Sequence[Reading], cuts: Sequence[float] = (END,), fits: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Rows of all slices, without lineage; instants as seconds."""
    flow = flow_of("f", of)
    every = readings(flow, rows, fits)
    seconds = np.array([row[2] for row in rows])
    carried, after, found = nothing_carried(flow), THE_BEGINNING, []
    for cut in cuts:
        until = int(cut * SECOND)
        of_slice = every.filter(pa.array((seconds >= after / SECOND) & (seconds < cut), pa.bool_()))
        result = step(flow, Slice(carried, of_slice, after, until))
        carried, after = result.carried, until
        found += result.rows.to_pylist()
    told = [{name: plain(value) for name, value in row.items() if name != "flow" and value is not None} for row in found]
    return sorted(told, key=lambda row: sorted((name, str(value)) for name, value in row.items()))


def plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else round(value, 6) if isinstance(value, float) else value


def told(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.get(name) for name in names) for row in rows)


def test_a_session_ends_when_nothing_came_for_the_gap() -> None:
    rows = [("a", "power", 0, 5.0), ("a", "power", 9, 7.0), ("a", "power", 19, 1.0), ("b", "power", 995, 1.0)]
    found = stepped(Sessions(10, "power"), rows)
    names = ("device_id", "session_start", "session_end", "count", "min", "max", "sum", "first", "latest", "bronze_row")
    assert told(found, *names) == [("a", 0, 19, 2, 5, 7, 12, 5, 7, 0), ("a", 19, 29, 1, 1, 1, 1, 1, 1, 2)]


def test_a_command_is_paired_with_its_acknowledgement_and_alone_once_its_time_has_passed() -> None:
    rows = [("a", "command", 0, 1.0), ("a", "ack", 5, 1.0), ("a", "command", 100, 2.0), ("b", "ack", 103, 3.0), ("a", "command", 990, 4.0)]
    names = ("key", "left_time", "right_time")
    both = [lambda _: True] * 2
    assert told(stepped(Pairs("command", "ack", 10), rows, fits=both), *names) == [("a", 0, 5)]
    assert told(stepped(Pairs("command", "ack", 10, join=Join.LEFT), rows, fits=both), *names[:2]) == [("a", 0), ("a", 100)]
    full = stepped(Pairs("command", "ack", 10, join=Join.FULL), rows, fits=both)
    assert {tuple(row.get(name) for name in names) for row in full} == {("a", 0, 5), ("a", 100, None), ("b", None, 103)}


def test_by_a_key_a_command_has_one_acknowledgement_the_first_that_carries_its_id() -> None:
    rows = [
        *(("a", "command", 0, 41.0), ("a", "command", 10, 42.0), ("a", "ack", 12, 42.0), ("a", "ack", 13, 42.0)),
        *(("a", "command", 20, NO_KEY), ("a", "ack", 21, NO_KEY), ("b", "ack", 11, 41.0)),
    ]
    by_key = Pairs("command", "ack", 30, join=Join.FULL, key="request")
    found = stepped(by_key, rows, fits=[lambda _: True] * 2)
    assert {tuple(row.get(name) for name in ("key", "left_time", "right_time")) for row in found} == {
        ("42", 10, 12),
        ("41", 0, None),
        ("41", None, 11),  # of another device
        ("42", None, 13),  # the command has its acknowledgement
        *((None, 20, None), (None, None, 21)),
    }
    inner = stepped(Pairs("command", "ack", 30, by=By.ZONE, key="request"), rows, fits=[lambda _: True] * 2)
    assert told(inner, "left_time", "right_time") == [(10, 12)]  # 41 is acknowledged by a device of another zone


def test_by_a_key_one_acknowledgement_answers_one_command_the_earliest_open_one() -> None:
    rows = [("a", "command", at, 7.0) for at in (0, 5, 10, 50)] + [("a", "ack", at, 7.0) for at in (6, 30, 31, 52)]
    by_key = Pairs("command", "ack", 20, join=Join.LEFT, key="request")
    for cuts in ([95], [3, 6, 7, 30, 31, 95], [*range(96)]):
        found = stepped(by_key, rows, cuts, [lambda _: True] * 2)
        assert {(row["left_time"], row.get("right_time")) for row in found} == {(0, 6), (5, None), (10, 30), (50, 52)}


def test_of_sessions_with_a_condition_only_readings_that_meet_it_count() -> None:
    rows = [("a", "running", at, float(at not in (10, 15, 20))) for at in range(0, 40, 5)]
    found = stepped(Sessions(10, "running", "value = 1"), rows, fits=[lambda value: value == 1])
    assert told(found, "session_start", "session_end", "count") == [(0, 15, 2), (25, 45, 3)]


def test_a_pair_by_zone_takes_readings_of_two_devices_and_only_those_that_meet_the_predicates() -> None:
    rows = [("a1", "door", 0, 1.0), ("a2", "light", -5, 1.0), ("a3", "light", 4, 0.0), ("b1", "light", 1, 1.0)]
    found = stepped(Pairs("door", "light", 5, -5, By.ZONE), rows, fits=[lambda _: True, lambda value: value == 1])
    assert told(found, "key", "left_device", "right_device") == [("a", "a1", "a2")]


def test_of_one_metric_no_reading_is_its_own_partner() -> None:
    rows = [("a", "door", 0, 1.0), ("a", "door", 3, 1.0)]
    found = stepped(Pairs("door", "door", 5, -5), rows, fits=[lambda _: True] * 2)
    assert told(found, "left_time", "right_time") == [(0, 3), (3, 0)]


OVEN = StateMachine(
    "power", "idle", (Transition("idle", "heating", "p"), Transition("heating", "idle", "n"), Transition("heating", "stuck", None, 100))
)
HOT = [lambda value: value > 100, lambda value: value < 50, lambda _: False]


def test_a_state_changes_by_a_reading_or_by_time_whichever_is_first() -> None:
    rows = [
        ("a", "power", 0, 0.0),
        ("a", "power", 10, 200.0),
        ("a", "power", 20, 70.0),
        ("a", "power", 30, 10.0),
        ("a", "power", 50, 300.0),
    ]
    found = stepped(OVEN, rows, fits=HOT)
    assert told(found, "changed_at", "state", "previous", "seconds", "value") == [
        (10, "heating", "idle", 10, 200),
        (30, "idle", "heating", 20, 10),
        (50, "heating", "idle", 20, 300),
        (150, "stuck", "heating", 100, None),
    ]


def test_a_device_is_silent_after_its_patience_and_heard_again_at_its_next_reading() -> None:
    rows = [("a", "power", 0, 0.0), ("a", "power", 60, 0.0), ("a", "power", 200, 0.0), ("b", "power", 950, 0.0)]
    found = stepped(Silence(60), rows)
    assert told(found, "changed_at", "state", "seconds") == [(120, "silent", 60), (200, "heard", 80), (260, "silent", 60)]


def test_distance_is_the_sum_of_the_ways_and_their_highest_speed() -> None:
    degree = 6_371_008.8 * np.pi / 180
    rows = [
        ("a", name, at, value)
        for at, *place in ((0, 0.0, 0.001), (50, 0.0, 0.002), (110, 0.0, 0.004))
        for name, value in zip(("lat", "lon"), place, strict=True)
    ]
    found = stepped(Distance("lat", "lon", 100), [*rows, ("a", "lat", 70, 9.0)])
    assert [(row["window_start"], row["value"], row["count"]) for row in found] == [
        (0, pytest.approx(0.001 * degree, abs=1e-5), 1),
        (100, pytest.approx(0.002 * degree, abs=1e-5), 1),
    ]
    assert found[1]["highest"] == pytest.approx(0.002 * degree / 60, abs=1e-5)


def test_what_is_no_position_is_counted_and_moves_nothing() -> None:
    degree = 6_371_008.8 * np.pi / 180
    places = [(0, 0.0, 0.0), (10, 50.0, 8.0), (60, 0.0, 0.0), (70, 91.0, 8.0), (80, 50.0, -181.0), (90, 50.001, 8.0)]
    places += [
        (110, 40.0, 8.0),
        (120, 40.0, 8.0),
        (150, 50.003, 8.0),
        (20_000, 40.0, 8.0),
        (90_000, -17.0, 179.9999),
        (90_010, -17.0, -179.9999),
    ]
    sides = ("lat", "lon")
    rows = [("a", side, at, value) for at, *place in places for side, value in zip(sides, place, strict=True)]
    rows.reverse()  # two messages of one instant, in any order, are one position
    for rows_of in (rows, sorted(rows, key=lambda row: row[2])):
        measured = stepped(Distance("lat", "lon", 100), rows_of, [100_000])
        measured.sort(key=lambda row: row["window_start"])
        assert [(row["window_start"], row["count"], row["glitches"]) for row in measured][:2] == [(0, 1, 4), (100, 1, 2)]
        assert [row["value"] for row in measured][:2] == pytest.approx([0.001 * degree, 0.002 * degree], abs=1e-5)
        assert [row["highest"] for row in measured][:2] == pytest.approx([0.001 * degree / 80, 0.002 * degree / 60], abs=1e-5)
        # What is far away counts once there was the time to get there, and the way over the antimeridian is short.
        assert [(row["window_start"], row["count"], row["glitches"]) for row in measured][2:] == [(20_000, 1, 0), (90_000, 2, 0)]


def test_a_duty_cycle_is_the_share_of_the_known_time() -> None:
    rows = [("a", "power", 10, 9.0), ("a", "power", 40, 0.0), ("a", "power", 130, 9.0)]
    found = stepped(DutyCycle("power", "p", 100, 120), rows, fits=[lambda value: value > 5])
    assert told(found, "window_start", "value", "known_seconds", "count") == [
        (0, round(30 / 90, 6), 90, 2),
        (100, 0.7, 100, 1),
        (200, 1.0, 50, 0),
    ]


@pytest.mark.parametrize(
    ("values", "rise", "glitches", "wraps", "resets"),
    [
        ([10, 15, 21], 11, 0, 0, 0),
        ([10, 0, 12], 2, 1, 0, 0),
        ([10, 0, 3], 3, 0, 0, 1),
        ([90, 95, 4], 14, 0, 1, 0),
        ([95, 0, 4], 9, 0, 1, 0),
        ([40, 7, 9], 9, 0, 0, 1),
        ([5, 0, 0, 7], 2, 1, 0, 0),
        ([0, 0, 3], 3, 0, 0, 0),
    ],
)
def test_a_counter_tells_glitch_wrap_and_reset_apart(values: list[float], rise: float, glitches: int, wraps: int, resets: int) -> None:
    (found,) = stepped(
        Counter(metric="energy", every_seconds=1000, wraps_at=100), [("a", "energy", at, value) for at, value in enumerate(values)]
    )
    assert (found["value"], found["glitches"], found["wraps"], found["resets"]) == (rise, glitches, wraps, resets)


KINDS: list[tuple[Kind, list[Any]]] = [
    (Sessions(7, "x"), []),
    (Sessions(7), []),
    (Pairs("x", "y", 9, -4, By.ZONE, Join.FULL, "p", "p"), [lambda value: value != 2, lambda value: value != 3]),
    (Pairs("x", "y", -2, -9, By.DEVICE, Join.FULL), [lambda _: True] * 2),
    (Pairs("x", "x", 9, 3, By.DEVICE, Join.LEFT), [lambda _: True] * 2),
    (Pairs("x", "y", 9, -4, By.ZONE, Join.FULL, key="request"), [lambda _: True, lambda value: value != 3]),
    (Pairs("x", "x", 9, -4, By.ZONE, Join.FULL, key="request"), [lambda _: True, lambda value: value != 3]),
    (Sessions(7, "x", "p"), [lambda value: value > 1]),
    (
        StateMachine(
            "x", "s", (Transition("s", "t", "p"), Transition("t", "u", None, 5), Transition("u", "s", "p"), Transition("t", "s", "p"))
        ),
        [lambda value: value > 2, lambda _: False, lambda value: value == 0, lambda value: value == 1],
    ),
    (Silence(6), []),
    (Distance("x", "y", 10), []),
    (Distance("x", "y", 10, 100_000.0), []),
    (DutyCycle("x", "p", 10, 13), [lambda value: None if value == 4 else value > 1]),
    (Counter(metric="x", every_seconds=10, wraps_at=4), []),
]


@pytest.mark.parametrize(("of", "fits"), KINDS, ids=lambda value: type(value).__name__)
@given(
    times=st.sets(st.tuples(st.sampled_from(["a1", "a2", "b"]), st.sampled_from("xy"), st.integers(0, 60)), max_size=40),
    values=st.lists(st.integers(0, 4), min_size=40, max_size=40),
    cuts=st.lists(st.integers(0, 90), max_size=7),
    order=st.randoms(use_true_random=False),
)
def test_rows_do_not_depend_on_how_time_is_cut_or_in_which_order_readings_came(  # noqa: PLR0917
    of: Kind, fits: list[Any], times: set[tuple[str, str, int]], values: list[int], cuts: list[int], order: Any
) -> None:
    taken = flow_of("f", of).metrics
    rows = [
        (device, metric, at, float(value))
        for (device, metric, at), value in zip(sorted(times), values, strict=False)
        if not taken or metric in taken
    ]
    shuffled = [*rows]
    order.shuffle(shuffled)
    identity = ("bronze_batch", "bronze_row", "left_bronze_batch", "left_bronze_row", "right_bronze_batch", "right_bronze_row")

    def without_identity(found: list[dict[str, Any]]) -> list[str]:
        return sorted(str({name: value for name, value in row.items() if name not in identity}) for row in found)

    assert without_identity(stepped(of, shuffled, [*sorted(cuts), 95], fits)) == without_identity(stepped(of, rows, [95], fits))
