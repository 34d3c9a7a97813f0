"""Files of a sink hold each row once, whoever is killed in between; names tell what a repeat replaces."""

import csv
import json
import math
import random
import shutil
import time
from datetime import UTC, date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from orchestration.connectors.sinks.sink_states import Request, read_state, request
from orchestration.storage import snapshots
from orchestration.storage.commit import append_rows
from orchestration.storage.marts import MARTS, Build
from tests.orchestration.connectors.sinks.sender import sender
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, NOW, READINGS, VECTORS, SmallLake, reading, vector, window, windows


def lake_for(folder: Path, table: str, format: str = "parquet") -> SmallLake:
    return SmallLake(folder, {"export": {"table": table, "files": {"path": str(folder / "export"), "format": format}}})


def exported(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ds.dataset(folder / "export", partitioning="hive", exclude_invalid_files=False).to_table().to_pylist()
    return rows


def names(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder / "export")) for file in (folder / "export").rglob("*") if file.is_file())


def test_there_is_a_folder_a_day_and_a_file_a_batch_and_amendments_come_in_a_later_file(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(140, 148))])  # two hours around midnight
    lake.pin(0)
    assert lake.step()
    lake.write(AGGREGATES, [window(0, 141, 9.0, revision=1)]).pin(1)
    assert lake.step()
    assert not lake.step()
    days = [name.rpartition("/")[0] for name in names(tmp_path)]
    assert days == ["day=2026-01-05", "day=2026-01-05", "day=2026-01-06"]
    revisions = sorted((row["window_start"].astimezone(UTC).isoformat(), row["revision"]) for row in exported(tmp_path))
    assert len(revisions) == 9
    assert ("2026-01-05T23:30:00+00:00", 1) in revisions


def test_a_batch_that_was_half_written_is_written_again_under_the_same_names_also_if_there_is_a_newer_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_for(tmp_path, READINGS)
    lake.write(READINGS, [reading(0, row) for row in range(2000)]).pin(0)
    with monkeypatch.context() as patched:
        patched.setattr("orchestration.connectors.sinks.files.shutil.rmtree", _killed_at_the_end())
        with pytest.raises(KeyboardInterrupt):
            lake.step()
    assert read_state(lake.conf, "export").sent is None
    before = names(tmp_path)
    lake.write(READINGS, [reading(1, row) for row in range(10)]).pin(1)
    assert lake.step()
    assert names(tmp_path) == before
    assert lake.step()
    assert len(exported(tmp_path)) == 2010
    assert len({(row["bronze_batch"], row["bronze_row"]) for row in exported(tmp_path)}) == 2010


def test_a_half_written_batch_whose_snapshot_is_gone_is_replaced_as_a_whole_also_after_a_second_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_for(tmp_path, READINGS)
    lake.write(READINGS, [reading(0, row) for row in range(10)]).pin(0)
    lake.step()
    for number in (1, 2):
        snapshot = lake.write(READINGS, [reading(number, row) for row in range(10)]).pin(number)
        with monkeypatch.context() as patched:
            patched.setattr("orchestration.connectors.sinks.files.shutil.rmtree", _killed_at_the_end())
            with pytest.raises(KeyboardInterrupt):
                lake.step()
        if number == 1:
            snapshots.SNAPSHOTS.delete(lake.conf.lake, "snapshot_id", [snapshot.snapshot_id])
    lake.send_all()
    assert sorted((row["bronze_batch"], row["bronze_row"]) for row in exported(tmp_path)) == [
        (n, row) for n in range(3) for row in range(10)
    ]


def _killed_at_the_end() -> Any:
    """In place of rmtree: the first call is before anything is written, the second after all files have their names."""
    calls: list[object] = []
    remove = shutil.rmtree

    def rmtree(path: Path, **_: object) -> None:
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        remove(path, ignore_errors=True)

    return rmtree


def test_after_a_replay_and_a_reset_only_files_of_the_new_batch_are_left_and_those_of_others(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    stranger = tmp_path / "export" / "day=2026-01-05" / "mine.parquet"
    stranger.touch()
    built = lake.next_generation()
    built.write(AGGREGATES, [*windows(-1, range(3), value=5.0)]).pin(0)
    built.step()
    stranger.unlink()
    assert sorted(row["value"] for row in exported(tmp_path)) == [5.0] * 3
    (before,) = names(tmp_path)
    request(lake.conf.lake, "export", Request.RESET, NOW)
    assert built.step()
    (after,) = names(tmp_path)
    assert after != before
    assert len(exported(tmp_path)) == 3


def test_another_folder_gets_all_rows(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    moved = SmallLake(tmp_path, {"export": {"table": AGGREGATES, "files": {"path": str(tmp_path / "moved" / "export")}}})
    assert moved.step()
    assert len(exported(tmp_path / "moved")) == 5


def test_csv_has_a_header_and_lists_as_json_and_null_is_not_an_empty_text(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, VECTORS, "csv")
    lake.write(VECTORS, [vector(0, 0, [1.5, None, math.inf]), vector(0, 1, None)]).pin(0)
    lake.step()
    (file,) = (tmp_path / "export").rglob("*.csv")
    rows = pyarrow.csv.read_csv(
        file, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    )
    assert [cell if cell is None else json.loads(cell) for cell in rows["vector"].to_pylist()] == [[1.5, None, "Infinity"], None]
    assert rows["filled"].to_pylist() == ["[]", "[]"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_instant_of_any_year_is_written_and_in_the_folder_of_its_day(tmp_path: Path, format: str) -> None:
    lake = lake_for(tmp_path, READINGS, format)
    table, micros = lake.store.tables[READINGS], [0, 250_000, 2**60, -(2**60)]
    at, part = table.schema.get_field_index("event_time"), pa.Table.from_pylist([reading(0, row) for row in range(4)], table.schema)
    append_rows(table.location, part.set_column(at, table.schema.field(at), pa.array(micros).cast(table.schema.field(at).type)))
    lake.pin(0)
    lake.step()
    days = ["day=-34565-05-17", "day=1970-01-01", "day=38504-08-17"]
    assert [name.rpartition("/")[0] for name in names(tmp_path)] == days
    if format == "csv":
        contents = [file.read_text().splitlines() for file in (tmp_path / "export").rglob("*.csv")]
        texts = [row["event_time"] for content in contents for row in csv.DictReader(content)]
        assert sorted(texts) == [
            "-34565-05-17T02:29:53.153024Z",
            "1970-01-01T00:00:00.250000Z",
            "1970-01-01T00:00:00Z",
            "38504-08-17T21:30:06.846976Z",
        ]
    else:
        files = ds.dataset([*(tmp_path / "export").rglob("*.parquet")]).to_table()["event_time"]
        assert sorted(files.cast(pa.int64()).to_pylist()) == sorted(micros)


def test_a_row_without_a_time_is_of_an_unknown_day(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, "silver.quarantine")
    lake.write("silver.quarantine", [{"broken_rules": ["a"], "payload": b"\x00\xff", "bronze_batch": 0, "bronze_row": 0, "part": 0}]).pin(0)
    lake.step()
    (name,) = names(tmp_path)
    assert name.startswith("day=unknown/export-")
    assert exported(tmp_path)[0]["payload"] == b"\x00\xff"


def test_a_snapshot_with_nothing_new_makes_no_file(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.pin(0)
    assert lake.step()
    lake.pin(1)
    assert lake.step()
    assert names(tmp_path) == []


def test_a_mart_is_replaced_as_a_whole_and_sent_once_a_build(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, "marts.daily")
    lake.pin(0)
    assert not lake.step()
    mart = str(lake.conf.lake / "marts" / "daily")
    for build, count in ((1, 3), (2, 2)):
        rows = pa.table({"day": [date(2026, 1, day + 1) for day in range(count)], "value": [float(build)] * count})
        write_deltalake(mart, rows, mode="overwrite")
        MARTS.append(lake.conf.lake, [Build(build, NOW, 0, 1, {"marts.daily": build - 1})])
        assert lake.step()
        assert not lake.step()
        assert sorted((str(row["day"]), row["value"]) for row in exported(tmp_path)) == [
            (f"2026-01-{day + 1:02}", float(build)) for day in range(count)
        ]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_column_that_the_table_gets_is_said_and_all_files_have_it_after_a_reset(tmp_path: Path, format: str) -> None:
    lake = lake_for(tmp_path, READINGS, format)
    lake.write(READINGS, [reading(0, 0)]).pin(0)
    first = lake.step()
    DeltaTable(lake.store.tables[READINGS].location.local).alter.add_columns(Field("grade", PrimitiveType("string")))
    lake.pin(1)
    second = lake.step()
    assert first is not None and first.lacking is None
    assert second is not None and second.lacking == (
        "files from before do not have the new column grade; `tidemark sinks reset` writes all of them anew"
    )
    request(lake.conf.lake, "export", Request.RESET, NOW)
    third = lake.step()
    assert third is not None and (third.is_complete, third.lacking) == (True, None)
    assert all("grade" in ds.dataset(file, format=format).schema.names for file in (tmp_path / "export").rglob(f"*.{format}"))


def test_a_batch_may_have_more_days_than_files_are_open_at_a_time(tmp_path: Path) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    for part in range(3):
        lake.write(AGGREGATES, [window(part, number, 1.0) for number in range(part, 144 * 150, 3)])
    lake.pin(0)
    lake.step()
    assert len({name.rpartition("/")[0] for name in names(tmp_path)}) == 150
    assert len(exported(tmp_path)) == 144 * 150


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_at_any_moment_leaves_each_row_once(tmp_path: Path, kills: int, chance: random.Random) -> None:
    lake = lake_for(tmp_path, READINGS)
    for number in range(kills):
        lake.write(READINGS, [reading(number, row) for row in range(20_000)]).pin(number)
        process = sender(lake.conf, "export")
        time.sleep(chance.uniform(0.0, 0.4))
        process.kill()
        process.communicate()
    _, errors = (process := sender(lake.conf, "export")).communicate()
    assert process.returncode == 0, errors
    rows = exported(tmp_path)
    assert len(rows) == len({(row["bronze_batch"], row["bronze_row"]) for row in rows}) == kills * 20_000
