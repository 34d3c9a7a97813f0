"""Alerts: samples in, changes of state out; the same however time is cut into slices."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.spec import Alert, Escalation, Flapping, Hours, NoData, Signal
from gold.alerts.states import State, judge
from gold.schema import SAMPLES

START = datetime(2026, 1, 5, tzinfo=UTC)
ALERT = Alert("hot", Signal("reading", "temperature"), "value > 280")
Sample = tuple[float, bool | None]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def table(rows: Sequence[tuple[str, float, bool | None]]) -> pa.Table:
    """Samples of entity, seconds and verdict; the value is the seconds, and each is ingested 5 s later."""
    samples = [
        {"entity": entity, "at": at(s), "verdict": verdict, "value": float(s), "ingested_at": at(s + 5), "bronze_batch": 7, "bronze_row": n}
        for n, (entity, s, verdict) in enumerate(rows)
    ]
    return pa.Table.from_pylist(samples, SAMPLES)


def rows_of(alert: Alert, samples: Sequence[Sample], until: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = judge(alert, {}, table([("oven", *sample) for sample in samples]), at(until)).changes.to_pylist()
    return rows


def changes(alert: Alert, samples: Sequence[Sample], until: float = 100_000) -> list[tuple[float, str]]:
    """Seconds and the state that one entity changes to."""
    return [((row["changed_at"] - START).total_seconds(), row["state"]) for row in rows_of(alert, samples, until)]


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
    assert [row["known_at"] for row in (pending, firing, normal)] == [at(15), at(70), at(95)]
    assert [row["bronze_row"] for row in (pending, firing, normal)] == [0, None, 2]
    assert [row["summary"] for row in (pending, firing)] == ["oven: 10.0 pending warning", "oven: 10.0 firing warning"]


def test_an_episode_has_one_id_and_the_next_one_another() -> None:
    alert = replace(ALERT, for_seconds=60, keep_firing_seconds=60)
    rows = rows_of(alert, [(0, True), (100, False), (120, True), (130, False), (500, True)], 520)
    assert [row["state"] for row in rows] == ["pending", "firing", "recovering", "firing", "recovering", "normal", "pending"]
    assert [rows[0]["alert_id"] == row["alert_id"] for row in rows] == [True] * 6 + [False]
    assert rows_of(replace(alert, name="hotter"), [(0, True)], 1)[0]["alert_id"] != rows[0]["alert_id"]


def test_each_entity_is_judged_by_itself_and_rows_are_in_order_of_time() -> None:
    rows = judge(replace(ALERT, for_seconds=60), {}, table([("a", 0, True), ("b", 10, True), ("a", 80, False)]), at(90)).changes.to_pylist()
    assert [(row["entity"], row["state"]) for row in rows] == [
        *(("a", "pending"), ("b", "pending"), ("a", "firing")),
        *(("b", "firing"), ("a", "normal")),
    ]


def test_the_states_that_were_given_are_not_changed() -> None:
    states = judge(ALERT, {}, table([("a", 0, False)]), at(1)).states
    before = asdict(states["a"])
    judge(ALERT, states, table([("a", 2, True)]), at(3))
    assert asdict(states["a"]) == before


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
SLICES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 180), st.sampled_from([True, False, None])), max_size=40).map(
    lambda rows: sorted({row[:2]: row for row in rows}.values(), key=lambda row: row[1])
)


def judged_in(cuts: Sequence[int], alert: Alert, rows: Sequence[tuple[str, float, bool | None]]) -> tuple[list[Any], dict[str, Any]]:
    """Rows and the last states when a slice ends at each of `cuts`; between two slices, states are JSON."""
    states, found, samples = dict[str, State](), list[Any](), table(rows)
    for begin, end in zip([0, *cuts], [*cuts, 250], strict=True):
        of_slice = samples.filter(pa.array([begin <= row[1] < end for row in rows], pa.bool_()))
        judged = judge(alert, states, of_slice, at(end))
        found += judged.changes.to_pylist()
        states = {
            entity: State(**state) for entity, state in json.loads(json.dumps({k: asdict(v) for k, v in judged.states.items()})).items()
        }
    return sorted(found, key=lambda row: (row["changed_at"], row["entity"])), {entity: asdict(state) for entity, state in states.items()}


@given(ALERTS, SLICES, st.lists(st.integers(0, 250), max_size=12).map(sorted))
def test_the_changes_are_the_same_however_time_is_cut(alert: Alert, rows: list[tuple[str, float, bool | None]], cuts: list[int]) -> None:
    whole = judged_in([], alert, rows)
    for slices in ([100], [30, 31, 60, 60, 90, 200], cuts, range(0, 250, 3)):
        assert judged_in(slices, alert, rows) == whole


@given(ALERTS, SLICES)
def test_each_change_begins_where_the_one_before_it_ended_and_an_episode_ends_in_normal(
    alert: Alert, rows: list[tuple[str, float, bool | None]]
) -> None:
    for entity in "ab":
        state, episode, last = "normal", None, START
        for row in (row for row in judged_in([], alert, rows)[0] if row["entity"] == entity):
            assert row["previous_state"] == state
            assert row["state"] != state or (state == "firing" and alert.escalate)
            assert row["since"] <= row["changed_at"] and row["changed_at"] >= last
            assert episode in (None, row["alert_id"])
            state, last = row["state"], row["changed_at"]
            episode = None if state == "normal" else row["alert_id"]


@pytest.mark.parametrize("verdict", [True, False, None])
def test_a_sample_that_repeats_the_last_one_changes_nothing(verdict: bool | None) -> None:
    rows = [(second, verdict) for second in range(0, 100, 10)]
    assert changes(ALERT, [*rows, (100, verdict)]) == changes(ALERT, rows)
