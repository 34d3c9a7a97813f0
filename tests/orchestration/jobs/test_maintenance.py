"""Maintenance on tables written by hand: what a snapshot pins and what a stream has yet to read stays, all else goes."""

import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.cli.app import exit_code
from orchestration.conf.model import Conf, Maintenance
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs import maintenance, ranges
from orchestration.storage import commit, snapshots
from orchestration.storage.lease import sole_writer
from orchestration.storage.retention import first_version, is_whole
from orchestration.storage.snapshot import Snapshot
from orchestration.supervisor import pipeline_run
from orchestration.supervisor import run as runner
from tests.lakes import conf
from tests.orchestration.jobs.written_tables import batch, measured_at, pinned, read_up_to

NOW = datetime.now(UTC)
WEEK = timedelta(days=7)


def maintained(made: Conf, now: datetime) -> dict[str, dict[str, Any]]:
    """By table what was done."""
    return {row["table"]: row for row in maintenance.maintain(Lake(made), now, lambda _: nullcontext())}


def rows_of(made: Conf, snapshot: Snapshot) -> dict[str, list[dict[str, Any]]]:
    """What a snapshot shows of both tables, without what is beyond it."""
    tables = {name: DeltaTable(made.lake.local / name.replace(".", "/"), version) for name, version in snapshot.versions.items()}
    return {name: sorted(pa.table(table.to_pyarrow_table()).to_pylist(), key=str) for name, table in tables.items()}


def has_reached(number: int, greatest: Mapping[str, Any]) -> bool:
    """Whether a file holds that batch or a later one."""
    return bool(greatest["bronze_batch"] >= number)


def files(made: Conf, name: str) -> set[str]:
    """Data files on the disk."""
    return {file.name for file in (made.lake.local / name).rglob("*.parquet") if "_delta_log" not in file.parts}


@pytest.fixture
def made(tmp_path: Path) -> Conf:
    """Six batches, each with a snapshot, a day apart; the last is of now. Silver has read them all."""
    found = conf(tmp_path)
    for number in range(6):
        batch(found, number)
        pinned(found, number, NOW - timedelta(days=5 - number))
    read_up_to(found, "silver.readings", "bronze/events", 6)
    return found


def test_small_files_become_one_for_each_partition_and_every_retained_snapshot_shows_what_it_showed(made: Conf) -> None:
    known = snapshots.all_snapshots(made.lake)
    before = [rows_of(made, each) for each in known]
    done = maintained(made, NOW)
    assert {name: (row["files"], row["compacted"], row["removed"]) for name, row in done.items()} == {
        "bronze.events": (12, 12, 0),
        "silver.readings": (6, 6, 0),
        "ops.snapshots": (6, 6, 0),
    }
    assert [len(DeltaTable(made.lake.local / name).file_uris()) for name in ("bronze/events", "silver/readings")] == [2, 1]
    assert [rows_of(made, each) for each in known] == before
    assert snapshots.all_snapshots(made.lake) == known
    versions = [DeltaTable(made.lake.local / name).version() for name in ("bronze/events", "silver/readings", "ops/snapshots")]
    again = maintained(made, NOW)
    assert [sum(row[name] for row in again.values()) for name in ("compacted", "removed", "log_entries")] == [0, 0, 0]
    assert [DeltaTable(made.lake.local / name).version() for name in ("bronze/events", "silver/readings", "ops/snapshots")] == versions


def test_a_compacted_file_goes_once_no_snapshot_that_was_the_newest_within_the_retention_pins_it(made: Conf) -> None:
    maintained(made, NOW)
    pinned(made, 6, NOW + timedelta(days=1))  # pins the large files
    for days, kept in ((2, 7), (4, 5), (7, 2), (30, 1)):
        now = NOW + timedelta(days=days)
        known = snapshots.all_snapshots(made.lake)
        before = {each.snapshot_id: rows_of(made, each) for each in known}
        maintained(made, now)  # forgets snapshots
        retained = snapshots.all_snapshots(made.lake)
        assert len(retained) == kept, days
        assert {each.snapshot_id: rows_of(made, each) for each in known} == before  # who asked one just before can read to the end
        maintained(made, now)  # removes what they alone pinned
        assert [rows_of(made, each) for each in retained] == [before[each.snapshot_id] for each in retained]
    assert (len(files(made, "silver/readings")), len(files(made, "bronze/events"))) == (1, 4)  # of bronze the last batch, for a replay


def test_the_newest_snapshot_never_expires_and_an_expired_one_is_refused_by_name_with_the_way_out(made: Conf) -> None:
    for _ in range(2):
        maintained(made, NOW + 100 * WEEK)
    newest = snapshots.find_snapshot(made.lake)
    assert newest is not None
    assert newest.snapshot_id == 5
    assert rows_of(made, newest)["silver.readings"] == [{"bronze_batch": n, "event_time": measured_at(n), "value": n} for n in range(6)]
    with pytest.raises(TidemarkError, match=r"^snapshot 3 has expired; .* are 5 to 5, from (.|\n)*maintenance.retain_seconds"):
        snapshots.find_snapshot(made.lake, 3)
    with pytest.raises(TidemarkError, match=r"^what was the snapshot at .* has expired; those that can be asked are 5 to 5"):
        snapshots.find_snapshot(made.lake, at=NOW - timedelta(days=3))
    assert snapshots.find_snapshot(made.lake, at=NOW) == newest
    with pytest.raises(TidemarkError, match=r"^there is no snapshot 6; the lake has 5 to 5"):
        snapshots.find_snapshot(made.lake, 6)


@pytest.mark.parametrize(
    ("version", "done", "is_state", "kept"),
    [(4, True, False, {4, 5}), (3, False, False, {0, 1, 2, 3, 4, 5}), (2, False, True, {0, 1, 2, 3, 4, 5})],
)
def test_what_a_stream_has_yet_to_read_stays_for_as_long_as_it_takes(
    made: Conf, version: int, done: bool, is_state: bool, kept: set[int]
) -> None:
    """Version n brought batch n; a first batch that is begun and not done reads the state of its version."""
    by_batch = {n: set(DeltaTable(made.lake.local / "silver/readings", version=n).file_uris()) for n in range(6)}
    read_up_to(made, "gold.kitchen", "silver/readings", version, done=done, is_state=is_state)
    maintained(made, NOW)
    pinned(made, 6, NOW)
    for _ in range(2):
        maintained(made, NOW + 2 * WEEK)
    there = {n for n in range(6) if all(Path(uri.removeprefix("file://")).exists() for uri in by_batch[n] - by_batch.get(n - 1, set()))}
    assert there == kept


def test_the_newest_snapshot_of_each_generation_stays_for_a_rollback_and_does_not_stand_for_those_that_expired(made: Conf) -> None:
    pinned(made, 6, NOW + timedelta(days=1), generation=2)
    pinned(made, 7, NOW + timedelta(days=2), generation=2)
    for _ in range(2):
        maintained(made, NOW + 3 * WEEK)
    assert [each.snapshot_id for each in snapshots.all_snapshots(made.lake)] == [5, 7]
    assert len(rows_of(made, snapshots.all_snapshots(made.lake)[0])["bronze.events"]) == 12
    with pytest.raises(TidemarkError, match=r"^what was the snapshot at .* has expired"):
        snapshots.find_snapshot(made.lake, at=NOW + timedelta(days=1, hours=1))
    with pytest.raises(TidemarkError, match=r"^snapshot 6 has expired"):
        snapshots.find_snapshot(made.lake, 6)


def test_a_replay_finds_the_end_of_bronze_commit_by_commit_however_long_nothing_came(made: Conf) -> None:
    bronze, last = made.lake / "bronze/events", 5
    for weeks in range(0, 9, 2):
        maintained(made, NOW + weeks * WEEK)
        if not weeks:
            pinned(made, 6, NOW)
    assert not is_whole(bronze, 0)
    assert not is_whole(bronze, last - 1)
    assert is_whole(bronze, last)
    assert is_whole(bronze, DeltaTable(bronze.local).version() + 1)
    assert first_version(bronze, partial(has_reached, last)) == last


def test_where_to_begin_in_a_log_is_not_guessed_from_the_entries_that_are_left(made: Conf) -> None:
    readings = made.lake / "silver/readings"
    assert [first_version(readings, partial(has_reached, number)) for number in range(6)] == [*range(6)]
    DeltaTable(readings.local, version=4).create_checkpoint()
    read_up_to(made, "gold.kitchen", "silver/readings", 5)
    for _ in range(2):
        maintained(made, NOW + 2 * WEEK)
    assert [first_version(readings, partial(has_reached, number)) for number in range(6)] == [0, 0, 0, 0, 0, 5]
    assert not is_whole(readings, 0)


def test_bronze_that_silver_has_not_begun_to_read_stays_whole(tmp_path: Path) -> None:
    made = conf(tmp_path)
    for number in range(3):
        batch(made, number)
        pinned(made, number, NOW)
    whole = files(made, "bronze/events")
    for days in (0, 30, 60):
        maintained(made, NOW + timedelta(days=days))
    assert files(made, "bronze/events") > whole
    assert len(files(made, "silver/readings")) == 4  # the newest snapshot pins the small ones


def test_a_dry_run_says_what_is_then_done_and_does_nothing(
    made: Conf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(made)))
    before = sorted((file, file.stat().st_mtime_ns) for file in made.lake.local.rglob("*"))
    assert exit_code(["maintain", "--dry-run", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sorted((file, file.stat().st_mtime_ns) for file in made.lake.local.rglob("*")) == before
    with sole_writer(made.lake):
        assert exit_code(["maintain"]) == 3
        assert exit_code(["maintain", "--dry-run"]) == 0
    capsys.readouterr()
    assert exit_code(["maintain", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == said
    recorded = pa.table(DeltaTable(made.lake.local / "ops/maintenance").to_pyarrow_table()).to_pylist()
    assert sorted((row["table"], row["compacted"]) for row in recorded) == sorted((row["table"], row["compacted"]) for row in said)


def test_the_ledger_bounds_its_ranges_in_compacted_files_too(made: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "ROWS_AT_ONCE", 4)  # a batch has two rows
    cases = [(-1, 5, 1), (1, 5, 3), (3, 5, 5), (-1, 0, 0)]
    assert [ranges.range_after(Lake(made), after, passed).up_to for after, passed, _ in cases] == [up_to for *_, up_to in cases]
    maintained(made, NOW)
    assert [ranges.range_after(Lake(made), after, passed).up_to for after, passed, _ in cases] == [up_to for *_, up_to in cases]


def test_a_file_that_no_commit_names_goes_after_a_day(made: Conf) -> None:
    names = ("young.parquet", "old.parquet", "old.parquet#1")
    young, old, draft = (made.lake / "silver/readings" / name for name in names)
    for file, age in ((young, 3600), (old, 2 * 86_400), (draft, 2 * 86_400)):
        file.local.write_bytes(b"half")
        os.utime(file.local, (NOW.timestamp() - age, NOW.timestamp() - age))
    assert maintained(made, NOW)["silver.readings"]["removed"] == 2
    assert (young.exists(), old.exists(), draft.exists()) == (True, False, False)


@pytest.mark.parametrize(("damage", "first"), [("none", 4), ("cut", 2), ("exchanged", 2)])
def test_old_entries_of_the_log_go_only_if_a_checkpoint_tells_what_they_told(made: Conf, damage: str, first: int) -> None:
    """A stream has yet to read version 5. Readers of the newest version begin at the checkpoint there."""
    table = made.lake / "silver/readings"
    for version in (2, 4, 5):
        DeltaTable(table.local, version=version).create_checkpoint()
    older, newer, _ = sorted((table / "_delta_log").glob("*.checkpoint.parquet"))
    read_up_to(made, "gold.kitchen", "silver/readings", 5)
    if damage != "none":
        newer.local.write_bytes(older.local.read_bytes() if damage == "exchanged" else newer.local.read_bytes()[:-1])
    for _ in range(2):
        maintained(made, NOW + 2 * WEEK)
    assert min(int(entry.local.stem) for entry in (table / "_delta_log").glob("*.json")) == first
    assert DeltaTable(table.local).transaction_version("flow") == 5
    if damage == "none":
        assert [len(rows_of(made, each)["silver.readings"]) for each in snapshots.all_snapshots(made.lake)] == [6]
        assert len(pa.table(DeltaTable(table.local, version=4).to_pyarrow_table())) == 5


def test_maintenance_that_is_always_due_leaves_every_other_turn_to_the_rest() -> None:
    turns: list[str] = []

    class AlwaysDue:
        def look_at_references(self) -> None:
            """There are none."""

        def is_maintenance_due(self) -> bool:
            return True

        def maintain(self) -> None:
            turns.append("maintenance")

        def gold_cycle(self) -> None:
            turns.append("gold")

        def seal(self) -> None:
            turns.append("seals")

    behind: dict[str, Future[None]] = {}
    for _ in range(6):
        runner._go_on_behind(cast(pipeline_run.PipelineRun, AlwaysDue()), behind)
        wait(behind.values())
    assert [turns[0], *sorted(turns[1:3]), turns[3], *sorted(turns[4:6])] == ["maintenance", "gold", "seals"] * 2


def test_maintenance_is_due_so_long_after_the_last_one_or_after_the_first_snapshot(made: Conf, tmp_path: Path) -> None:
    def next_at(every_seconds: float, lake: Conf = made) -> datetime | None:
        return maintenance.next_at(Lake(replace(lake, maintenance=Maintenance(every_seconds=every_seconds))), NOW)

    assert next_at(0) is None
    assert next_at(60, conf(tmp_path / "empty")) == NOW + timedelta(seconds=60)
    assert next_at(60) == NOW - timedelta(days=5) + timedelta(seconds=60)
    maintained(made, NOW)
    assert next_at(60) == NOW + timedelta(seconds=60)


@pytest.mark.spark
def test_on_a_cluster_tasks_of_executors_read_small_files(made: Conf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    known = snapshots.all_snapshots(made.lake)
    before = [rows_of(made, each) for each in known]
    monkeypatch.setattr(commit, "_rows", None)  # here; tasks are other processes
    lake = Lake(replace(made, engine=replace(made.engine, master="yarn")), spark)
    done = {row["table"]: row["compacted"] for row in maintenance.maintain(lake, NOW, lambda _: nullcontext())}
    assert (done["bronze.events"], done["silver.readings"]) == (12, 6)
    assert [len(DeltaTable(made.lake.local / name).file_uris()) for name in ("bronze/events", "silver/readings")] == [2, 1]
    assert [rows_of(made, each) for each in known] == before
