"""Pieces: halves hold every window once, Spark and delta-rs cut alike, and tables that only some readers know are read."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from orchestration.engine import windows
from orchestration.engine.windows import Limits, Piece, in_pieces, read
from orchestration.location import Location
from orchestration.storage.tables import Table
from tests.rows import at

FIRST, LAST = (int(at(time).timestamp()) for time in ("12:00", "12:50"))
ROWS = pa.Table.from_pylist(
    [
        {"device_group": "kitchen", "device_id": f"dévice {d}", "window_end": at("12:00") + timedelta(minutes=10 * n), "value": d + n}
        for d in range(40)
        for n in range(6)
    ],
    pa.schema(
        [("device_group", pa.string()), ("device_id", pa.string()), ("window_end", pa.timestamp("us", "UTC")), ("value", pa.int64())]
    ),
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table("gold.aggregates", Location(tmp_path / "table"), "", ())
    write_deltalake(made.location.local, ROWS)
    return made


def values(tables: list[pa.Table]) -> list[str]:
    return sorted(str(row) for rows in tables for row in rows.to_pylist())


@pytest.mark.parametrize("entity", ["device_id", "device_group"])
def test_pieces_that_fit_hold_every_row_once_and_alike_in_spark(
    entity: str, table: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "LIMITS", Limits(rows=50))
    cut = [*in_pieces(Piece(FIRST, LAST, entity), lambda piece, limits: read(table, piece.predicate(), limits))]
    assert len(cut) > 4
    assert all(len(rows) <= 50 for _, rows in cut)
    assert values([rows for _, rows in cut]) == values([ROWS])
    in_spark = spark.createDataFrame(ROWS)
    for piece, rows in cut:
        assert values([in_spark.where(piece.predicate(instant="timestamp_micros")).toArrow()]) == values([rows])
        assert values([piece.of(ROWS)]) == values([rows])


def test_one_end_of_one_entity_is_taken_as_it_is_however_large(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LIMITS", Limits(rows=1))
    cut = [*in_pieces(Piece(FIRST, LAST, "device_group"), lambda piece, limits: read(table, piece.predicate(), limits))]
    assert {len(rows) for _, rows in cut} == {0, 40}
    assert values([rows for _, rows in cut]) == values([ROWS])


def test_rows_of_some_values_only(table: Table) -> None:
    rows = read(table, "value >= 3", None, {"device_id": ["dévice 1", "dévice 9"]})
    assert rows is not None
    assert sorted(rows["value"].to_pylist()) == [3, 4, 5, 6, 9, 10, 11, 12, 13, 14]


def test_a_table_with_deletion_vectors_is_read(table: Table, spark: SparkSession) -> None:
    spark.sql(f"alter table delta.`{table.location}` set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"delete from delta.`{table.location}` where value >= 3 and value < 40")
    rows = read(table, "true", None)
    assert rows is not None
    assert sorted(rows["value"].to_pylist()) == sorted(value for value in ROWS["value"].to_pylist() if value < 3 or value >= 40)
