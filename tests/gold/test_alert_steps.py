"""Alerts judge steps: the same rows however steps are cut into slices, past episodes, silence and hours."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts import changes as changes_of_states
from gold.alerts.edits import differences, ended, expected
from gold.alerts.spec import Alert, Hours, NoData, Signal
from gold.alerts.states import State
from gold.instants import to_micros
from tests.gold.alert_steps import ALERT, ALERTS, START, STEPS, Sample, Step, at, changes, judged, lived, seen


def test_a_spike_is_known_when_its_batch_is_ingested_and_so_is_its_end() -> None:
    spike = lived(ALERT, [Step(12, [("a", 0, False), ("a", 5, False)]), Step(17, [("a", 10, True)]), Step(22, [("a", 15, False)])], 30)
    assert [(row["state"], row["changed_at"], row["known_at"]) for row in spike] == [("firing", at(10), at(17)), ("normal", at(15), at(22))]


def test_within_a_batch_readings_are_judged_in_order_of_event_time() -> None:
    batch = Step(60, [("a", 30, False), ("a", 10, False), ("a", 20, True)])
    assert seen(lived(ALERT, [batch], 70)) == [(20, "firing"), (30, "normal")]


def test_a_site_that_is_six_hours_behind_fires_when_its_readings_come() -> None:
    hour = 3600
    steps = [Step(6 * hour, [("here", 6 * hour, False), ("far", 0, False)]), Step(6 * hour + 60, [("here", 6 * hour + 60, False)])]
    rows = lived(ALERT, [*steps, Step(6 * hour + 70, [("far", 65, True)])], 7 * hour)
    assert [(row["entity"], row["state"], row["changed_at"], row["is_past"]) for row in rows] == [("far", "firing", at(65), False)]


def test_a_reading_older_than_the_newest_changes_no_present_state_and_its_episode_is_past() -> None:
    steps = [Step(100, [("a", 100, True)]), Step(110, [("a", 10, False), ("a", 20, True), ("a", 30, False), ("a", 40, True)])]
    rows = lived(ALERT, [*steps, Step(120, [("a", 120, False)])], 200)
    assert [(*state, row["is_past"]) for state, row in zip(seen(rows), rows, strict=True)] == [
        (100, "firing", False),
        *((20, "firing", True), (30, "normal", True), (40, "firing", True), (40, "normal", True)),
        (120, "normal", False),
    ]
    assert {row["known_at"] for row in rows if row["is_past"]} == {at(110)}
    assert len({row["alert_id"] for row in rows}) == 3


def test_a_past_episode_lasts_for_the_duration_that_is_asked_for() -> None:
    alert = replace(ALERT, for_seconds=60)
    past = [("a", float(second), True) for second in (0, 30, 90)]
    rows = lived(alert, [Step(1000, [("a", 1000, False)]), Step(1010, past)], 1100)
    assert seen(rows) == [(0, "pending"), (60, "firing"), (90, "normal")]


def test_a_reading_behind_a_change_by_the_clock_does_not_take_it_back() -> None:
    alert = replace(ALERT, for_seconds=60)
    rows = lived(alert, [Step(5, [("a", 0, True)]), Step(75, [("a", 50, False)]), Step(80, [("a", 75, False)])], 100)
    assert [(*state, row["is_past"]) for state, row in zip(seen(rows), rows, strict=True)] == [
        *((0, "pending", False), (60, "firing", False), (75, "normal", False)),
    ]


def test_silence_is_told_by_the_clock_also_where_all_are_silent_and_nothing_arrives() -> None:
    alert = replace(ALERT, no_data=NoData(120, "fire"))
    rows = lived(alert, [Step(10, [("a", 8, False), ("b", 3, False)])], 1000)
    assert [(row["entity"], row["state"], row["changed_at"], row["known_at"]) for row in rows] == [
        ("b", "firing", at(123), at(130) + timedelta(microseconds=1)),
        ("a", "firing", at(128), at(130) + timedelta(microseconds=1)),
    ]


def test_a_gap_between_readings_that_come_together_is_no_silence() -> None:
    alert = replace(ALERT, no_data=NoData(120, "fire"))
    assert lived(alert, [Step(10_000, [("a", 0, False), ("a", 9_000, False)])], 10_000) == []


def test_a_device_that_sends_what_is_old_is_not_silent() -> None:
    alert = replace(ALERT, no_data=NoData(120, "fire"))
    ahead = [Step(float(wall), [("a", 300.0 if wall == 10 else float(wall), False)]) for wall in range(10, 290, 60)]
    assert lived(alert, ahead, 300) == []


def test_a_device_that_never_sent_anything_is_silent_and_what_it_sends_first_is_its_present_however_old() -> None:
    alert = replace(ALERT, no_data=NoData(120))
    states = expected({}, ["a"], to_micros(at(0)))
    rows = lived(alert, [Step(0), Step(500, [("a", -20_000, True)]), Step(510, [("a", -19_990, False)])], 600, states)
    assert seen(rows) == [(120, "no data"), (-20_000, "normal"), (-20_000, "firing"), (-19_990, "normal")]
    assert [row["is_past"] for row in rows] == [False] * 4


def test_what_is_expected_twice_or_was_seen_before_goes_on() -> None:
    states = judged(ALERT, {}, [Step(1, [("a", 0, True)])]).states
    assert expected(states, ["a"], 0) == states


def test_a_device_that_is_retired_ends_what_it_had_with_a_reason() -> None:
    states = judged(ALERT, {}, [Step(5, [("a", 0, True), ("b", 0, False)])]).states
    (row,) = ended(ALERT, states, to_micros(at(60)), "retired").to_pylist()
    assert (row["entity"], row["state"], row["previous_state"], row["reason"], row["known_at"]) == (
        "a",
        "normal",
        "firing",
        "retired",
        at(60),
    )
    assert row["alert_id"] == judged(ALERT, {}, [Step(5, [("a", 0, True)])]).changes["alert_id"][0].as_py()


def test_another_condition_tells_only_of_entities_whose_state_is_another_one() -> None:
    steps = [Step(5, [("a", 0, True), ("b", 0, True), ("c", 0, False)])]
    before = judged(ALERT, {}, steps).states
    after = judged(ALERT, {}, [Step(5, [("a", 0, True), ("b", 0, False), ("c", 0, True)])]).states
    rows = differences(ALERT, before, after, to_micros(at(60))).to_pylist()
    assert [(row["entity"], row["previous_state"], row["state"]) for row in rows] == [("b", "firing", "normal"), ("c", "normal", "firing")]
    assert {(row["reason"], row["known_at"]) for row in rows} == {("condition changed", at(60))}
    assert differences(ALERT, before, before, 0).num_rows == 0


HOUR_IN_BERLIN = Hours("Europe/Berlin", tuple(range(7)), 6 * 60, 7 * 60)


def test_silence_counts_within_the_hours_only_neither_at_their_opening_nor_at_their_end() -> None:
    alert = replace(ALERT, hours=HOUR_IN_BERLIN, no_data=NoData(600, "fire"))
    opens, day = 5 * 3600, 86_400  # 06:00 in Berlin in winter, by UTC

    def morning(number: int, last_minute: int) -> list[Sample]:
        return [(number * day + opens + 60 * minute, False) for minute in range(1, last_minute + 1, 4)]

    assert changes(alert, [*morning(0, 57), *morning(1, 57)], until=1 * day + 60_000) == []
    assert changes(alert, [*morning(0, 57), *morning(1, 33)], until=1 * day + 60_000) == [(day + opens + 43 * 60, "firing")]
    assert changes(alert, morning(0, 57), until=1.5 * day) == [(day + opens + 600, "firing")]  # not switched on in the morning


def test_a_duration_lies_within_the_hours_as_a_whole() -> None:
    alert = replace(ALERT, hours=HOUR_IN_BERLIN, for_seconds=600)
    opens, day = 5 * 3600.0, 86_400
    assert changes(alert, [(opens + 60, True)], until=day / 2) == [(opens + 60, "pending"), (opens + 660, "firing")]
    before_closing = [(opens + 3300, True), (day + opens + 60, False)]
    assert changes(alert, before_closing, until=2 * day) == [(opens + 3300, "pending"), (day + opens + 60, "normal")]


def test_an_interval_counts_if_all_of_it_lies_within_the_hours() -> None:
    alert = Alert("silent", Signal("count", every_seconds=300), "readings = 0", hours=HOUR_IN_BERLIN)
    opens = 5 * 3600.0
    of_all = [(opens + 300.0 * number, True) for number in (-1, 0, 1)]
    assert changes(alert, of_all, until=1e5) == [(opens + 300, "firing")]
    assert changes(alert, [(opens + 3600, True), (opens + 3900, False)], until=1e5) == [(opens + 3600, "firing")]


def judged_in(cuts: Sequence[int], alert: Alert, steps: Sequence[Step]) -> tuple[list[Any], dict[str, Any]]:
    """Rows and the last states when a slice ends before each step of `cuts`; between two slices, states are JSON."""
    states, rows = dict[str, State](), list[Any]()
    for begin, end in zip([0, *cuts], [*cuts, len(steps)], strict=True):
        changes, states, _ = judged(alert, states, steps[begin:end])
        rows += changes.to_pylist()
        states = {entity: State(**json.loads(json.dumps(asdict(state)))) for entity, state in states.items()}
    order = [(row["known_at"], row["changed_at"], row["entity"]) for row in rows]
    assert [key[0] for key in order] == sorted(key[0] for key in order)
    return sorted(rows, key=lambda row: (row["known_at"], row["changed_at"], row["entity"])), {k: asdict(v) for k, v in states.items()}


@given(ALERTS, STEPS, st.lists(st.integers(0, 12), max_size=7).map(sorted))
def test_the_changes_are_the_same_however_steps_are_cut(alert: Alert, steps: list[Step], cuts: list[int]) -> None:
    whole = judged_in([], alert, steps)
    for slices in ([min(cut, len(steps)) for cut in cuts], range(1, len(steps)), [len(steps) // 2]):
        assert judged_in(slices, alert, steps) == whole


@given(ALERTS, STEPS)
def test_each_change_begins_where_the_one_before_it_ended_and_an_episode_ends_in_normal(alert: Alert, steps: list[Step]) -> None:
    for entity in "ab":
        rows = [row for row in judged_in([], alert, steps)[0] if row["entity"] == entity]
        last, episode = State(), None
        state, changed_at = last.name, START - timedelta(days=1)
        for row in (row for row in rows if not row["is_past"]):
            assert row["previous_state"] == state
            assert row["state"] != state or (state == "firing" and alert.escalate)
            assert row["since"] <= row["changed_at"] and row["changed_at"] >= changed_at
            assert episode in (None, row["alert_id"])
            state, changed_at = row["state"], row["changed_at"]
            episode = None if state == "normal" else row["alert_id"]
        for _, of_step in groupby((row for row in rows if row["is_past"]), key=lambda row: row["known_at"]):
            assert [*of_step][-1]["state"] == "normal"


@given(ALERTS, STEPS)
def test_time_alone_changes_nothing_before_the_clock_rings(alert: Alert, steps: list[Step]) -> None:
    states, rings_at = dict[str, State](), None
    for step in steps:
        _, states, rings_at = judged(alert, states, [step])
        if rings_at is not None:
            just_before = (rings_at - to_micros(START) - 1) / 1e6
            assert judged(alert, states, [Step(just_before)]).changes.num_rows == 0 or just_before < step.wall


@pytest.mark.parametrize("verdict", [True, False, None])
def test_a_sample_that_repeats_the_last_one_changes_nothing(verdict: bool | None) -> None:
    rows = [(second, verdict) for second in range(0, 100, 10)]
    assert changes(ALERT, [*rows, (100, verdict)]) == changes(ALERT, rows)


@given(ALERTS, STEPS)
def test_samples_that_are_left_out_because_there_are_many_change_nothing(alert: Alert, steps: list[Step]) -> None:
    all_of_them = judged(alert, {}, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes_of_states, "MANY", 1)
        few_of_them = judged(alert, {}, steps)
    assert (few_of_them.changes.to_pylist(), few_of_them.states) == (all_of_them.changes.to_pylist(), all_of_them.states)
