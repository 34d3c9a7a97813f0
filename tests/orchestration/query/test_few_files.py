"""A table that is asked by its files has the rows, columns and version that Delta gives it; one whose rows are not its files is not."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration.serving.sql import direct_scan as few_files
from orchestration.serving.sql.catalog import Catalog
from orchestration.storage.views import View

ODD = "a plant's 50% lake"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two versions: a partition without a value, and a column that the first files do not have; one file is compacted away."""
    path = tmp_path / ODD / "silver" / "readings"
    days = [date(2026, 1, 5), None, date(2026, 1, 6)]
    write_deltalake(path, pa.table({"day": pa.array(days, pa.date32()), "n": [1, 2, 3]}), partition_by=["day"])
    more = pa.table({"day": pa.array(days[:1], pa.date32()), "n": [4], "text": ["ä"]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    DeltaTable(path).optimize.compact()
    return path


def asked(spark: SparkSession, view: View, query: str) -> pa.Table:
    catalog = Catalog(spark, {view.name: view})
    return catalog.resolved(catalog.parsed(query), [view.name]).toArrow()


def by_delta(spark: SparkSession, table: Path, version: int) -> pa.Table:
    return spark.read.format("delta").option("versionAsOf", version).load(str(table)).orderBy("n").toArrow()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_rows_columns_and_types_are_those_of_delta_at_the_version(table: Path, version: int, spark: SparkSession) -> None:
    view = View("silver.readings", table, version)
    assert few_files.few_files(view) is not None
    assert asked(spark, view, "select * from silver.readings order by n") == by_delta(spark, table, version)


def test_what_is_deleted_by_a_vector_is_asked_through_delta(table: Path, spark: SparkSession) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"alter table {name} set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"delete from {name} where n = 1")  # which shares its file with 4
    view = View("silver.readings", table, DeltaTable(table).version())
    assert few_files.few_files(view) is None
    assert asked(spark, view, "select n from silver.readings order by n")["n"].to_pylist() == [2, 3, 4]


def test_many_files_and_none_are_asked_through_delta(table: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_files, "FEW", 2)
    view = View("silver.readings", table, 1)
    assert few_files.few_files(view) is None
    assert asked(spark, view, "select * from silver.readings order by n") == by_delta(spark, table, 1)
    DeltaTable(table).delete()
    assert asked(spark, View("silver.readings", table, DeltaTable(table).version()), "select * from silver.readings").num_rows == 0
