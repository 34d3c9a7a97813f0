"""Gold's ledger on lakes written by hand: a kitchen with windows of ten minutes, presses with windows of ten every five."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gold.windows.spec import Late
from orchestration.audit.reconciliation.gold_account import gold_account, gold_discrepancies, open_gold_tables
from orchestration.cli.app import exit_code
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage import snapshots
from orchestration.storage.snapshot import Snapshot
from tests.lakes import KITCHEN, PRESSES, conf, write

START = datetime(2026, 1, 5, tzinfo=UTC)
CLOSED_UNTIL = START + timedelta(minutes=20)
OVEN, PRESS = ("oven", "temperature", ["kitchen"]), ("press", "vibration", ["presses"])


def minute(number: float) -> datetime:
    """That many minutes after START."""
    return START + timedelta(minutes=number)


def measured(made: Conf, table: str, of: tuple[str, str, list[str]], minutes: Sequence[float], bronze_batch: int = 0) -> None:
    """Measurements of a device at these minutes."""
    same = dict(zip(("device_id", "metric", "groups"), of, strict=True)) | {"bronze_batch": bronze_batch}
    write(Lake(made), f"silver.{table}", *(same | {"event_time": minute(at)} for at in minutes))


def counted(made: Conf, of: tuple[str, str, list[str]], windows: dict[int, int], revision: int = 0) -> None:
    """Windows of a device: how many readings by the minute at which they end."""
    device, metric, groups = of
    same = {"device_id": device, "metric": metric, "revision": revision}
    write(Lake(made), f"gold.{groups[0]}_aggregates", *(same | {"window_end": minute(end), "count": n} for end, n in windows.items()))


def pinned(made: Conf, bronze_batch: int = 0) -> Snapshot:
    """A snapshot of the newest versions; windows are closed up to CLOSED_UNTIL."""
    versions = {
        name: DeltaTable(path.local).version() for name in Lake(made).tables if (path := made.lake / name.replace(".", "/")).is_dir()
    }
    closed = {group.stream: CLOSED_UNTIL for group in made.groups.values()}
    return Snapshot(0, START, 1, bronze_batch, versions, closed)


def account(made: Conf, bronze_batch: int = 0, since: date | None = None) -> tuple[dict[str, dict[str, int]], list[str]]:
    """By metric, what is not 0; and what is wrong, by device and the minute at which the window ends."""
    tables = open_gold_tables(Lake(made), pinned(made, bronze_batch), since)
    assert tables is not None
    rows = {row.pop("metric"): {name: n for name, n in row.items() if n and name != "group"} for row in gold_account(Lake(made), tables)}
    wrong = gold_discrepancies(tables)
    ends = [(row["window_end"] - START) // timedelta(minutes=1) for row in wrong]
    return rows, [f"{row['device_id']} {end}: {row['wrong']}" for row, end in zip(wrong, ends, strict=True)]


@pytest.fixture
def made(tmp_path: Path) -> Conf:
    """The oven has three readings in each of three windows, of which two are closed; the press has one every five minutes."""
    found = conf(tmp_path)
    for group in found.groups:
        write(Lake(found), f"gold.{group}_aggregates")
        write(Lake(found), f"gold.{group}_late")
    write(Lake(found), "silver.late")
    measured(found, "readings", OVEN, [1, 2, 3, 11, 12, 13, 21, 22, 23])
    measured(found, "readings", PRESS, [0, 5, 10, 15])
    measured(found, "readings", ("cellar", "temperature", []), [1])  # of no group
    counted(found, OVEN, {10: 3, 20: 3})
    counted(found, PRESS, {5: 1, 10: 2, 15: 2, 20: 2})
    return found


CLEAN = {"temperature": {"readings": 9, "counted": 6, "open": 3}, "vibration": {"readings": 8, "counted": 7, "open": 1}}


def test_a_reading_is_counted_or_open_once_for_each_of_its_windows(made: Conf) -> None:
    assert account(made) == (CLEAN, [])


def test_readings_beyond_the_snapshot_and_rows_that_came_after_it_are_not_in_its_account(made: Conf) -> None:
    measured(made, "readings", OVEN, [4, 24], bronze_batch=1)
    snapshot = pinned(made)
    counted(made, OVEN, {10: 5}, revision=1)
    tables = open_gold_tables(Lake(made), snapshot)
    assert tables is not None
    assert [row["counted"] for row in gold_account(Lake(made), tables)] == [6, 7]
    assert gold_discrepancies(tables) == []


def test_a_lost_window_a_lost_reading_of_one_and_a_lost_reading_of_silver_are_told(made: Conf) -> None:
    aggregates = made.lake.local / "gold/aggregates"
    DeltaTable(aggregates).delete(f"device_group = 'kitchen' and window_end = '{minute(20).isoformat()}'")
    DeltaTable(aggregates).update({"count": "1"}, predicate=f"device_group = 'presses' and window_end = '{minute(15).isoformat()}'")
    rows, wrong = account(made)
    assert rows["temperature"] == {"readings": 9, "counted": 3, "open": 3, "missing": 3}
    assert rows["vibration"] == {"readings": 8, "counted": 6, "open": 1, "missing": 1}
    assert wrong == ["oven 20: silver has 3 readings, gold counts 0", "press 15: silver has 2 readings, gold counts 1"]
    DeltaTable(made.lake.local / "silver/readings").delete(f"event_time = '{minute(2).isoformat()}'")
    assert "oven 10: silver has 2 readings, gold counts 3" in account(made)[1]


def test_a_doubled_window_a_window_that_should_be_open_and_one_of_nothing_are_told(made: Conf) -> None:
    counted(made, OVEN, {10: 3, 30: 2})
    counted(made, PRESS, {-60: 4})
    rows, wrong = account(made)
    assert rows["temperature"] == {"readings": 9, "counted": 11, "open": 1, "duplicated": 3}
    assert rows["vibration"]["duplicated"] == 4
    assert wrong == ["oven 10: silver has 3 readings, gold counts 6", "press -60: silver has 0 readings, gold counts 4"]


def test_late_rows_count_in_the_newest_revision_and_wait_for_windows_that_are_open(made: Conf) -> None:
    measured(made, "late", OVEN, [4, 24])
    measured(made, "late", PRESS, [7])
    rows, wrong = account(made)
    assert rows["temperature"] == {"readings": 9, "late": 2, "counted": 6, "open": 3, "waiting": 1, "missing": 1}
    assert rows["vibration"] == {"readings": 8, "late": 2, "counted": 7, "open": 1, "missing": 2}
    assert wrong[0] == "oven 10: silver has 3 readings and 1 late ones, gold counts 3"
    counted(made, OVEN, {10: 4}, revision=1)
    counted(made, PRESS, {10: 3, 15: 3}, revision=1)
    rows, wrong = account(made)
    assert rows["temperature"] == {"readings": 9, "late": 2, "counted": 7, "open": 3, "waiting": 1}
    assert rows["vibration"] == {"readings": 8, "late": 2, "counted": 9, "open": 1}
    assert wrong == []


def test_a_group_that_keeps_late_rows_aside_has_each_of_them_once(made: Conf) -> None:
    aside = replace(made, groups={"kitchen": replace(KITCHEN, late=Late.KEEP_ASIDE), "presses": PRESSES})
    measured(aside, "late", OVEN, [4, 24])
    measured(aside, "readings", OVEN, [5], bronze_batch=0)  # came when its window was closed
    assert account(aside)[0]["temperature"] == {"readings": 10, "late": 2, "counted": 6, "open": 3, "kept_aside": 2, "missing": 1}
    write(Lake(aside), "gold.kitchen_late", {"device_id": "oven", "metric": "temperature", "window_end": minute(10)})
    rows, wrong = account(aside)
    assert rows["temperature"] == {"readings": 10, "late": 2, "counted": 6, "open": 3, "kept_aside": 3}
    assert wrong == []
    write(Lake(aside), "gold.kitchen_late", {"device_id": "oven", "metric": "temperature", "window_end": minute(10)})
    assert account(aside)[1] == ["oven 10: silver has 4 readings and 1 late ones, gold counts 3 and keeps 3 aside"]


def test_since_a_day_are_the_windows_that_begin_then_or_later(made: Conf) -> None:
    assert account(made, since=date(2026, 1, 5))[0]["vibration"] == {"readings": 7, "counted": 6, "open": 1}  # one window begins before
    assert account(made, since=date(2026, 1, 6)) == ({}, [])


def test_windows_before_1970_and_groups_without_a_snapshot_are_no_trouble(made: Conf) -> None:
    before = -30_000_000 - 1  # minutes
    measured(made, "readings", OVEN, [before])
    counted(made, OVEN, {before + 1 - (before + 1) % 10 + (10 if (before + 1) % 10 else 0): 1})
    new = replace(made, groups={**made.groups, "hall": replace(KITCHEN, name="hall", stream="hall")})
    tables = open_gold_tables(Lake(new), pinned(made))
    assert tables is not None
    assert [row["counted"] for row in gold_account(Lake(new), tables)] == [7, 7]
    assert gold_discrepancies(tables) == []


def test_the_command_tells_gold_after_the_events_or_alone_and_what_is_wrong_with_exit_code_1(
    made: Conf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(made)))
    assert exit_code(["ledger", "--gold", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []  # no snapshot yet
    taken = pinned(made)
    row = {**vars(taken), "versions": list(taken.versions.items()), "closed_until": list(taken.closed_until.items())}
    write_deltalake(made.lake.local / "ops/snapshots", pa.Table.from_pylist([row], snapshots.SNAPSHOTS.schema), mode="append")
    assert exit_code(["ledger", "--gold", "--format", "json"]) == 0
    assert [(row["group"], row["counted"]) for row in json.loads(capsys.readouterr().out)] == [("kitchen", 6), ("presses", 7)]
    counted(made, OVEN, {10: 3})
    taken = replace(pinned(made), snapshot_id=1)
    row = {**vars(taken), "versions": list(taken.versions.items()), "closed_until": list(taken.closed_until.items())}
    write_deltalake(made.lake.local / "ops/snapshots", pa.Table.from_pylist([row], snapshots.SNAPSHOTS.schema), mode="append")
    assert exit_code(["ledger", "--gold", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert [(row["group"], row["duplicated"]) for row in json.loads(out)] == [("kitchen", 3), ("presses", 0)]
    assert err == "gold window kitchen oven temperature 2026-01-05T00:10:00Z: silver has 3 readings, gold counts 6\n"
