"""Values between DuckDB and the wire: types by their numbers, rows in text and binary, parameters as literals.

Texts are made by DuckDB, as columns of a SELECT around the query; rows are made by Arrow, a batch at once.
"""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.sqltypes import DuckDBPyType
from orchestration.serving.postgres.wire import PostgresError

EPOCH_DAYS = 10957
"""From 1970 to 2000, where PostgreSQL's times begin."""
EPOCH_MICROS = EPOCH_DAYS * 86_400_000_000
TEXTS, UNKNOWN = {25, 1043, 1042, 19, 18, 114, 3802}, {0, 705}


def _fixed(kind: str, since: int = 0) -> Callable[[pa.Array], pa.Array]:
    def encode(column: pa.Array) -> pa.Array:
        whole = kind[1] == "i"
        if whole and not pa.types.is_integer(column.type):
            column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        return _binaries((values - since if since else values).astype(kind))

    return encode


def _bools(column: pa.Array) -> pa.Array:
    return _binaries(column.fill_null(False).cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(">u1"))


def _each(encode: Callable[[object], bytes]) -> Callable[[pa.Array], pa.Array]:
    return lambda column: pa.array([None if value is None else encode(value) for value in column.to_pylist()], pa.binary())


def _numeric(value: object) -> bytes:
    number = Decimal(str(value))
    if not number.is_finite():
        return struct.pack("!hhHH", 0, 0, 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000, 0)
    scale = max(-int(number.as_tuple().exponent), 0)
    whole, _, part = f"{abs(number):f}".partition(".")
    text = whole.rjust(-(-len(whole) // 4) * 4, "0") + part.ljust(-(-len(part) // 4) * 4, "0")
    digits, weight = [int(text[at : at + 4]) for at in range(0, len(text), 4)], -(-len(whole) // 4) - 1
    while digits and not digits[0]:
        digits, weight = digits[1:], weight - 1
    while digits and not digits[-1]:
        digits.pop()
    return struct.pack(f"!hhHH{len(digits)}h", len(digits), weight if digits else 0, 0x4000 if number < 0 else 0, scale, *digits)


def _interval(value: object) -> bytes:
    months, days, nanos = value  # type: ignore[misc]
    return struct.pack("!qii", nanos // 1000, days, months)


@dataclass(frozen=True)
class Kind:
    """A type. `as_text`, `as_value`: DuckDB's SQL of a column {0}; the latter is what `binary` encodes."""

    oid: int
    array: int
    size: int
    name: str
    binary: Callable[[pa.Array], pa.Array]
    as_text: str = "{0}::varchar"
    as_value: str = "{0}"
    element: "Kind | None" = None


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary())


FINITE = "case when isnan({0}) then 'NaN' when isinf({0}) then if({0} > 0, 'Infinity', '-Infinity') else {0}::varchar end"
BOOL = Kind(16, 1000, 1, "bool", _bools, "case {0} when true then 't' when false then 'f' end")
INT2 = Kind(21, 1005, 2, "int2", _fixed(">i2"), as_value="{0}::smallint")
INT4 = Kind(23, 1007, 4, "int4", _fixed(">i4"), as_value="{0}::integer")
INT8 = Kind(20, 1016, 8, "int8", _fixed(">i8"), as_value="{0}::bigint")
OID = Kind(26, 1028, 4, "oid", _fixed(">u4"), as_value="{0}::uinteger")
FLOAT4 = Kind(700, 1021, 4, "float4", _fixed(">f4"), FINITE)
FLOAT8 = Kind(701, 1022, 8, "float8", _fixed(">f8"), FINITE)
NUMERIC = Kind(1700, 1231, -1, "numeric", _each(_numeric), as_value="{0}::varchar")
TEXT = Kind(25, 1009, -1, "text", _plain, as_value="{0}::varchar")
BYTEA = Kind(17, 1001, -1, "bytea", _plain, r"'\x' || lower(hex({0}))")
DATE = Kind(1082, 1182, 4, "date", _fixed(">i4", EPOCH_DAYS))
TIME = Kind(1083, 1183, 8, "time", _fixed(">i8"))
TIMESTAMP = Kind(1114, 1115, 8, "timestamp", _fixed(">i8", EPOCH_MICROS), as_value="{0}::timestamp")
TIMESTAMPTZ = Kind(1184, 1185, 8, "timestamptz", _fixed(">i8", EPOCH_MICROS))
INTERVAL = Kind(1186, 1187, 16, "interval", _each(_interval))
UUID = Kind(2950, 2951, 16, "uuid", _each(lambda value: bytes.fromhex(str(value).replace("-", ""))), as_value="{0}::varchar")
JSON = Kind(114, 199, -1, "json", _plain, "to_json({0})::varchar", "to_json({0})::varchar")
KINDS = {
    kind.oid: kind
    for kind in (
        BOOL,
        INT2,
        INT4,
        INT8,
        OID,
        FLOAT4,
        FLOAT8,
        NUMERIC,
        TEXT,
        BYTEA,
        DATE,
        TIME,
        TIMESTAMP,
        TIMESTAMPTZ,
        INTERVAL,
        UUID,
        JSON,
    )
}
BY_NAME = {
    **{"boolean": BOOL, "tinyint": INT2, "utinyint": INT2, "smallint": INT2, "usmallint": INT4, "integer": INT4, "uinteger": OID},
    **{"bigint": INT8, "ubigint": NUMERIC, "hugeint": NUMERIC, "uhugeint": NUMERIC, "bignum": NUMERIC, "decimal": NUMERIC, "float": FLOAT4},
    **{"double": FLOAT8, "blob": BYTEA, "date": DATE, "time": TIME, "timestamp": TIMESTAMP, "timestamp_s": TIMESTAMP},
    **{"timestamp_ms": TIMESTAMP, "timestamp_ns": TIMESTAMP, "timestamp with time zone": TIMESTAMPTZ, "interval": INTERVAL, "uuid": UUID},
    **{"struct": JSON, "map": JSON, "union": JSON, "array": JSON, "variant": JSON},
}
"""By DuckDB's name; the others are texts."""
SQL_NAMES = {"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision"} | {
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}


def kind_of(of: DuckDBPyType) -> Kind:
    """The type in which values of one of DuckDB's arrive."""
    if of.id == "list":
        element = kind_of(of.children[0][1])
        return JSON if element.element or element is JSON else array_of(element)
    return JSON if str(of) == "JSON" else BY_NAME.get(of.id, TEXT)


def array_of(element: Kind) -> Kind:
    text = element.as_text.format("e")
    if element in {TEXT, BYTEA, JSON, INTERVAL, TIMESTAMP, TIMESTAMPTZ}:
        text = rf"""'"' || replace(replace({text}, '\', '\\'), '"', '\"') || '"'"""
    listed = f"list_transform({{0}}, lambda e: coalesce({text}, 'NULL'))"
    value = "{0}" if element.as_value == "{0}" else f"list_transform({{0}}, lambda e: {element.as_value.format('e')})"
    text = f"if({{0}} is null, null, '{{{{' || coalesce(list_aggr({listed}, 'string_agg', ','), '') || '}}}}')"
    return Kind(element.array, 0, -1, f"_{element.name}", lambda column: _arrays(column, element), text, value, element)


def _binaries(values: np.ndarray) -> pa.Array:
    width = values.dtype.itemsize
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    return fixed.cast(pa.binary())


def _with_lengths(column: pa.Array) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """What goes before each value, the value, and the bytes that both take."""
    lengths = pc.binary_length(column).cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    return _binaries(lengths.astype(">i4")), column.fill_null(b""), np.maximum(lengths, 0) + 4


def _masked(column: pa.Array, encoded: pa.Array) -> pa.Array:
    return encoded if not column.null_count else pc.if_else(column.is_valid(), encoded, pa.scalar(None, pa.binary()))


def encoded(column: pa.Array, kind: Kind) -> pa.Array:
    """In binary."""
    return _masked(column, kind.binary(column))


def _arrays(column: pa.Array, element: Kind) -> pa.Array:
    """The elements lie one after the other already, so an array is a header and a slice of their bytes."""
    flat = column.flatten()
    before, values, sizes = _with_lengths(encoded(flat, element))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = starts[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int32)
    joined = pc.binary_join_element_wise(before, values, b"") if len(flat) else pa.array([], pa.binary())
    bodies = pa.BinaryArray.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), joined.buffers()[2] or pa.py_buffer(b"")])
    one = np.zeros(len(column), [("dimensions", ">i4"), ("nulls", ">i4"), ("oid", ">i4"), ("count", ">i4"), ("first", ">i4")])
    one["dimensions"], one["nulls"], one["oid"], one["count"], one["first"] = 1, bool(flat.null_count), element.oid, lengths, 1
    headers = pc.if_else(pa.array(lengths > 0), _binaries(one.view("V20")), pa.scalar(struct.pack("!iii", 0, 0, element.oid)))
    return pc.binary_join_element_wise(headers, bodies, b"")


def framed(columns: Sequence[pa.Array], kind: bytes = b"D", counts: bool = True) -> memoryview:
    """A message for each row, of columns of bytes."""
    parts, total = [], np.full(len(columns[0]), 6 if counts else 4, np.int64)
    for column in columns:
        before, values, sizes = _with_lengths(column)
        parts += [before, values]
        total += sizes
    return _joined(kind, total, parts, struct.pack("!h", len(columns)))


def framed_lines(columns: Sequence[pa.Array], separator: bytes) -> memoryview:
    """A message of COPY for each row, of columns of texts."""
    lines = pc.binary_join_element_wise(*columns, separator) if len(columns) > 1 else columns[0]
    total = pc.binary_length(lines).to_numpy(zero_copy_only=False).astype(np.int64) + 5
    return _joined(b"d", total, [lines, pa.array([b"\n"] * len(lines), pa.binary())], b"")


def _joined(kind: bytes, total: np.ndarray, parts: Sequence[pa.Array], after: bytes) -> memoryview:
    header = np.zeros(
        len(total), [("kind", "S1"), ("length", ">i4"), ("after", f"V{len(after)}")] if after else [("kind", "S1"), ("length", ">i4")]
    )
    header["kind"], header["length"] = kind, total
    if after:
        header["after"] = np.frombuffer(after, f"V{len(after)}")
    joined = pc.binary_join_element_wise(_binaries(header.view(f"V{header.dtype.itemsize}")), *parts, b"")
    first, last = np.frombuffer(joined.buffers()[1], np.int32)[[joined.offset, joined.offset + len(joined)]]
    return memoryview(joined.buffers()[2])[first:last]


DATE_IN_ZONE = re.compile(r"^(\d{4}-\d\d-\d\d) [+-]\d\d(:\d\d)?$")
"""How pgjdbc sends a date, whose type it leaves open."""


def literal(oid: int, is_binary: bool, value: bytes | None) -> str:
    """A parameter in DuckDB's SQL: what has no type is a literal of a text, which takes the type that it meets."""
    kind = KINDS.get(oid) or next((array_of(kind) for kind in KINDS.values() if kind.array == oid), None)
    if kind is None and oid not in TEXTS | UNKNOWN:
        raise PostgresError("42704", f"parameters of the type {oid} are not known here: cast them to text.")
    if value is None:
        return f"cast(null as {_sql(kind)})" if kind and kind is not TEXT else "null"
    if kind is None or kind is TEXT:
        return quoted(DATE_IN_ZONE.sub(r"\1", value.decode()))
    if kind.element:
        listed = _binary_array(value, kind.element) if is_binary else _text_array(value.decode(), kind.element)
        return f"cast([{', '.join(listed)}] as {_sql(kind.element)}[])"
    return f"cast({quoted(_binary(kind, value) if is_binary else _text(kind, value.decode()))} as {_sql(kind)})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql(kind: Kind) -> str:
    if kind.element:
        return f"{_sql(kind.element)}[]"
    return {"oid": "bigint", "numeric": "decimal(38, 10)", "bytea": "blob", "text": "varchar"}.get(kind.name, kind.name)


def _text(kind: Kind, value: str) -> str:
    if kind is BYTEA:
        return "".join(f"\\x{byte:02X}" for byte in bytes.fromhex(value.removeprefix("\\x")))
    return DATE_IN_ZONE.sub(r"\1", value)


FORMS = {BOOL: "!?", INT2: "!h", INT4: "!i", INT8: "!q", OID: "!I", FLOAT4: "!f", FLOAT8: "!d"}


def _binary(kind: Kind, value: bytes) -> str:
    try:
        if kind in FORMS:
            form = FORMS[kind]
            return str(struct.unpack(form if len(value) == kind.size else {4: "!i", 8: "!q", 2: "!h"}[len(value)], value)[0])
        if kind in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
            (number,) = struct.unpack("!i" if kind is DATE else "!q", value)
            if kind is DATE:
                return str(date(2000, 1, 1) + timedelta(number))
            at = datetime(2000, 1, 1, tzinfo=UTC if kind is TIMESTAMPTZ else None) + timedelta(microseconds=number)
            return str(at.time() if kind is TIME else at)
    except (struct.error, OverflowError, KeyError) as error:
        raise PostgresError("22P03", f"a {kind.name} of {len(value)} bytes: {error}") from None
    if kind is NUMERIC:
        count, weight, sign, scale, *digits = struct.unpack(f"!hhHH{(len(value) - 8) // 2}h", value)
        number = sum((Decimal(digit).scaleb(4 * (weight - at)) for at, digit in enumerate(digits)), Decimal(0))
        return f"{'-' if sign == 0x4000 else ''}{number:.{scale}f}"
    if kind is BYTEA:
        return "".join(f"\\x{byte:02X}" for byte in value)
    if kind is UUID:
        return value.hex()
    if kind is INTERVAL:
        micros, days, months = struct.unpack("!qii", value)
        return f"{months} months {days} days {micros} microseconds"
    return value.decode()


def _binary_array(value: bytes, element: Kind) -> list[str]:
    dimensions, _, _, *_ = struct.unpack_from("!iii", value)
    if dimensions > 1:
        raise PostgresError("0A000", "arrays of one dimension only")
    at, found = 20, []
    for _ in range(struct.unpack_from("!i", value, 12)[0] if dimensions else 0):
        (length,) = struct.unpack_from("!i", value, at)
        found.append("null" if length < 0 else quoted(_binary(element, value[at + 4 : at + 4 + length])))
        at += 4 + max(length, 0)
    return found


def _text_array(value: str, element: Kind) -> list[str]:
    found, word, at, was_quoted = [], "", 1, False
    if not (value.startswith("{") and value.endswith("}")):
        raise PostgresError("22P02", "an array stands in braces")
    while at < len(value):
        letter = value[at]
        if letter == '"':  # what is around the quotes is white space
            word, was_quoted, at = "", True, at + 1
            while value[at] != '"':
                at += value[at] == "\\"
                word, at = word + value[at], at + 1
        elif letter in ",}":
            word = word if was_quoted else word.strip()
            if word or was_quoted or letter == ",":
                found.append("null" if word.lower() == "null" and not was_quoted else quoted(_text(element, word)))
            word, was_quoted = "", False
        elif not was_quoted:
            word += letter
        at += 1
    return found
