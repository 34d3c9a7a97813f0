"""Marts with odd cells: each row comes right, or is in ops.dead_rows; a mart that cannot be read is named."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.errors import TidemarkError
from orchestration.storage.marts import MARTS, Build
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.connectors.sinks.small_lake import NOW, SmallLake
from tests.orchestration.connectors.sinks.test_dead_rows import csv_lake, csv_rows, log
from tests.orchestration.connectors.sinks.test_postgres import TO


def mart_of(lake: SmallLake, rows: pa.Table) -> SmallLake:
    """A lake with one build of a mart of these rows."""
    lake.pin(0)
    write_deltalake(lake.conf.lake.local / "marts" / "odd", rows)
    MARTS.append(lake.conf.lake, [Build(1, NOW, 0, 1, {"marts.odd": 0})])
    return lake


@pytest.mark.postgres
def test_instants_of_any_year_are_right_in_postgres_or_dead(tmp_path: Path, postgres: PostgresServer) -> None:
    micros = pa.array([2**62, 2**61, -(2**62), 2**63 - 2], pa.int64())
    at = micros.cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"number": [0, 1, 2, 3], "at": at, "several": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), at)})
    lake = mart_of(SmallLake(tmp_path, {"w": {"table": "marts.odd", "postgres": TO}}), rows)
    lake.step()
    received = postgres.rows(
        "select number, (extract(epoch from at) * 1000000)::int8, (extract(epoch from several[1]) * 1000000)::int8 from received"
    )
    assert sorted(received) == [(0, 2**62, 2**62), (1, 2**61, 2**61), (3, 2**63 - 2, 2**63 - 2)]
    assert len(log(lake)) == 1


@pytest.mark.parametrize("day", ["x" * 300, "a\0b"])
def test_a_row_whose_day_names_no_folder_is_dead_and_the_others_come(tmp_path: Path, day: str) -> None:
    lake = mart_of(csv_lake(tmp_path, "marts.odd"), pa.table({"day": ["monday", day, "2026-01-05"], "value": [1, 2, 3]}))
    lake.step()
    assert sorted(file.parent.name for file in (tmp_path / "export").rglob("*.csv")) == ["day=2026-01-05", "day=monday"]
    assert sorted(row["value"] for row in csv_rows(tmp_path)) == ["1", "3"]
    assert [row.reason for row in log(lake)] == ["day names the folder, and is longer than a name may be, or has a character NUL."]


@pytest.mark.parametrize("days", [[1, 2], [1.5, 2.5], [True, False], [b"a", b"\xff"]])
def test_a_mart_whose_day_is_no_text_comes_whole(tmp_path: Path, days: list[Any]) -> None:
    lake = mart_of(csv_lake(tmp_path, "marts.odd", binary="base64"), pa.table({"day": days, "value": [1, 2]}))
    lake.step()
    assert (sorted(row["value"] for row in csv_rows(tmp_path)), log(lake)) == (["1", "2"], [])


def test_a_mart_with_a_text_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    lake = mart_of(csv_lake(tmp_path, "marts.odd"), pa.table({"text": pa.array([b"a", b"b\xff"]).view(pa.string())}))
    with pytest.raises(TidemarkError, match=r"^marts\.odd cannot be read: .*UTF-8.*\n  Correct the model: a text has to be UTF-8\.$"):
        lake.step()
