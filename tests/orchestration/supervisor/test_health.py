"""The list of what is wrong, from what a lake remembers: each problem with its command, and gone when it has ended."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from expectations.suite import Expectation
from expectations.suite import Severity as Importance
from gold.alerts.messages import Message
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.notifications import DEAD, Outcome, record
from orchestration.conf.channel_settings import AddressSettings, ChannelSettings
from orchestration.conf.model import Conf, GateMode, Quality, Source
from orchestration.conf.pipeline_settings import ScheduleSettings
from orchestration.conf.sink_settings import FilesSettings, SinkSettings
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.outages import Kind, Outages, begin_outage, end_outage, note_odd
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow
from orchestration.jobs.watched_devices import Arrivals, WatchedDevice, WatchedDevices, watched_devices
from orchestration.quality.history import append_results
from orchestration.quality.outcome import Cause, Result, Run, TableResult
from orchestration.quality.outcome import Outcome as Found
from orchestration.storage.delta import table_id
from orchestration.storage.gate_state import GATED, Failure, GateState, write_gate_state
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import RUNS, RunOfJob
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.device_health import LEAST_ARRIVALS
from orchestration.supervisor.health import Problem, Severity, known_until, problems
from orchestration.supervisor.service_state import (
    STOPPED,
    PartState,
    RefusedConf,
    ServiceState,
    beat,
    folder_of,
    refused_conf,
    write_service,
)
from orchestration.supervisor.status import Status, read_status
from orchestration.utc import to_micros
from silver.policy import Unknown
from tests.lakes import SHAPE, bare_conf, write
from tests.rows import at

NOW = at("13:00:00")
WEBHOOK = ChannelSettings(webhook=AddressSettings(url="http://127.0.0.1:1/x"))


@pytest.fixture
def conf(tmp_path: Path) -> Iterator[Conf]:
    """Of a lake that somebody writes, on a machine with room."""
    conf = bare_conf(tmp_path)
    with sole_writer(conf.lake):
        beat(conf.lake)
        yield conf


@pytest.fixture(autouse=True)
def _machine_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, disk=100 * 1024**3, memory=8 * 1024**3)


def machine(monkeypatch: pytest.MonkeyPatch, disk: int, memory: int) -> None:
    monkeypatch.setattr("orchestration.storage.disk.free_bytes", lambda _: disk)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=memory))


def listed(conf: Conf) -> list[Problem]:
    return problems(conf, NOW)


def only(conf: Conf) -> Problem:
    (problem,) = listed(conf)
    return problem


def service(*parts: tuple[str, str, str | None], pid: int | None = 7) -> ServiceState:
    return ServiceState(1, [PartState(name, state, pid, None, "2026-01-01T12:00:00Z", 0, why) for name, state, why in parts])  # type: ignore[arg-type]


def test_a_lake_that_is_written_has_no_problem_and_that_is_known_up_to_the_last_beat(conf: Conf) -> None:
    assert listed(conf) == []
    os.utime((conf.lake / "up/heartbeat").local, (NOW.timestamp(), NOW.timestamp()))
    assert known_until(conf) == NOW


def test_what_up_was_ended_or_killed_with_is_critical_and_says_which(tmp_path: Path) -> None:
    conf = bare_conf(tmp_path)
    write_service(conf.lake, service(("streams", "running", None)))
    assert only(conf).sentence == "Nothing runs: `tidemark up` is gone without a word, and no event is taken in."
    write_service(conf.lake, service(("streams", "stopped", None), pid=None))
    problem = only(conf)
    assert (problem.severity, problem.subject, problem.command) == (Severity.CRITICAL, "lake", f"{conf.command} up")
    assert problem.sentence == "Nothing runs: `tidemark up` was ended, and no event is taken in."
    with sole_writer(conf.lake):
        assert listed(conf) == []


def test_a_lake_that_no_up_ever_ran_is_no_critical_problem_between_two_runs(tmp_path: Path) -> None:
    problem = only(bare_conf(tmp_path))
    assert (problem.severity, problem.sentence) == (Severity.WARNING, "Nothing writes the lake now: what is shown does not move.")


@pytest.mark.parametrize(
    ("state", "reason", "severity", "command"),
    [
        ("waiting", "it ended by SIGKILL", Severity.WARNING, ""),
        ("hangs", "it has said nothing for 60 s", Severity.CRITICAL, ""),
        ("stopped", f"the disk is odd, see `tidemark logs`\n  {STOPPED}", Severity.CRITICAL, "tidemark down && tidemark up --detach"),
        ("stopped", "steps have changed: run `tidemark replay`, or take it back", Severity.CRITICAL, "tidemark replay"),
    ],
)
def test_a_part_that_does_not_run_has_the_command_that_its_reason_names(
    conf: Conf, state: str, reason: str, severity: Severity, command: str
) -> None:
    with sole_writer(folder_of(conf.lake)):
        write_service(conf.lake, service(("streams", state, reason), ("page", "running", "it ended by SIGTERM")))
        problem = only(conf)
    assert (problem.severity, problem.subject, problem.command) == (severity, "part streams", command.replace("tidemark", conf.command))
    assert problem.sentence == f"streams {'hangs' if state == 'hangs' else f'is {state}'}: {reason}"


def test_a_conf_that_was_refused_is_named_until_it_is_taken_up(conf: Conf) -> None:
    refused = RefusedConf("groups.yml", 3, "kitchen.x is not a setting", "", "2026-01-01T12:00:00Z")
    refused_conf(conf.lake).write(refused)
    problem = only(conf)
    assert problem.sentence == "conf has changed and is not taken up; all goes on as before: groups.yml:3: kitchen.x is not a setting"
    assert problem.since == at("12:00:00")
    refused_conf(conf.lake).remove()
    assert listed(conf) == []


@pytest.mark.parametrize("kind", ["source", "collected", "channel", "problems", "sink"])
def test_what_is_down_is_critical_until_it_answers(conf: Conf, kind: Kind) -> None:
    sources = {"fleet": Source("fleet", SHAPE, LandingFolder(conf.lake.local))}
    made = replace(conf, sources=sources, channels={"fleet": WEBHOOK})
    if kind == "sink":
        made = replace(made, sinks={"fleet": SinkSettings(table="silver.readings", files=FilesSettings(path=str(conf.lake)))})
    begin_outage(conf.lake, kind, "fleet", "it is away", at("12:00:00"))
    problem = only(made)
    subject = {"collected": "source", "problems": "channel"}.get(kind, kind)
    assert (problem.severity, problem.subject, problem.since) == (Severity.CRITICAL, f"{subject} fleet", at("12:00:00"))
    assert problem.sentence == f"{subject} fleet is down: it is away"
    end_outage(conf.lake, kind, "fleet")
    assert listed(made) == []


def test_a_folder_that_is_not_there_yet_has_the_command_that_makes_it(conf: Conf) -> None:
    folder = conf.folder / "landing"
    made = replace(conf, sources={"plant": Source("plant", SHAPE, LandingFolder(folder))})
    assert (only(made).severity, only(made).command) == (Severity.WARNING, f"mkdir -p {folder}")
    folder.mkdir(parents=True)
    assert listed(made) == []


def test_files_that_a_run_could_not_read_are_a_problem_until_they_can_be(conf: Conf) -> None:
    made = replace(conf, sources={"plant": Source("plant", SHAPE, LandingFolder(conf.lake.local))})
    note_odd(conf.lake, "plant", {"/landing/b": "it may not be looked at", "/landing/a": "its time lies ahead"})
    assert (only(made).severity, only(made).subject) == (Severity.WARNING, "source plant")
    assert only(made).sentence == "Source plant has 2 paths to look at. Of /landing/a a run says: its time lies ahead."
    note_odd(conf.lake, "plant", {})
    assert listed(made) == []


def test_a_damaged_file_is_a_problem_itself_and_hides_no_other(conf: Conf) -> None:
    made = replace(conf, channels={"pager": WEBHOOK})
    begin_outage(conf.lake, "channel", "pager", "away", at("12:00:00"))
    for name in ("devices.json", "fields.json", "up/state.json"):
        (conf.lake / name).local.write_text("{}")
    subjects = [problem.subject for problem in listed(made)]
    assert subjects == ["channel pager", *["lake files"] * 3]
    assert known_until(made) is not None


def test_dead_letters_of_a_channel_are_counted(conf: Conf) -> None:
    made = replace(conf, channels={"pager": WEBHOOK})
    message = Message("m1", "hot", "firing", "critical", ("oven",), NOW, NOW, "oven is hot", 1.0, ("a1",))
    record(conf.lake, "pager", [Outcome(Waiting(message, ("m1",)), DEAD, "400")], NOW)
    assert only(made).sentence == "Channel pager has 1 message in ops.dead_letters, which nobody got."
    assert only(made).command == f"{conf.command} alerts resend pager"


def test_dead_rows_of_a_sink_are_counted_with_the_newest_reason_until_they_are_over(conf: Conf) -> None:
    made = replace(conf, sinks={"fleet": SinkSettings(table="silver.readings", files=FilesSettings(path=str(conf.lake)))})
    rows = [DeadRow("fleet", "silver.readings", key, f"odd {key}.", state, 0, "1", NOW) for key, state in (("1", "dead"), ("2", "dead"))]
    DEAD_ROWS.append(conf.lake, rows)
    assert only(made).sentence.startswith("Sink fleet has 2 rows in ops.dead_rows, which its target refused: odd ")
    assert (only(made).command, read_status(made, NOW).sinks[0]["dead_rows"]) == (f"{conf.command} sinks resend fleet", 2)
    DEAD_ROWS.append(conf.lake, [replace(row, state="over", at=NOW + timedelta(seconds=1)) for row in rows])
    assert listed(made) == []


def test_a_closed_gate_has_the_command_that_opens_it(conf: Conf) -> None:
    made = replace(conf, quality=Quality(gates={GATED: GateMode.HOLD}))
    write(LakeStore(conf), GATED, {"device_id": "oven", "bronze_batch": 0})
    table = table_id(LakeStore(conf).table_path(GATED))
    write_gate_state(conf.lake, GateState(GATED, table, -1, Failure(-1, 1, "2026-01-01 12:00:00Z", ("critical",))))
    problem = only(made)
    assert (problem.severity, problem.view, problem.since) == (Severity.CRITICAL, "/quality", at("12:00:00"))
    assert problem.command == f'{conf.command} quality release --table {GATED} --version 1 --reason ".."'


def test_a_critical_expectation_that_failed_is_listed_until_it_holds_and_a_warning_is_not(conf: Conf) -> None:
    for minute, is_success in enumerate((False, True)):
        results = (
            Result("own", Expectation("expect", f"Rule {rank} holds.", rank, {}), Found(is_success, "3 of 10 rows")) for rank in Importance
        )
        table = TableResult(GATED, 1, "id", 10, tuple(results))
        append_results(conf.lake, Run(f"r{minute}", at(f"12:0{minute}:00"), "plant", Cause.ASKED, (table,)))
        expected = [] if is_success else [f"{GATED}: Rule critical holds. (own) Found: 3 of 10 rows"]
        assert [problem.sentence for problem in listed(conf)] == expected


def test_a_device_is_silent_only_as_of_when_its_source_began_to_answer_again(conf: Conf) -> None:
    policy = replace(conf.policy, unknown_device=Unknown.UNASSIGNED)
    made = replace(conf, policy=policy, sources={"plant": Source("plant", SHAPE, LandingFolder(conf.lake.local))})
    an_hour_ago = to_micros(datetime.now(UTC) - timedelta(hours=1))
    devices = {"oven": WatchedDevice("plant", Arrivals(an_hour_ago, count=LEAST_ARRIVALS))}
    watched_devices(conf.lake).write(WatchedDevices(0, an_hour_ago, devices=devices))
    assert listed(made) == []  # this run has not heard of the source yet
    Outages(conf.lake, "source", lambda _: None).answered("plant")
    assert listed(made) == []
    later = datetime.now(UTC).timestamp() + 60
    os.utime((conf.lake / "up/heartbeat").local, (later, later))
    assert only(made).subject == "device oven"


def test_a_job_whose_last_run_did_not_end_well_is_listed(conf: Conf) -> None:
    made = replace(conf, schedules={"nightly": ScheduleSettings(cron="15 3 * * *", command="verify")})
    for minute, (outcome, reason) in enumerate([("broke", "2 rows differ"), ("done", None)]):
        started = at(f"03:1{minute}:00")
        RUNS.append(conf.lake, [RunOfJob("nightly", started, started, 1.0, outcome, 0, reason)])
        expected = [f"Job nightly did not end well: {reason}"] if reason else []
        assert [problem.sentence for problem in listed(made)] == expected


def test_disk_and_memory_of_a_mocked_machine_are_listed_when_there_is_little(conf: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, disk=1024**3, memory=100 * 1024**2)
    assert {problem.subject: problem.severity for problem in listed(conf)} == {"lake disk": "warning", "lake memory": "warning"}
    machine(monkeypatch, disk=1024**2, memory=8 * 1024**3)
    assert only(conf).severity is Severity.CRITICAL


def lagging(**seconds: float) -> Status:
    flows = [{"flow": name.replace("_", "."), "lag_seconds": lag} for name, lag in seconds.items()]
    return Status(NOW, [], flows, [])


def test_of_lags_beyond_minutes_one_culprit_is_named_and_none_below(conf: Conf) -> None:
    assert problems(conf, NOW, lagging(silver_readings=170.0, gold_kitchen=14.0)) == []
    (problem,) = problems(conf, NOW, lagging(silver_readings=400.0, gold_kitchen=400.0, silver_ledger=9000.0))
    assert problem.subject in ("query silver.readings", "query gold.kitchen")
    assert problem.since == NOW - timedelta(seconds=400)
    assert problem.sentence.startswith("Rows wait for 6 min 40 s in ")


def test_the_worst_comes_first_and_then_the_oldest(conf: Conf) -> None:
    made = replace(conf, channels={"pager": WEBHOOK, "shift": WEBHOOK})
    refused_conf(conf.lake).write(RefusedConf("", None, "no", "", "2026-01-01T09:00:00Z"))
    begin_outage(conf.lake, "channel", "pager", "away", at("12:00:00"))
    begin_outage(conf.lake, "channel", "shift", "away", at("11:00:00"))
    assert [problem.subject for problem in listed(made)] == ["channel shift", "channel pager", "conf"]
