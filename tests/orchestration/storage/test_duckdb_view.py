"""Rows of a Delta table's files in DuckDB: values come as their columns declare them, whatever the folders of a table look like."""

import math
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.location import Location
from orchestration.storage.delta import files_of, open_table
from orchestration.storage.duckdb_view import select_from_table


def rows(path: Path, condition: str = "true") -> list[tuple[Any, ...]]:
    table = open_table(Location(path))
    sql = select_from_table(table, (str(path / name) for name in files_of(table)))
    return duckdb.execute(f"from ({sql}) where {condition} order by all").fetchall()


def test_a_folder_above_the_table_that_looks_like_a_partition_changes_no_value(tmp_path: Path) -> None:
    path = tmp_path / "metric=7" / "day=gone" / "readings"
    path.mkdir(parents=True)
    written = pa.table({"metric": ["temperature"], "day": [date(2026, 1, 5)]})
    write_deltalake(path, written, partition_by=["day"])
    assert rows(path) == [("temperature", date(2026, 1, 5))]


@pytest.mark.parametrize("room", ["007", "living room", "50 %", "a=b", "a/b:c", "Küche", "it's", "+1", "%20", "a*[b]?"])
def test_a_text_partition_is_the_text_that_was_written(room: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "rooms", pa.table({"n": [1], "floor": [3], "room": [room]}), partition_by=["floor", "room"])
    assert rows(tmp_path / "rooms") == [(1, 3, room)]


def test_a_partition_without_a_value_is_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "rooms", pa.table({"n": [1, 2], "room": pa.array([None, "7"])}), partition_by=["room"])
    assert rows(tmp_path / "rooms") == [(1, None), (2, "7")]


def test_files_that_are_older_than_a_column_have_null_in_it(tmp_path: Path) -> None:
    path = tmp_path / "readings"
    write_deltalake(path, pa.table({"n": [1]}))
    write_deltalake(path, pa.table({"n": [2], "unit": ["W"]}), mode="append", schema_mode="merge")
    assert rows(path) == [(1, None), (2, "W")]


def test_a_condition_finds_nan(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "readings", pa.table({"value": [1.0, math.nan]}))
    assert [math.isnan(value) for (value,) in rows(tmp_path / "readings", "isnan(value)")] == [True]


def test_a_table_without_files_has_its_columns_and_no_row(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "readings", pa.table({"value": pa.array([], pa.float64())}))
    assert rows(tmp_path / "readings") == []
