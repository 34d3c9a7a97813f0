"""Problems of devices by their arrivals: what came in, what is wrong out; each is gone when it has ended."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from orchestration.jobs.watched_devices import (
    Rest,
    Seen,
    SeenSource,
    Undeclared,
    WatchedDevices,
    add_rests,
    add_rows,
    add_sources,
    add_undeclared,
)
from orchestration.supervisor.device_health import Context, problems_of_devices, proposed
from orchestration.supervisor.problem import Problem, Severity
from orchestration.utc import to_micros
from silver.policy import Bounds
from tests.rows import at

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
NOON = to_micros(at("12:00:00"))
PUMPS = ("PMP-01", "PMP-02", "PMP-03")


def seen(device: str, at_us: int, **other: int | None) -> Seen:
    """One reading that was measured when it came."""
    return replace(Seen(device, "plant", 1, at_us, at_us, at_us, 0), **other)  # type: ignore[arg-type]


def bring(watched: WatchedDevices, at_us: int, devices: Sequence[str], value: float) -> None:
    add_rows(watched, [seen(device, at_us) for device in devices])
    add_rests(watched, [Rest(device, "pressure", value, 1, at_us, at_us) for device in devices])


def plant(until: int, every: int = 5 * SECOND, devices: Sequence[str] = PUMPS, begin: int = NOON) -> WatchedDevices:
    """Devices whose values change with each reading."""
    watched = WatchedDevices()
    for number, instant in enumerate(range(begin, until + 1, every)):
        bring(watched, instant, devices, 20.0 + number)
    return watched


def go_on(watched: WatchedDevices, begin: int, end: int, devices: Sequence[str] = PUMPS, value: float | None = None) -> None:
    """The same devices each 5 s, with a value that changes unless one is given."""
    for number, instant in enumerate(range(begin, end + 1, 5 * SECOND)):
        bring(watched, instant, devices, 100.5 + number if value is None else value)


def listed(watched: WatchedDevices, known_us: int, **context: object) -> list[Problem]:
    default = Context(known_us, {"plant": 0, "logger": 0}, registered=(*PUMPS, "door"), bounds={"logger": Bounds(600, 300)})
    return [*problems_of_devices(watched, replace(default, **context))]  # type: ignore[arg-type]


def sentences(problems: list[Problem]) -> list[str]:
    return [problem.sentence for problem in problems]


def test_a_quiet_hour_has_no_problem() -> None:
    assert listed(plant(NOON + HOUR), NOON + HOUR) == []


def test_a_device_is_silent_after_three_of_its_usual_pauses_and_no_more_when_it_is_back() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    go_on(watched, end + 5 * SECOND, end + 15 * SECOND, PUMPS[:2])
    assert listed(watched, watched.at_us) == []
    go_on(watched, end + 20 * SECOND, end + 25 * SECOND, PUMPS[:2])
    (problem,) = listed(watched, watched.at_us)
    assert (problem.severity, problem.subject, problem.view) == (Severity.WARNING, "device PMP-03", "/devices?device=PMP-03")
    assert problem.sentence.startswith("Device 'PMP-03' is silent; it usually sends every 5.0 s.")
    assert (problem.since and to_micros(problem.since), problem.command) == (end, "")
    go_on(watched, end + 30 * SECOND, end + 30 * SECOND)
    assert listed(watched, watched.at_us) == []


def test_a_device_that_sends_each_quarter_of_an_hour_is_not_silent_after_twenty_minutes() -> None:
    watched, end = plant(NOON + 3 * HOUR, 15 * MINUTE), NOON + 3 * HOUR
    assert listed(watched, end + 20 * MINUTE) == []
    go_on(watched, end + 46 * MINUTE, end + 46 * MINUTE, PUMPS[:1])
    assert [problem.subject for problem in listed(watched, watched.at_us)] == ["device PMP-02", "device PMP-03"]


def test_what_opens_and_closes_at_any_time_is_not_silent_for_its_longest_pause() -> None:
    watched, instant = WatchedDevices(), NOON
    for pause in (1, 40, 3, 200, 2, 2, 90, 1, 1, 1):
        instant += pause * SECOND
        add_rows(watched, [seen("door", instant)])
    assert listed(watched, instant + 100 * SECOND) == []


def test_where_all_devices_of_a_source_are_silent_one_problem_is_about_the_source() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    assert listed(watched, end + 25 * SECOND) == []
    (problem,) = listed(watched, end + 31 * SECOND)
    assert (problem.severity, problem.subject) == (Severity.CRITICAL, "source plant")
    assert problem.sentence == "Nothing comes from source plant any more: all 3 of its devices are silent. Look at what sends to it."
    assert listed(watched, end + HOUR, heard_since_us={}) == []


def test_a_source_that_is_taken_in_later_than_others_has_no_silent_devices() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    add_rows(watched, [replace(seen("door", end + 25 * SECOND), source="logger")])
    assert listed(watched, watched.at_us) == []


def test_while_no_run_listened_nobody_was_silent() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    assert listed(watched, end + HOUR, heard_since_us={"plant": end + HOUR - 10 * SECOND}) == []
    assert listed(watched, end + HOUR, heard_since_us={"plant": end + HOUR - 35 * SECOND}) != []


def test_a_backlog_says_nothing_about_the_usual_pauses_and_a_daily_file_is_not_silent_the_minute_after() -> None:
    watched = WatchedDevices()
    for day in range(30):  # files of a month, each a day of readings, within seconds
        row = seen("PMP-01", NOON + day * 5 * SECOND)
        add_rows(watched, [replace(row, event_us=NOON - (30 - day) * 24 * HOUR)])
    assert listed(watched, NOON + HOUR) == []


def test_a_device_that_conf_has_no_more_is_not_silent_but_gone() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    go_on(watched, end, end + MINUTE, PUMPS[:2])
    assert listed(watched, watched.at_us, registered=PUMPS[:2]) == []


def test_of_many_silent_devices_five_are_named() -> None:
    many = [f"dev-{number:02}" for number in range(12)]
    watched, end = plant(NOON + 10 * MINUTE, devices=many), NOON + 10 * MINUTE
    go_on(watched, end + 5 * SECOND, end + MINUTE, many[:2])
    problems = listed(watched, watched.at_us, registered=many)
    assert [problem.subject for problem in problems] == [*(f"device {name}" for name in many[2:7]), "device and 5 more"]
    assert problems[-1].sentence == "5 more devices are silent."


def test_a_sensor_is_stuck_at_ten_times_its_longest_rest_and_no_more_when_it_changes() -> None:
    watched, end = plant(NOON + 20 * MINUTE), NOON + 20 * MINUTE
    go_on(watched, end + 5 * SECOND, end + 9 * MINUTE, PUMPS, value=7.25)
    assert listed(watched, watched.at_us) == []
    go_on(watched, end + 9 * MINUTE + 5 * SECOND, end + 11 * MINUTE, PUMPS[:1], value=7.25)
    go_on(watched, end + 9 * MINUTE + 5 * SECOND, end + 11 * MINUTE, PUMPS[1:])
    (problem,) = listed(watched, watched.at_us)
    assert problem.sentence == "pressure of device 'PMP-01' is stuck: 7.25 in the last 132 readings. Look at the sensor."
    assert problem.since and to_micros(problem.since) == end + 5 * SECOND
    go_on(watched, watched.at_us + 5 * SECOND, watched.at_us + 5 * SECOND)
    assert listed(watched, watched.at_us) == []


@pytest.mark.parametrize("value", [0.0, 21.5], ids=["a pump that rests", "a switch that changed twice in an hour"])
def test_what_rests_is_not_stuck(value: float) -> None:
    watched = WatchedDevices()
    if value:
        for number in range(3):
            go_on(watched, NOON + number * 20 * MINUTE, NOON + (number + 1) * 20 * MINUTE - 5 * SECOND, value=value + number)
    else:
        watched = plant(NOON + HOUR)
    go_on(watched, NOON + HOUR, NOON + 4 * HOUR, value=value)
    assert listed(watched, watched.at_us) == []


def test_a_clock_that_is_ahead_is_named_until_it_is_set_wherever_its_readings_go() -> None:
    watched, end = plant(NOON + 10 * MINUTE), NOON + 10 * MINUTE
    future = seen("PMP-01", end)
    add_rows(watched, [replace(future, event_us=None, lead_us=3 * HOUR)])
    (problem,) = listed(watched, end)
    assert problem.sentence == "The clock of device 'PMP-01' is ahead by 3 h. Set it."
    assert listed(watched, end, bounds={"plant": Bounds(600, 4 * 3600)}) == []  # prices of tomorrow
    add_rows(watched, [seen("PMP-01", end)])
    assert listed(watched, end) == []


def test_a_device_that_nobody_declared_is_named_with_its_rows_and_then_what_admits_them() -> None:
    watched = WatchedDevices()
    for number in range(3):
        add_undeclared(watched, [("PMP-11", Undeclared("plant", 40, NOON + number * MINUTE, NOON + number * MINUTE))])
    (problem,) = listed(watched, NOON + HOUR)
    readings = "120 readings of source plant are in quarantine"
    assert problem.sentence == f"'PMP-11' is not in devices.yml: {readings}. Declare it there, then admit them."
    assert (problem.since and to_micros(problem.since), problem.severity) == (NOON, Severity.WARNING)
    assert problem.command == "tidemark quarantine retry --rule device_is_known"
    add_rows(watched, [seen("PMP-01", NOON + 23 * HOUR)])
    add_undeclared(watched, [])
    (problem,) = listed(watched, NOON + HOUR, registered=("PMP-11",))
    assert (problem.severity, problem.sentence) == (Severity.NOTICE, f"'PMP-11' is declared by now, and {readings}.")
    add_rows(watched, [seen("PMP-01", NOON + 25 * HOUR)])
    add_undeclared(watched, [])
    assert listed(watched, NOON + HOUR, registered=("PMP-11",)) == []


def test_a_name_with_broken_letters_is_a_notice_and_no_device_to_declare() -> None:
    watched = WatchedDevices()
    add_undeclared(watched, [("\ufffdMP-07", Undeclared("plant", 2, NOON, NOON))])
    (problem,) = listed(watched, NOON + HOUR)
    assert (problem.severity, problem.command) == (Severity.NOTICE, "")
    assert "has broken letters: 2 readings of source plant are in quarantine. Set the encoding" in problem.sentence


def test_names_that_are_no_devices_are_kept_in_bounds() -> None:
    watched = WatchedDevices()
    add_undeclared(watched, ((f"x{number}", Undeclared("plant", 1, NOON + number, NOON + number)) for number in range(500)))
    add_rows(watched, (seen(f"x{number}", NOON, event_us=None) for number in range(500)))
    assert (next(iter(watched.undeclared)), len(watched.undeclared), watched.devices) == ("x499", 100, {})


def late(batches: Sequence[tuple[int, int]]) -> Iterator[SeenSource]:
    """Looks at a source, with readings on time and late ones, those of six hours ago."""
    for number, (on_time, behind) in enumerate(batches):
        yield SeenSource("logger", on_time, behind, NOON + number * MINUTE, NOON - 6 * HOUR)


def test_a_source_of_which_all_is_late_is_named_with_the_reason_and_the_setting_until_something_is_on_time() -> None:
    watched = plant(NOON)
    add_sources(watched, late([(3, 1), (0, 5)]))
    assert listed(watched, NOON) == []
    add_sources(watched, late([(0, 2587)]))
    (problem,) = listed(watched, NOON)
    reason = "they come 6 h behind the newest reading of their lane, and its lateness_seconds is 600"
    remedy = "Set lateness_seconds of this source to 23,820 or more in sources.yml."
    assert problem.sentence == f"All 2,592 readings of source logger are late: {reason}. {remedy}"
    add_sources(watched, late([(0, 7), (1, 7)]))
    assert listed(watched, NOON) == []


def test_what_is_ahead_of_its_time_by_another_lane_says_nothing_about_a_source_that_is_late() -> None:
    watched = plant(NOON)
    add_rows(watched, [replace(seen("market", NOON), source="market", event_us=NOON + 36 * HOUR)])
    bounds = {"market": Bounds(600, 172_800), "plant": Bounds(600, 300), "logger": Bounds(600, 300)}
    add_sources(watched, late([(0, 20)]), bounds)
    (problem,) = listed(watched, NOON)
    assert "they come 6 h behind" in problem.sentence


@pytest.mark.parametrize(("behind", "bound"), [(0.0, 600), (599.0, 600), (21_600.0, 600), (3e9, 0)])
def test_the_lateness_that_is_proposed_is_enough(behind: float, bound: int) -> None:
    assert proposed(behind, bound) > max(behind, bound)
