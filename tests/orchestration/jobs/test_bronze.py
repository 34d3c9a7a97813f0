"""What sources hand over to bronze: rows and offset in one commit, each source at its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bronze.events import ARRIVED
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.source import SourceDownError
from orchestration.errors import TidemarkError
from orchestration.jobs import bronze
from orchestration.jobs.bronze import in_row_groups
from orchestration.storage import row_pieces
from orchestration.storage.delta import log_of, open_table, version_of
from orchestration.storage.source_offsets import refuse_earlier_version, source_offsets
from orchestration.storage.tables import LakeStore
from tests.lakes import conf, land, land_bytes, table
from tests.number_source import RECEIVED_AT, Numbers
from tests.taking import opened, take, take_all


@pytest.fixture
def lake(tmp_path: Path) -> LakeStore:
    return opened(conf(tmp_path))


def brought(lake: LakeStore) -> list[tuple[str, int, int, bytes]]:
    rows = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"])
    return list(zip(rows["source"], rows["bronze_batch"], rows["bronze_row"], rows["payload"], strict=True))


def test_each_source_goes_on_at_its_own_offset_and_batches_are_numbered_in_the_order_of_commits(lake: LakeStore) -> None:
    assert take(lake, Numbers("one", 2)) is not None
    assert take(lake, Numbers("one", 2), Numbers("other", 1)) is not None
    committed = take(lake, Numbers("one", 3), Numbers("other", 3))
    assert committed is not None
    assert (committed.bronze_batch, committed.rows) == (2, {"one": 1, "other": 2})
    assert take(lake, Numbers("one", 3), Numbers("other", 3)) is None
    assert brought(lake) == [
        *(("one", 0, 0, b"0"), ("one", 0, 1, b"1"), ("other", 1, 0, b"0")),
        *(("one", 2, 0, b"2"), ("other", 2, 1, b"1"), ("other", 2, 2, b"2")),
    ]
    assert {name: (known.bronze_batch, known.offset) for name, known in source_offsets(lake.tables["bronze.events"].location).items()} == {
        "one": (2, {"read": 3}),
        "other": (2, {"read": 3}),
    }


def test_a_source_that_breaks_while_it_is_read_leaves_nothing_and_is_read_again_from_where_it_was(lake: LakeStore) -> None:
    with pytest.raises(SourceDownError, match="source one cannot be read: OSError"):
        take(lake, Numbers("other", 1), Numbers("one", 2, is_broken=True))
    assert (brought(lake), [*lake.tables["bronze.events"].location.local.rglob("*.parquet")]) == ([], [])
    take(lake, Numbers("one", 2))
    assert [payload for *_, payload in brought(lake)] == [b"0", b"1"]


def test_a_batch_without_rows_has_a_number_and_an_offset_too(lake: LakeStore) -> None:
    (plant,) = sources(lake.conf)
    land_bytes(lake.conf.folder, "empty.json", b"\xef\xbb\xbf")
    committed = take(lake, plant)
    assert committed is not None
    assert (committed.bronze_batch, sum(committed.rows.values())) == (0, 0)
    land(lake.conf.folder, "1.json", [b"1"])
    committed = take(lake, plant)
    assert committed is not None
    assert (committed.bronze_batch, brought(lake)) == (1, [("plant", 1, 0, b"1")])


def test_offsets_are_found_behind_commits_of_others_and_without_those_before(lake: LakeStore) -> None:
    events = lake.tables["bronze.events"].location
    assert source_offsets(events) == {}
    for left in (1, 2):
        take(lake, Numbers("one", left))
    told_at = version_of(events)
    open_table(events).optimize.compact()
    assert version_of(events) == told_at + 1
    assert source_offsets(events)["one"].offset == {"read": 2}
    open_table(events).create_checkpoint()
    for version in range(told_at):
        log_of(events, version).local.unlink()
    assert source_offsets(events)["one"].offset == {"read": 2}


def test_a_lake_whose_files_spark_kept_account_of_is_refused(lake: LakeStore) -> None:
    refuse_earlier_version(lake)
    lake.checkpoint("bronze.events").local.mkdir(parents=True)
    with pytest.raises(TidemarkError, match=r"by an earlier version of Tidemark, which kept account of files in .*\n  Name another `lake`"):
        refuse_earlier_version(lake)


@pytest.mark.parametrize("folder", ["gold", "generations/2/gold"])
def test_a_lake_whose_groups_have_tables_of_their_own_is_refused_with_the_way_out(lake: LakeStore, folder: str) -> None:
    (lake.conf.lake.local / folder / "aggregates").mkdir(parents=True)
    refuse_earlier_version(lake)
    (lake.conf.lake.local / folder / "kitchen_aggregates").mkdir()
    with pytest.raises(TidemarkError, match=r"had tables of gold for each group.\n  Move `gold` and `checkpoints/gold.\*` of .* away"):
        refuse_earlier_version(lake)


KILLED = """
import sys
from contextlib import nullcontext
from pathlib import Path
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.tables import LakeStore
from tests.lakes import conf
lake = LakeStore(conf(Path(sys.argv[1])))
commit_batch(lake, [poll(lake, sources(lake.conf)[0])], nullcontext())
"""


def test_a_process_that_is_killed_behind_the_commit_has_written_each_line_once(lake: LakeStore) -> None:
    land(lake.conf.folder, "1.json", [b"1", b"2"])
    environment = {**os.environ, "TIDEMARK_CRASH_AT": "events-written"}
    died = subprocess.run([sys.executable, "-c", KILLED, str(lake.conf.folder)], env=environment, check=False, start_new_session=True)
    assert died.returncode == -signal.SIGKILL
    land(lake.conf.folder, "2.json", [b"3"])
    (plant,) = sources(lake.conf)
    take_all(lake, plant)
    assert [payload for *_, payload in brought(lake)] == [b"1", b"2", b"3"]


def test_events_of_small_files_come_together_and_long_or_many_ones_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group each."""
    monkeypatch.setattr(bronze, "PIECE_BYTES", 50_000)
    monkeypatch.setattr(row_pieces, "PIECE_ROWS", 100)
    payloads = [[b"1"]] * 150 + [[b"x" * 60_000], [b"2"]] + [[b""] * 100, [b""] * 100, [b""] * 50]
    rows = [
        [{"payload": payload, "source": "plant", "position": "a", "received_at": RECEIVED_AT} for payload in piece] for piece in payloads
    ]
    found = list(in_row_groups((pa.Table.from_pylist(piece, ARRIVED) for piece in rows), RECEIVED_AT, 7))
    assert max(map(len, found)) == 100
    assert len(found) <= 8
    assert [row for piece in found for row in piece["bronze_row"].to_pylist()] == list(range(402))
