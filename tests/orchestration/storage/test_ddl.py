"""Declared tables have the columns that Spark reads in their DDL."""

import json

import pytest
from deltalake import Schema
from pyspark.sql.types import StructType

from bronze import schema as bronze
from gold import schema as gold
from orchestration.storage.ddl import schema_of
from silver import schema as silver

DECLARED = {
    "events": bronze.EVENTS,
    **{name: getattr(silver, name) for name in ("READINGS", "QUARANTINE", "LATE", "DUPLICATES", "DEVICES")},
    **{f"gold {name}": getattr(gold, name) for name in ("AGGREGATES", "VECTORS", "LATE")},
}


@pytest.mark.parametrize("ddl", DECLARED.values(), ids=DECLARED.keys())
@pytest.mark.usefixtures("spark")
def test_columns_types_and_comments_are_those_that_spark_reads(ddl: str) -> None:
    assert json.loads(Schema.from_arrow(schema_of(ddl)).to_json()) == json.loads(StructType.fromDDL(ddl).json())
