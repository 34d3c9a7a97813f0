"""Messages that come again, by an identity of their own: a repeat has the time of the first, whatever it says."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bronze.events import ARRIVED
from silver.measurements import REPEAT, measurements
from silver.repeats import Repeats
from silver.spec import Origin, PayloadFormat, Time
from tests.silver.test_measurements import of_silver, of_verify

UPLINK = PayloadFormat("json", Origin("d"), Time("t", "epoch_s"), metrics={"a": "a", "b": "b"}, id=Origin("n"))


def arrived(*payloads: dict[str, Any] | bytes, headers: Any = None) -> pa.Table:
    contents = [payload if isinstance(payload, bytes) else json.dumps(payload).encode() for payload in payloads]
    rows = [{"payload": content, "source": "plant", "position": "a/0/1", "headers": headers} for content in contents]
    return pa.Table.from_pylist(rows, ARRIVED)


def times(events: pa.Table, shape: PayloadFormat = UPLINK) -> list[float]:
    rows = pa.concat_tables(measurements(events, shape, 1_000)).sort_by([("event_at", "ascending"), ("part", "ascending")])
    return [at and at.timestamp() for at in rows["event_time"].to_pylist()]


def test_a_repeat_has_the_time_of_the_first_over_batches_too() -> None:
    repeats = Repeats(60)
    first = repeats.marked(arrived({"d": "x", "n": 1, "t": 100, "a": 1, "b": 2}, {"d": "x", "n": 1, "t": 108.5, "a": 1, "b": 2}), UPLINK)
    second = repeats.marked(arrived({"d": "x", "n": 1, "t": 120, "a": 1}, {"d": "x", "n": 2, "t": 121, "a": 1}), UPLINK)
    assert times(first) == [100, 100, 100, 100]
    assert times(second) == [100, 121]


def test_the_same_id_of_another_device_or_of_a_time_beyond_the_lateness_is_no_repeat() -> None:
    events = arrived(*({"d": d, "n": 1, "t": t, "a": 1} for d, t in (("x", 100), ("y", 108), ("x", 161), ("x", 170), ("x", 130))))
    assert times(Repeats(60).marked(events, UPLINK)) == [100, 108, 161, 161, 161]


def test_messages_of_one_frame_that_bring_a_metric_each_are_no_repeats_of_each_other() -> None:
    shape = replace(UPLINK, metrics={}, metric=Origin("m"), value=Origin("v"))
    events = arrived(*({"d": "x", "n": 1, "t": t, "m": m, "v": 1} for m, t in (("a", 100), ("b", 101), ("a", 102))))
    assert times(Repeats(60).marked(events, shape), shape) == [100, 101, 100]


def test_a_message_without_an_id_a_device_or_a_time_is_no_repeat() -> None:
    events = arrived(
        {"d": "x", "t": 1, "a": 1}, {"d": "x", "t": 2, "a": 1}, {"n": 1, "t": 3, "a": 1}, {"n": 1, "d": "x", "a": 1}, b"{", b""
    )
    assert Repeats(60).marked(events, UPLINK) is events


def test_measurements_of_an_element_each_keep_their_distance_from_each_other() -> None:
    shape = replace(UPLINK, time=Time("each.t", "epoch_s"), metrics={"a": "each.a"}, each="l")
    events = arrived(*({"d": "x", "n": 1, "l": [{"t": t, "a": 1}, {"t": t + 5, "a": 2}]} for t in (100, 110)))
    assert times(Repeats(60).marked(events, shape), shape) == [100, 105, 100, 105]


SHIFT = st.integers(-(10**17), 10**17).map(lambda shift: str(shift).encode()) | st.binary(max_size=4)


@given(st.lists(st.tuples(st.sampled_from([REPEAT, "x"]), SHIFT), max_size=3), st.sampled_from([0, 253402300799, "x"]))
def test_what_a_sender_writes_into_that_header_ends_nothing_and_is_read_as_verify_reads_it(headers: Any, at: Any) -> None:
    events = arrived({"d": "x", "t": at, "a": 1}, headers=headers)
    assert of_silver(events, UPLINK) == of_verify(events, UPLINK)
