"""Arrow tables as rows of Spark."""

import pyarrow as pa
from pyspark.sql import SparkSession

from orchestration.engine.session import from_arrow


def test_rows_behind_an_empty_piece_of_an_arrow_table_are_not_lost(spark: SparkSession) -> None:
    rows = pa.table({"n": [1, 2, 3]})
    pieces = pa.concat_tables([rows, rows.slice(0, 0), rows])
    assert sorted(row.n for row in from_arrow(spark, pieces).collect()) == [1, 1, 2, 2, 3, 3]
