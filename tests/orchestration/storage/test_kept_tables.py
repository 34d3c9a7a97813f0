"""Tables in a store that the holder of the lease keeps open: asked for once, and never older than what anybody committed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.errors import HeldError
from orchestration.location import Location, lake_at
from orchestration.storage.commit import append_rows, fence, widen
from orchestration.storage.delta import each_table_opened_once, is_table, open_table, rows_of, version_of, written_by
from orchestration.storage.generations import Generation, request_switch, switch
from orchestration.storage.kept import forget
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import NOTES, Note
from orchestration.stores.object_store import ObjectStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Proxy

ROWS = pa.table({"n": [1]})
OF_HOLDER = ("bronze/events", "silver/late", "gold/alerts", "ops/ledger", "generations/2/silver/readings")
OF_ANYBODY = ("silver/devices", "silver/device_corrections", "ops/notes", "ops/silences", "quality/results", "marts/hourly", "ops/new")
LOG = "_delta_log"


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
    noted = Note(at := datetime(2026, 1, 5, tzinfo=UTC), at, "a new oven", "kim", at)
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
        assert switch(lake, datetime(2026, 1, 5, tzinfo=UTC)) is not None
        assert version_of(table) == 1


def test_a_table_that_was_removed_is_not_kept(lake: Location) -> None:
    with sole_writer(lake):
        append_rows(table := lake / "silver/readings", ROWS)
        table.delete_all()
        forget(lake / "silver")
        assert not is_table(table)
