"""Alerts: samples in, changes of state out; the same however steps are cut into slices."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.edits import differences, ended, expected
from gold.alerts.spec import Alert, Escalation, Flapping, Hours, NoData, Signal
from gold.alerts.states import Judged, State, judge
from gold.instants import to_micros
from gold.schema import SAMPLES

START = datetime(2026, 1, 5, tzinfo=UTC)
ALERT = Alert("hot", Signal("reading", "temperature"), "value > 280")
UNDERWAY = 5
"""Seconds from a sample to its ingestion, where a test says nothing of it."""
Sample = tuple[float, bool | None]


class Step(NamedTuple):
    """A bronze batch, or a tick where there are no samples. `wall`: its clock in seconds; samples are of entity, seconds and verdict."""

    wall: float
    samples: Sequence[tuple[str, float, bool | None]] = ()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def table(steps: Sequence[Step]) -> pa.Table:
    """Samples of steps; the value is the seconds."""
    samples = [
        {"entity": entity, "at": at(s), "verdict": verdict, "value": float(s), "ingested_at": at(step.wall), "step": number}
        | {"bronze_batch": 7, "bronze_row": row}
        for number, step in enumerate(steps)
        for row, (entity, s, verdict) in enumerate(sorted(step.samples, key=lambda sample: sample[:2]))
    ]
    return pa.Table.from_pylist(samples, SAMPLES)


def judged(alert: Alert, states: dict[str, State], steps: Sequence[Step]) -> Judged:
    return judge(alert, states, table(steps), [to_micros(at(step.wall)) for step in steps])


def lived(alert: Alert, steps: Iterable[Step], until: float, states: dict[str, State] | None = None) -> list[dict[str, Any]]:
    """Rows of a run that is there from step to step, and ticks when time alone would change something."""
    states, rows, rings_at = states or {}, list[dict[str, Any]](), None
    for step in [*steps, Step(until + UNDERWAY)]:
        while True:
            tick = None if rings_at is None or rings_at >= to_micros(at(step.wall)) else Step((rings_at - to_micros(START)) / 1e6)
            changes, states, rings_at = judged(alert, states, [tick or step])
            rows += changes.to_pylist()
            if tick is None:
                break
    return rows


def rows_of(alert: Alert, samples: Sequence[Sample], until: float) -> list[dict[str, Any]]:
    """Rows where each sample is ingested by itself."""
    return lived(alert, [Step(second + UNDERWAY, [("oven", second, verdict)]) for second, verdict in samples], until)


def changes(alert: Alert, samples: Sequence[Sample], until: float = 100_000) -> list[tuple[float, str]]:
    """Seconds and the state that one entity changes to."""
    return seen(rows_of(alert, samples, until))


def seen(rows: Iterable[dict[str, Any]]) -> list[tuple[float, str]]:
    return [((row["changed_at"] - START).total_seconds(), row["state"]) for row in rows]


def test_without_a_duration_it_fires_at_once_and_ends_at_once() -> None:
    assert changes(ALERT, [(0, False), (10, True), (20, True), (30, False)]) == [(10, "firing"), (30, "normal")]


def test_a_first_sample_that_is_over_is_no_change() -> None:
    assert changes(ALERT, [(0, False), (10, None)]) == []


def test_it_fires_by_the_clock_of_event_time_without_a_second_sample() -> None:
    alert = replace(ALERT, for_seconds=120)
    assert changes(alert, [(10, True)], until=129) == [(10, "pending")]
    assert changes(alert, [(10, True)], until=130) == [(10, "pending"), (130, "firing")]


def test_a_pending_alert_ends_at_a_sample_that_is_over_and_begins_anew() -> None:
    samples = [(10, True), (129, False), (140, True)]
    assert changes(replace(ALERT, for_seconds=120), samples) == [(10, "pending"), (129, "normal"), (140, "pending"), (260, "firing")]


def test_a_sample_at_the_instant_of_the_clock_comes_behind_it() -> None:
    assert changes(replace(ALERT, for_seconds=120), [(10, True), (130, False)]) == [(10, "pending"), (130, "firing"), (130, "normal")]


def test_it_fires_at_the_nth_true_sample_in_a_row() -> None:
    samples: list[Sample] = [(0, True), (1, True), (2, False), (3, True), (4, None), (5, True), (6, True)]
    assert changes(replace(ALERT, for_times=3), samples) == [(0, "pending"), (2, "normal"), (3, "pending"), (6, "firing")]


def test_between_two_thresholds_it_keeps_what_was() -> None:  # a recovery threshold, as asked for in grafana#87226
    samples: list[Sample] = [(0, None), (10, True), (20, None), (30, True), (40, None), (50, False), (60, None)]
    assert changes(ALERT, samples) == [(10, "firing"), (50, "normal")]


def test_it_ends_when_it_was_over_for_the_whole_duration() -> None:  # clear by duration, as asked for in thingsboard#11803
    alert = replace(ALERT, keep_firing_seconds=300)
    samples: list[Sample] = [(0, True), (100, False), (399, True), (500, False), (600, None), (700, False)]
    assert changes(alert, samples) == [(0, "firing"), (100, "recovering"), (399, "firing"), (500, "recovering"), (800, "normal")]


def test_no_data_changes_nothing_unless_asked() -> None:  # grafana#105571: it resolved, and told people that all was well
    assert changes(ALERT, [(0, True)]) == [(0, "firing")]
    assert changes(ALERT, [(0, False)]) == []


def test_no_data_kept_lets_a_firing_alert_fire_and_says_so_of_a_normal_one() -> None:
    alert = replace(ALERT, no_data=NoData(900))
    assert changes(alert, [(0, True), (5000, True)]) == [(0, "firing")]
    assert changes(alert, [(0, False), (900, False)], until=1800) == []
    assert changes(alert, [(0, False), (901, True)], until=1000) == [(900, "no data"), (901, "normal"), (901, "firing")]


def test_no_data_fires_and_the_next_sample_decides() -> None:
    alert = replace(ALERT, no_data=NoData(900, "fire"))
    assert changes(alert, [(0, False), (1000, False)], until=1100) == [(900, "firing"), (1000, "normal")]
    assert changes(alert, [(0, False), (1000, None)], until=1100) == [(900, "firing"), (1000, "normal")]
    assert changes(alert, [(0, False), (1000, True)], until=1100) == [(900, "firing")]
    assert changes(alert, [(0, True), (1000, None)], until=1100) == [(0, "firing")]


def test_no_data_resolves_after_so_many_times_the_time() -> None:  # prometheus#17482: a series that is gone never resolves
    alert = replace(ALERT, no_data=NoData(900, "resolve", 3))
    assert changes(alert, [(0, True)]) == [(0, "firing"), (900, "no data"), (2700, "normal")]
    assert changes(alert, [(0, True), (1000, None)], until=1100) == [(0, "firing"), (900, "no data"), (1000, "firing")]
    assert changes(alert, [(0, True), (1000, False)], until=1100) == [(0, "firing"), (900, "no data"), (1000, "normal")]
    assert changes(replace(alert, no_data=NoData(900, "resolve", 1)), [(0, True)]) == [(0, "firing"), (900, "normal")]


def test_a_recovering_alert_ends_by_its_clock_though_nothing_comes() -> None:
    alert = replace(ALERT, keep_firing_seconds=1000, no_data=NoData(900, "resolve"))
    assert changes(alert, [(0, True), (10, False)]) == [(0, "firing"), (10, "recovering"), (1010, "normal")]


def test_the_severity_rises_while_it_fires_and_not_while_it_recovers() -> None:
    steps = (Escalation(600, "high"), Escalation(1200, "critical"))
    alert = replace(ALERT, escalate=steps, keep_firing_seconds=500)
    rows = rows_of(alert, [(0, True), (1100, False), (1300, True), (1400, False)], 5000)
    assert [((row["changed_at"] - START).total_seconds(), row["previous_state"], row["state"], row["severity"]) for row in rows] == [
        (0, "normal", "firing", "warning"),
        (600, "firing", "firing", "high"),
        (1100, "firing", "recovering", "high"),
        (1300, "recovering", "firing", "critical"),
        (1400, "firing", "recovering", "critical"),
        (1900, "recovering", "normal", "critical"),
    ]


def test_samples_outside_of_the_hours_change_nothing_also_when_clocks_change() -> None:
    hours = Hours("Europe/Berlin", tuple(range(7)), 6 * 60, 22 * 60)
    for day, hour_in_utc in ((datetime(2026, 3, 28, tzinfo=UTC), 5), (datetime(2026, 3, 29, tzinfo=UTC), 4)):
        opens = ((day - START).total_seconds()) + hour_in_utc * 3600
        samples: list[Sample] = [(opens - 1, True), (opens, True), (opens + 16 * 3600, False), (opens + 24 * 3600, False)]
        assert changes(replace(ALERT, hours=hours), samples, until=1e7) == [(opens, "firing"), (opens + 24 * 3600, "normal")]


def test_hours_over_midnight_belong_to_the_day_on_which_they_begin() -> None:
    alert = replace(ALERT, hours=Hours("UTC", (0,), 22 * 60, 6 * 60))  # START is a Monday
    inside, after = 29 * 3600.0, 30 * 3600.0
    assert changes(alert, [(3600, True), (after, True)], until=1e6) == []
    assert changes(alert, [(inside, True), (after, False)], until=1e6) == [(inside, "firing")]


def test_one_row_stands_for_all_changes_while_it_flaps() -> None:
    alert = replace(ALERT, flapping=Flapping(0.5, 4))
    to_and_fro: list[Sample] = [(n, n % 2 == 1) for n in range(10)]  # from the third change on there are more than two among four
    calm: list[Sample] = [(n, True) for n in range(10, 20)]
    assert changes(alert, [*to_and_fro, *calm]) == [(1, "firing"), (2, "normal"), (3, "flapping"), (13, "firing")]


def test_a_row_says_since_when_by_which_event_and_in_words() -> None:
    alert = replace(ALERT, for_seconds=60, summary="{entity}: {value:.1f} {state} {severity}")
    pending, firing, normal = rows_of(alert, [(10, True), (20, True), (90, False)], 100)
    assert [row["since"] for row in (pending, firing, normal)] == [at(10), at(10), at(90)]
    assert [row["known_at"] for row in (pending, firing, normal)] == [at(15), at(75), at(95)]
    assert [row["bronze_batch"] for row in (pending, firing, normal)] == [7, None, 7]
    assert [row["summary"] for row in (pending, firing)] == ["oven: 10.0 pending warning", "oven: 10.0 firing warning"]


def test_an_episode_has_one_id_and_the_next_one_another() -> None:
    alert = replace(ALERT, for_seconds=60, keep_firing_seconds=60)
    rows = rows_of(alert, [(0, True), (100, False), (120, True), (130, False), (500, True)], 520)
    assert [row["state"] for row in rows] == ["pending", "firing", "recovering", "firing", "recovering", "normal", "pending"]
    assert [rows[0]["alert_id"] == row["alert_id"] for row in rows] == [True] * 6 + [False]
    assert rows_of(replace(alert, name="hotter"), [(0, True)], 1)[0]["alert_id"] != rows[0]["alert_id"]


def test_each_entity_is_judged_by_itself_and_rows_are_in_order_of_time() -> None:
    steps = [Step(85, [("a", 0, True), ("b", 10, True), ("a", 80, False)]), Step(90)]
    rows = judged(replace(ALERT, for_seconds=60), {}, steps).changes.to_pylist()
    assert [(row["entity"], row["state"]) for row in rows] == [("a", "pending"), ("b", "pending"), ("a", "firing"), ("a", "normal")]
    rows = judged(replace(ALERT, for_seconds=60), {}, [*steps, Step(145)]).changes.to_pylist()
    assert [(row["entity"], row["state"], row["changed_at"]) for row in rows[4:]] == [("b", "firing", at(70))]


def test_the_states_that_were_given_are_not_changed() -> None:
    states = judged(ALERT, {}, [Step(1, [("a", 0, False)])]).states
    before = asdict(states["a"])
    judged(ALERT, states, [Step(3, [("a", 2, True)])])
    assert asdict(states["a"]) == before


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


def optional(setting: st.SearchStrategy[Any], absent: Any = None) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(absent), setting)


ALERTS = st.builds(
    lambda wait, **others: replace(ALERT, **wait, **others),
    wait=st.sampled_from([{}, {"for_seconds": 7}, {"for_times": 3}]),
    keep_firing_seconds=st.sampled_from([0, 5, 20]),
    no_data=optional(st.builds(NoData, st.integers(1, 15), st.sampled_from(["keep", "fire", "resolve"]), st.integers(1, 3))),
    escalate=st.sampled_from([(), (Escalation(4, "high"), Escalation(11, "critical"))]),
    hours=optional(st.just(Hours("Europe/Berlin", (0, 1), 60, 62))),  # 00:00 to 00:02 in UTC, on the day of START
    flapping=optional(st.builds(Flapping, st.sampled_from([0.3, 0.5]), st.integers(2, 6))),
)
OF_STEP = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 180), st.sampled_from([True, False, None])), max_size=6)


@st.composite
def steps_of_a_run(draw: st.DrawFn) -> list[Step]:
    """Batches with samples in any order, and ticks; each instant of an entity once."""
    taken, steps, wall = set[tuple[str, int]](), list[Step](), 0
    for samples in draw(st.lists(OF_STEP, min_size=1, max_size=12)):
        wall += draw(st.integers(0, 40))
        new = {sample[:2]: sample for sample in samples if sample[:2] not in taken}
        taken |= new.keys()
        steps.append(Step(wall, [*new.values()]))
    return steps


STEPS = steps_of_a_run()


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
