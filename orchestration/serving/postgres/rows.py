"""Rows of Arrow's as messages: values in binary, and one message a row, without a Python loop over rows."""

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.serving.postgres.datatypes import DataType

EPOCH_DAYS = 10_957
"""From 1970 to 2000, where PostgreSQL's times begin."""
EPOCHS = {"date": EPOCH_DAYS, "timestamp": EPOCH_DAYS * 86_400_000_000, "timestamptz": EPOCH_DAYS * 86_400_000_000}
FORMS = {
    "bool": ">u1",
    "int2": ">i2",
    "int4": ">i4",
    "int8": ">i8",
    "oid": ">u4",
    "float4": ">f4",
    "float8": ">f8",
    "date": ">i4",
    "time": ">i8",
    "timestamp": ">i8",
    "timestamptz": ">i8",
}
"""How types of fixed size go over the wire, in numpy's words."""
MAX_BATCH_BYTES = 1 << 26
"""Messages that are made at once; Arrow's arrays end at 2 GiB."""


def encoded(column: pa.Array, data_type: DataType) -> pa.Array:
    """Write values in binary; nulls stay null."""
    if data_type.element:
        binary = _arrays(column, data_type.element)
    elif data_type.name in FORMS:
        binary = _fixed(column, data_type.name)
    elif data_type.name == "interval":
        binary = _intervals(column)
    elif data_type.name == "numeric":
        return pa.array([None if value is None else _numeric(Decimal(value)) for value in column.to_pylist()], pa.binary())
    else:
        return column.cast(pa.binary())
    return pc.if_else(column.is_valid(), binary, pa.scalar(None, pa.binary())) if column.null_count else binary


def _fixed(column: pa.Array, name: str) -> pa.Array:
    form = np.dtype(FORMS[name])
    if name == "bool":
        column = column.cast(pa.uint8())
    elif form.kind == "i" and not pa.types.is_integer(column.type):
        column = column.view(pa.int32() if form.itemsize == 4 else pa.int64())
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if name in EPOCHS:
        last = np.iinfo(values.dtype).max  # infinity, of either sign
        shifted = np.where(values == last, last, values - values.dtype.type(EPOCHS[name]))
        values = np.where(values == -last, -last - 1, shifted)
    return _binaries(values.astype(form))


def _intervals(column: pa.Array) -> pa.Array:
    of_arrow = np.frombuffer(column.buffers()[1], [("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    of_arrow = of_arrow[column.offset : column.offset + len(column)]
    values = np.empty(len(column), [("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
    values["micros"], values["days"], values["months"] = of_arrow["nanos"] // 1000, of_arrow["days"], of_arrow["months"]
    return _binaries(values.view("V16"))


def _numeric(number: Decimal) -> bytes:
    """Digits to the base 10,000, and how many of them stand before the point."""
    if not number.is_finite():
        return struct.pack("!hhHH", 0, 0, 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000, 0)
    whole, _, part = f"{number.copy_abs():f}".partition(".")
    scale, weight = len(part), -(-len(whole) // 4) - 1
    text = whole.rjust((weight + 1) * 4, "0") + part.ljust(-(-scale // 4) * 4, "0")
    digits = [int(text[at : at + 4]) for at in range(0, len(text), 4)]
    while digits and not digits[0]:
        digits, weight = digits[1:], weight - 1
    while digits and not digits[-1]:
        digits.pop()
    return struct.pack(f"!hhHH{len(digits)}h", len(digits), weight if digits else 0, 0x4000 * (number < 0), scale, *digits)


def _arrays(column: pa.Array, element: DataType) -> pa.Array:
    """The elements lie one after the other already, so an array is a header and a slice of their bytes."""
    flat = column.flatten()
    before, values, sizes = _with_lengths(encoded(flat, element))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = starts[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int32)
    joined = pc.binary_join_element_wise(before, values, b"") if len(flat) else pa.array([], pa.binary())
    data = joined.buffers()[2] if len(flat) else pa.py_buffer(b"")
    bodies = pa.BinaryArray.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), data])
    one = np.zeros(len(column), [("dimensions", ">i4"), ("nulls", ">i4"), ("oid", ">i4"), ("count", ">i4"), ("first", ">i4")])
    one["dimensions"], one["nulls"], one["oid"], one["count"], one["first"] = 1, bool(flat.null_count), element.oid, lengths, 1
    headers = pc.if_else(pa.array(lengths > 0), _binaries(one.view("V20")), pa.scalar(struct.pack("!iii", 0, 0, element.oid)))
    return pc.binary_join_element_wise(headers, bodies, b"")


def _binaries(values: np.ndarray) -> pa.Array:
    width = values.dtype.itemsize
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    return fixed.cast(pa.binary())


def _with_lengths(column: pa.Array) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """Return what goes before each value, the value, and the bytes that both take."""
    lengths = pc.binary_length(column).cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    return _binaries(lengths.astype(">i4")), column.fill_null(b""), np.maximum(lengths, 0).astype(np.int64) + 4


def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that a part's messages are made at once."""
    if batch.num_rows > 1 and batch.nbytes > MAX_BATCH_BYTES:
        half = batch.num_rows // 2
        yield from parts(batch.slice(0, half))
        yield from parts(batch.slice(half))
    elif batch.num_rows:
        yield batch


def framed(columns: Sequence[pa.Array], kind: bytes = b"D") -> memoryview:
    """Return a DataRow, or a CopyData, for each row of columns of bytes."""
    values, total = [], np.full(len(columns[0]), 6, np.int64)
    for column in columns:
        before, value, sizes = _with_lengths(column)
        values += [before, value]
        total += sizes
    return _joined(kind, total, values, struct.pack("!h", len(columns)))


def framed_lines(columns: Sequence[pa.Array], separator: bytes) -> memoryview:
    """Return a CopyData with a line for each row of columns of texts."""
    lines = pc.binary_join_element_wise(*columns, separator) if len(columns) > 1 else columns[0]
    total = pc.binary_length(lines).to_numpy(zero_copy_only=False).astype(np.int64) + 5
    return _joined(b"d", total, [lines, pa.array([b"\n"] * len(lines), pa.binary())], b"")


def _joined(kind: bytes, total: np.ndarray, values: Sequence[pa.Array], count: bytes) -> memoryview:
    fields = [("kind", "S1"), ("length", ">i4"), *([("count", f"V{len(count)}")] if count else [])]
    header = np.zeros(len(total), fields)
    header["kind"], header["length"] = kind, total
    if count:
        header["count"] = np.frombuffer(count, f"V{len(count)}")
    joined = pc.binary_join_element_wise(_binaries(header.view(f"V{header.dtype.itemsize}")), *values, b"")
    first, last = np.frombuffer(joined.buffers()[1], np.int32)[[joined.offset, joined.offset + len(joined)]]
    return memoryview(joined.buffers()[2])[first:last]
