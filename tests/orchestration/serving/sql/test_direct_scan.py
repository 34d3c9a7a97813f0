"""A direct scan gives the rows, columns and types of Delta at the version; tables with deleted rows in their files are read with Delta."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration.location import Location
from orchestration.serving.sql import catalog as sql_catalog
from orchestration.serving.sql.catalog import Catalog, plain_files
from orchestration.storage.delta import open_table
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
    return catalog.resolve(catalog.parse(query), [view.name]).toArrow()


def by_delta(spark: SparkSession, table: Path, version: int) -> pa.Table:
    return spark.read.format("delta").option("versionAsOf", version).load(str(table)).orderBy("n").toArrow()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_rows_columns_and_types_are_those_of_delta_at_the_version(table: Path, version: int, spark: SparkSession) -> None:
    view = View("silver.readings", Location(table), version)
    assert plain_files(open_table(view.location, view.version))
    assert asked(spark, view, "select * from silver.readings order by n") == by_delta(spark, table, version)


def test_a_table_with_deletion_vectors_is_read_with_delta(table: Path, spark: SparkSession) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"alter table {name} set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"delete from {name} where n = 1")  # which shares its file with 4
    view = View("silver.readings", Location(table), DeltaTable(table).version())
    assert not plain_files(open_table(view.location, view.version))
    assert asked(spark, view, "select n from silver.readings order by n")["n"].to_pylist() == [2, 3, 4]


def test_tables_of_many_files_or_none_are_read_with_delta(table: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_catalog, "MAX_FILES", 2)
    view = View("silver.readings", Location(table), 1)
    assert not plain_files(open_table(view.location, view.version))
    assert asked(spark, view, "select * from silver.readings order by n") == by_delta(spark, table, 1)
    DeltaTable(table).delete()
    assert (
        asked(spark, View("silver.readings", Location(table), DeltaTable(table).version()), "select * from silver.readings").num_rows == 0
    )
