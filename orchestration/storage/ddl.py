"""The DDL in which the layers declare tables, read without a JVM: bronze is written while it starts."""

import re
from functools import cache

import pyarrow as pa

COLUMN = re.compile(r"^ *(\w+) (\S+) COMMENT '(.*)',?$", re.MULTILINE)
TYPES = {
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "MAP<STRING,STRING>": pa.map_(pa.string(), pa.string()),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "ARRAY<DOUBLE>": pa.list_(pa.float64()),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<STRUCT<key:STRING,value:BINARY>>": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


@cache
def schema_of(ddl: str) -> pa.Schema:
    """The columns of a table with their comments; all groups have the same three tables."""
    return pa.schema([pa.field(name, TYPES[kind], metadata={"comment": comment}) for name, kind, comment in COLUMN.findall(ddl)])
