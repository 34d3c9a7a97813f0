"""PostgreSQL's data types, in which values of DuckDB arrive at a client."""

from dataclasses import dataclass

from duckdb.sqltypes import DuckDBPyType


@dataclass(frozen=True)
class DataType:
    """A data type of PostgreSQL. `size`: bytes, -1 where it varies. `sql`: its name in DuckDB.

    `as_text`, `as_value`: DuckDB's SQL of a column {0}, for its text in PostgreSQL's form and for the value that `rows` writes in binary.
    """

    oid: int
    array: int
    size: int
    name: str
    sql: str
    as_text: str = "{0}::varchar"
    as_value: str = "{0}"
    element: "DataType | None" = None

    @property
    def is_bounded(self) -> bool:
        """Whether each value takes a few bytes."""
        return self.size > 0 or self.name == "numeric"


FINITE = "case when isnan({0}) then 'NaN' when isinf({0}) then if({0} > 0, 'Infinity', '-Infinity') else {0}::varchar end"
BEFORE_CHRIST = "case when {0} < '0001-01-01' and isfinite({0}) then replace({0}::varchar, ' (BC)', '') || ' BC' else {0}::varchar end"
MICROS = BEFORE_CHRIST.replace("{0}", "{0}::timestamp")
INT4 = DataType(23, 1007, 4, "int4", "integer")
INT8 = DataType(20, 1016, 8, "int8", "bigint")
OID = DataType(26, 1028, 4, "oid", "uinteger", as_value="{0}::uinteger")
NUMERIC = DataType(1700, 1231, -1, "numeric", "decimal(38, 10)", as_value="{0}::varchar")
TEXT = DataType(25, 1009, -1, "text", "varchar", as_value="{0}::varchar")
JSON = DataType(114, 199, -1, "json", "json", "to_json({0})::varchar", "to_json({0})::varchar")
TYPES = {
    data_type.name: data_type
    for data_type in (
        DataType(16, 1000, 1, "bool", "boolean", "case {0} when true then 't' when false then 'f' end"),
        DataType(21, 1005, 2, "int2", "smallint", as_value="{0}::smallint"),
        DataType(700, 1021, 4, "float4", "float", FINITE),
        DataType(701, 1022, 8, "float8", "double", FINITE),
        DataType(17, 1001, -1, "bytea", "blob", r"'\x' || lower(hex({0}))"),
        DataType(1082, 1182, 4, "date", "date", BEFORE_CHRIST),
        DataType(1083, 1183, 8, "time", "time", "{0}::time::varchar", "{0}::time"),
        DataType(1114, 1115, 8, "timestamp", "timestamp", MICROS, "{0}::timestamp"),
        DataType(1184, 1185, 8, "timestamptz", "timestamptz", BEFORE_CHRIST),
        DataType(1186, 1187, 16, "interval", "interval", "replace({0}::varchar, 'month', 'mon')"),
        DataType(2950, 2951, 16, "uuid", "uuid", as_value="unhex(replace({0}::varchar, '-', ''))"),
        *(INT4, INT8, OID, NUMERIC, TEXT, JSON),
    )
}
"""Types by PostgreSQL's internal name."""
QUOTED = {"text", "bytea", "json", "interval", "timestamp", "timestamptz"}
"""Types whose texts may hold what separates the elements of an array."""
OF_DUCKDB = {
    **{data_type.sql: data_type for data_type in TYPES.values()},
    **dict.fromkeys(("tinyint", "utinyint"), TYPES["int2"]),
    **dict.fromkeys(("usmallint", "int"), INT4),
    **dict.fromkeys(("ubigint", "hugeint", "uhugeint", "bignum", "decimal", "numeric"), NUMERIC),
    **dict.fromkeys(("timestamp_s", "timestamp_ms", "timestamp_ns"), TYPES["timestamp"]),
    **dict.fromkeys(("struct", "map", "union", "variant"), JSON),
    "timestamp with time zone": TYPES["timestamptz"],
    "time_ns": TYPES["time"],
    "int64": INT8,
}
"""Types by DuckDB's name; the others are texts."""
SQL_NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}


def type_of(duckdb_type: DuckDBPyType) -> DataType:
    """Return the type in which values of one of DuckDB's arrive. Lists of lists and of structs are json."""
    if duckdb_type.id in {"list", "array"}:
        child = duckdb_type.children[0][1]
        assert isinstance(child, DuckDBPyType)
        element = type_of(child)
        is_list = duckdb_type.id == "list"
        return JSON if element.element or element is JSON else array_of(element, "{0}" if is_list else f"{{0}}::{element.sql}[]")
    return JSON if str(duckdb_type) == "JSON" else OF_DUCKDB.get(duckdb_type.id, TEXT)


def array_of(element: DataType, column: str = "{0}") -> DataType:
    """Return the type of arrays of one dimension. `column`: DuckDB's SQL of a list."""
    text = element.as_text.format("e")
    if element.name in QUOTED:
        text = rf"""'"' || replace(replace({text}, '\', '\\'), '"', '\"') || '"'"""
    listed = f"list_transform({column}, lambda e: coalesce({text}, 'NULL'))"
    value = column if element.as_value == "{0}" else f"list_transform({column}, lambda e: {element.as_value.format('e')})"
    text = f"'{{{{' || array_to_string({listed}, ',') || '}}}}'"
    return DataType(element.array, 0, -1, f"_{element.name}", f"{element.sql}[]", text, value, element)


def modifier_of(duckdb_type: DuckDBPyType) -> int:
    """Return precision and scale of a decimal as PostgreSQL's type modifier, -1 for other types."""
    if duckdb_type.id != "decimal":
        return -1
    size = {name: int(str(value)) for name, value in duckdb_type.children}
    return (size["precision"] << 16 | size["scale"]) + 4


BY_OID = {data_type.oid: data_type for data_type in TYPES.values()} | {data_type.array: array_of(data_type) for data_type in TYPES.values()}
