"""The gate of silver.readings: what has passed is handed over, what failed is not, until somebody releases it. Without Spark."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from expectations.suite import suite
from orchestration.cli.app import exit_code
from orchestration.conf.model import GateMode, Quality
from orchestration.engine import lake as lakes
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.quality import quality_tables, suites
from orchestration.storage.commit import append_rows, create
from orchestration.storage.gate_state import RELEASES, read_gate_state
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from orchestration.storage.positions import late_rows_known
from orchestration.supervisor.quality_gate import GateClosedError, QualityGate
from orchestration.supervisor.replay import refuse_unless_passed
from tests.lakes import bare_conf, write
from tests.orchestration.quality.test_quality import DEVICE, kept
from tests.rows import INGESTED_AT, at

READINGS, LATE = "silver.readings", "silver.late"
BAD = None
"""A row without a device."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose gate holds, that the command line opens too. Works in `tmp_path`."""
    conf = bare_conf(tmp_path, quality=Quality(gates={READINGS: GateMode.HOLD}))
    made = Lake(conf)
    monkeypatch.setattr(lakes.Lake, "open", lambda folder: made)
    monkeypatch.setattr("orchestration.storage.confs.load", lambda folder: conf)
    of_gate = [suite(table.split(".")[1], {"table": table, "expectations": [DEVICE]}) for table in (READINGS, LATE)]
    monkeypatch.setattr(suites, "packaged", lambda: of_gate)
    monkeypatch.chdir(tmp_path)
    create(made.table_path(LEDGER), LEDGER_SCHEMA)
    add(made, READINGS)
    add(made, LATE)
    return made


def add(lake: Lake, name: str, *device_ids: str | None) -> None:
    """A version of the table; without devices an empty one."""
    columns = {"metric": "temperature", "event_time": at("11:59:00"), "value": 1.0, "ingested_at": INGESTED_AT, "bronze_batch": 0}
    write(lake, name, *(columns | {"device_id": device_id} for device_id in device_ids))


def gate_of(lake: Lake, told: list[str] | None = None) -> QualityGate:
    """Of a run that begins now: it knows only what is on the disk."""
    return QualityGate(lake, threading.Event(), (told if told is not None else []).append)


def is_open(lake: Lake) -> bool:
    return gate_of(lake).is_open()


def passed(lake: Lake) -> int:
    return read_gate_state(lake.conf.lake, READINGS, lake.table_path(READINGS)).version


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert exit_code(["quality", "release", *arguments]) == 2
    return capsys.readouterr().err


def test_without_a_gate_that_holds_nothing_is_checked(lake: Lake) -> None:
    add(lake, READINGS, BAD)
    off = Lake(replace(lake.conf, quality=Quality()))
    assert is_open(off)
    assert not (lake.conf.lake / "quality").is_dir()


def test_what_passes_is_handed_over_and_evaluated_once(lake: Lake) -> None:
    add(lake, READINGS, "oven")
    assert is_open(lake)
    assert passed(lake) == 1
    DeltaTable(lake.table_path(READINGS).local).optimize.compact()
    assert is_open(lake)
    assert not (lake.conf.lake / "quality" / "results").is_dir()  # only failures are kept: a round comes every few seconds


def test_a_failure_closes_the_gate_for_every_run_and_whatever_comes_after_it(lake: Lake) -> None:
    add(lake, READINGS, "oven")
    assert is_open(lake)
    add(lake, READINGS, "oven", BAD, BAD)
    told: list[str] = []
    closed = gate_of(lake, told)
    assert not closed.is_open()
    add(lake, READINGS, "oven")
    assert not closed.is_open()
    assert not is_open(lake)
    assert passed(lake) == 1
    (once,) = told
    assert "the gate of silver.readings is closed" in once
    assert "version 2 does not pass" in once
    assert "critical: silver.readings: Every reading names its device. Found: 2 of 3 rows" in once
    assert "tidemark quality release --table silver.readings --version 2 --reason" in once
    with pytest.raises(GateClosedError, match="2 of 3 rows") as refused:
        closed.refuse_closed()
    assert refused.value.exit_code == 1
    (row,) = kept(lake)
    assert (row["cause"], row["table_version"], row["since_version"], row["is_success"]) == ("gate", 2, 1, False)


def test_a_release_lets_through_up_to_a_version_and_no_further(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    for device in ("oven", BAD, "oven", BAD):
        add(lake, READINGS, device)
    assert not is_open(lake)
    assert "versions 0 to 4 can be released" in refusal(capsys, "--version", "5", "--reason", "calibration")
    assert "--reason is empty" in refusal(capsys, "--version", "2", "--reason", " ")
    assert exit_code(["quality", "release", "--version", "2", "--reason", "calibration"]) == 0
    assert not is_open(lake)
    assert passed(lake) == 2
    assert "versions 3 to 4 can be released" in refusal(capsys, "--version", "2", "--reason", "again")
    assert exit_code(["quality", "release", "--version", "4", "--reason", "the same"]) == 0
    assert is_open(lake)
    assert "no version of silver.readings is held back" in refusal(capsys, "--version", "4", "--reason", "again")
    first, second = RELEASES.rows(lake.conf.lake)
    assert (first.version, first.after_version, first.reason, first.table_id) == (
        *(2, -1, "calibration"),
        str(DeltaTable(lake.table_path(READINGS).local).metadata().id),
    )
    assert "@" in first.released_by
    assert first.failed == ("critical: silver.readings: Every reading names its device. Found: 2 of 4 rows",)
    assert (second.version, second.after_version, second.failed) == (
        *(4, 2),
        ("critical: silver.readings: Every reading names its device. Found: 1 of 2 rows",),
    )


def test_a_release_holds_when_the_gate_state_is_lost_and_later_versions_are_checked_again(lake: Lake) -> None:
    add(lake, READINGS, BAD)
    assert not is_open(lake)
    assert exit_code(["quality", "release", "--version", "1", "--reason", "calibration"]) == 0
    for file in (lake.conf.lake.local / "quality" / "gates").iterdir():
        file.unlink()
    assert is_open(lake)
    add(lake, READINGS, BAD)
    assert not is_open(lake)


def test_a_table_that_is_made_anew_has_to_pass_anew(lake: Lake) -> None:
    add(lake, READINGS, BAD)
    assert not is_open(lake)
    assert exit_code(["quality", "release", "--version", "1", "--reason", "calibration"]) == 0
    lake.table_path(READINGS).local.rename(lake.conf.lake.local / "aside")
    add(lake, READINGS, BAD)
    assert not is_open(lake)


def test_a_replay_whose_silver_does_not_pass_is_refused(lake: Lake) -> None:
    add(lake, READINGS, "oven")
    refuse_unless_passed(lake, threading.Event())
    add(lake, LATE, BAD)
    with pytest.raises(TidemarkError, match=r"the replay's silver\.late did not pass its gate.*1 of 1 row"):
        refuse_unless_passed(lake, threading.Event())


def test_late_rows_are_known_to_gold_once_they_have_passed(lake: Lake) -> None:
    add(lake, READINGS, "oven")
    account(lake, 1)
    add(lake, LATE, "oven")
    gate = gate_of(lake)
    gate.let_late_through()
    assert gate.is_open()
    assert late_rows_known(lake) == (1, -1)
    add(lake, LATE, BAD)
    account(lake, 2)
    gate.let_late_through()
    assert not gate.is_open()
    assert late_rows_known(lake) == (1, -1)
    assert exit_code(["quality", "release", "--table", LATE, "--version", "2", "--reason", "calibration"]) == 0
    gate.let_late_through()
    assert gate.is_open()
    assert late_rows_known(lake) == (2, -1)


def account(lake: Lake, batch: int) -> None:
    append_rows(lake.table_path(LEDGER), LEDGER_SCHEMA.empty_table(), lake.app_id(LEDGER_FLOW, LEDGER), batch)


def test_a_gate_that_only_warns_tells_of_each_failure_and_holds_nothing(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.conf.quality.gates[READINGS] = GateMode.WARN  # type: ignore[index]
    told: list[str] = []
    gate = gate_of(lake, told)
    for devices in ((BAD,), ("oven",), (BAD, "oven")):
        add(lake, READINGS, *devices)
        assert gate.is_open()
        gate.warn()
    assert [line.split(" (")[0] for line in told] == [
        "silver.readings: versions 0 to 1 do not pass",
        "silver.readings: version 3 does not pass",
    ]
    assert exit_code(["status"]) == 0
    assert "silver.readings: version 3 does not pass" in capsys.readouterr().err
    assert "is held back" in refusal(capsys, "--version", "3", "--reason", "calibration")


def test_status_and_quality_say_that_the_gate_is_closed(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    add(lake, READINGS, BAD)
    assert not is_open(lake)
    for command in ("status", "quality"):
        assert exit_code([command]) == 1
        assert "the gate of silver.readings is closed, so gold is not updated: versions 0 to 1" in capsys.readouterr().err


def test_a_failure_waits_for_a_quality_run_and_nothing_passes_meanwhile(lake: Lake) -> None:
    add(lake, READINGS, BAD)
    stop, opened_at_the_end = threading.Event(), []
    gate = QualityGate(lake, stop, lambda _: None)
    checking = threading.Thread(target=lambda: opened_at_the_end.append(gate.is_open()))
    with quality_tables.lock(lake.conf.lake):
        checking.start()
        stop.set()
        checking.join()
    assert opened_at_the_end == [False]
    assert passed(lake) == -1
    assert not is_open(lake)
    assert len(kept(lake)) == 1
