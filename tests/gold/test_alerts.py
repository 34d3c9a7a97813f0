"""Alerts: samples in, changes of state out."""

from dataclasses import asdict, replace
from datetime import UTC, datetime

from gold.alerts.spec import Escalation, Flapping, Hours, NoData
from tests.gold.alert_steps import ALERT, START, Sample, Step, at, changes, judged, rows_of


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


def test_the_reason_of_an_anomaly_is_in_the_summary_of_what_fires_and_of_no_end() -> None:
    samples: list[Sample] = [(0, False), (10, True), (20, False)]
    by_default = [row["summary"] for row in rows_of(replace(ALERT, for_seconds=5), samples, 100)]
    assert by_default == ["hot: oven is pending: 10 s", "hot: oven is firing: 10 s", "hot: oven is normal"]
    escalating = replace(ALERT, summary="{entity}: {reason}", escalate=(Escalation(5, "high"),))
    assert [row["summary"] for row in rows_of(escalating, samples, 100)] == ["oven: 10 s", "oven: 10 s", "oven: no reason"]


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
