"""Tables and files of a store that the holder of the lease keeps: asked for once, and never older than what anybody wrote."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location, lake_at
from orchestration.storage.checkpoints import offsets
from orchestration.storage.commit import append_rows, fence, widen
from orchestration.storage.delta import each_table_opened_once, is_table, open_table, rows_of, version_of, written_by
from orchestration.storage.generations import Generation, request_switch, switch
from orchestration.storage.kept import delete_all
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import NOTES, Note
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, find_snapshot, is_kept
from orchestration.storage.state_file import StateFile
from orchestration.stores.object_store import ObjectStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Proxy

ROWS = pa.table({"n": [1]})
OF_HOLDER = ("bronze/events", "silver/late", "gold/alerts", "ops/ledger", "generations/2/silver/readings")
OF_ANYBODY = ("silver/devices", "silver/device_corrections", "ops/notes", "ops/silences", "quality/results", "marts/hourly", "ops/new")
LOG, AT = "_delta_log", datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def lake(store: Store, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    for name, value in {"KEY": ACCESS_KEY, "SECRET": SECRET_KEY, "XDG_STATE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    return lake_at(f"s3://{store.bucket()}/lake", ObjectStore(proxy.endpoint, None, "${env:KEY}", "${env:SECRET}"))


def append_as_another_process(table: Location) -> None:
    write_deltalake(str(table), ROWS, mode="append", storage_options=table.store.delta_options)


def test_a_holder_asks_once_for_a_table_and_for_its_transactions(lake: Location, proxy: Proxy) -> None:
    with sole_writer(lake):
        append_rows(table := lake / "silver/readings", ROWS, "flow", 1)
        proxy.forget()
        for _ in range(3):
            assert (version_of(table), written_by(table, "flow"), written_by(table, "flow", 1)) == (1, 1, 1)
            assert is_table(table) and not is_table(lake / "ops/ledger")
        assert proxy.counts(f"silver/readings/{LOG}").total() == 0
        assert proxy.counts(f"ops/ledger/{LOG}").total() <= 2


def test_it_reads_what_it_wrote_itself_from_any_thread(lake: Location) -> None:
    with sole_writer(lake), ThreadPoolExecutor(4) as threads:
        table = lake / "silver/readings"
        assert not is_table(table)
        list(threads.map(lambda n: append_rows(table, ROWS, f"flow {n}", n), range(8)))
        assert version_of(table) == 8 and len(rows_of(table)) == 8
        assert [written_by(table, f"flow {n}") for n in range(9)] == [*range(8), -1]
        append_rows(table, ROWS, "flow 7", 7)
        assert len(rows_of(table)) == 8
        widen(table, pa.schema([*ROWS.schema, ("more", pa.string())]))
        assert [*rows_of(table)[0]] == ["n", "more"]


def test_a_table_that_is_in_use_stays_at_its_version(lake: Location) -> None:
    with sole_writer(lake):
        append_rows(table := lake / "silver/readings", ROWS)
        in_use = open_table(table)
        append_rows(table, ROWS)
        assert (in_use.version(), in_use.count(), version_of(table)) == (1, 1, 2)


def test_the_version_that_a_query_has_read_is_opened_once_while_its_table_grows(lake: Location, proxy: Proxy) -> None:
    with sole_writer(lake):
        for _ in range(3):
            append_rows(table := lake / "bronze/events", ROWS)
        assert (open_table(table, 2).version(), open_table(table, 2).count()) == (2, 2)
        proxy.forget()
        assert [open_table(table, version).count() for version in (2, 2, 3, 2)] == [2, 2, 3, 2] and not proxy.counts(LOG)
        append_rows(table, ROWS)
        assert [open_table(table, version).count() for version in (2, 3, 4)] == [2, 3, 4]


def test_one_that_is_opened_once_for_a_work_has_the_commits_of_this_work(lake: Location) -> None:
    with sole_writer(lake), each_table_opened_once():
        append_rows(table := lake / "gold/alerts", ROWS)
        append_rows(table, ROWS)
        assert version_of(table) == 2


@pytest.mark.parametrize("name", OF_HOLDER)
def test_who_holds_no_lease_cannot_write_a_table_that_a_holder_keeps(lake: Location, name: str) -> None:
    with sole_writer(lake):
        append_rows(lake / name, ROWS)
    with pytest.raises(HeldError, match="is written by the holder of the lease"):
        append_rows(lake / name, ROWS)
    assert version_of(lake / name) == 1


@pytest.mark.parametrize("name", OF_ANYBODY)
def test_a_table_that_any_process_writes_is_asked_for_each_time(lake: Location, name: str) -> None:
    with sole_writer(lake):
        assert not is_table(lake / name)
        append_as_another_process(lake / name)
        assert version_of(lake / name) == 0
        append_as_another_process(lake / name)
        assert version_of(lake / name) == 1


def test_a_note_of_another_process_is_read_at_once(lake: Location) -> None:
    noted = Note(AT, AT, "a new oven", "kim", AT)
    with sole_writer(lake):
        assert NOTES.newest(lake, 5) == []
        NOTES.append(lake, [noted])
        assert NOTES.newest(lake, 5) == [noted]


def test_what_was_kept_ends_with_the_lease(lake: Location) -> None:
    for version in (1, 2):
        with sole_writer(lake):
            append_rows(lake / "silver/readings", ROWS)
            assert version_of(lake / "silver/readings") == version
        assert version_of(lake / "silver/readings") == version


def test_who_takes_over_sees_what_the_holder_before_wrote_until_the_fence(lake: Location) -> None:
    with sole_writer(lake) as lease:
        append_rows(table := lake / "silver/readings", ROWS)
        append_as_another_process(table)  # it was stopped behind its check
        lease.is_taken_over = True
        fence([table])
        assert (version_of(table), len(rows_of(table))) == (3, 2)


def test_a_generation_that_was_built_meanwhile_is_as_its_replay_left_it(lake: Location) -> None:
    table = lake / "generations/2/silver/readings"
    with sole_writer(lake):
        assert not is_table(table)
        with sole_writer(lake / "generations"):
            append_rows(table, ROWS)
        request_switch(lake, Generation(1, 2))
        assert switch(lake, AT) is not None
        assert version_of(table) == 1


def test_a_table_that_was_removed_is_not_kept(lake: Location) -> None:
    with sole_writer(lake):
        append_rows(table := lake / "silver/readings", ROWS)
        delete_all(table)
        assert not is_table(table)


def test_a_commit_asks_for_no_entry_of_the_log_twice_however_long_it_is(lake: Location, proxy: Proxy) -> None:
    with sole_writer(lake):
        for number in range(5):
            append_rows(table := lake / "silver/readings", ROWS, "flow", number)
        proxy.forget()
        append_rows(table, ROWS, "flow", 5)
        assert proxy.counts("silver/readings").total() <= 15


def test_a_state_file_is_read_once_and_again_when_it_was_written(lake: Location, proxy: Proxy) -> None:
    file = StateFile(lake / "checkpoints/silver.readings/tidemark.json", Generation, "Restore it.")
    with sole_writer(lake):
        assert file.read() is None
        file.write(Generation(1, 2))
        proxy.forget()
        assert [file.read() for _ in range(3)] == [Generation(1, 2)] * 3 and proxy.counts(file.location.name).total() == 0
        file.write(Generation(2, 3))
        assert file.read() == Generation(2, 3)
        file.remove()
        assert file.read() is None
        file.write(Generation(3, 4))
        delete_all(lake / "checkpoints/silver.readings")
        assert file.read() is None
    with pytest.raises(HeldError, match="is written by the holder of the lease"):
        file.write(Generation(4, 5))


@pytest.mark.parametrize("folder", ["", "checkpoints/lake", "bronze/events"])
@pytest.mark.parametrize("name", ["generations/proposed.json", "retries/request.json", "outages/source/plant.json"])
def test_a_state_file_that_any_process_writes_is_read_each_time_wherever_the_lake_lies(lake: Location, folder: str, name: str) -> None:
    elsewhere = lake / folder if folder else lake
    file = StateFile(elsewhere / name, Generation, "Ask again.")
    with sole_writer(elsewhere):
        assert file.read() is None
        file.location.write(b'{"swap": 1}')
        with pytest.raises(TidemarkError, match="is damaged"):  # it was read: it has no digest
            file.read()
    file.location.delete()
    file.write(Generation(1, 2))


def test_a_batch_of_a_checkpoint_is_read_once_until_its_checkpoint_begins_anew(lake: Location, proxy: Proxy) -> None:
    checkpoint = lake / "checkpoints/silver.readings"
    entry = 'v2\n{"batchTimestampMs": 1, "batchWatermarkMs": %d}\n'
    with sole_writer(lake):
        (checkpoint / "offsets/0").write((entry % 5).encode())
        assert [offsets(checkpoint, 0).watermark_ms for _ in range(3)] == [5] * 3
        assert proxy.counts("offsets/0")["GET"] == 1
        delete_all(checkpoint)
        (checkpoint / "offsets/0").write((entry % 7).encode())
        assert offsets(checkpoint, 0).watermark_ms == 7


def test_a_holder_reads_a_snapshot_once_until_there_is_another(lake: Location, proxy: Proxy) -> None:
    with sole_writer(lake):
        for number in range(2):
            SNAPSHOTS.append(lake, [Snapshot(number, AT, 1, 0, {}, {})])
            proxy.forget()
            newest = [find_snapshot(lake) for _ in range(3)]
            assert [snapshot.snapshot_id for snapshot in newest if snapshot] == [number] * 3
            assert proxy.counts("ops/snapshots/part").total() <= 3
        SNAPSHOTS.delete(lake, "snapshot_id", [0])
        assert not is_kept(lake, 0) and is_kept(lake, 1)
