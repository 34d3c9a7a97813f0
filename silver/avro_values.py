"""Avro's binary encoding to values as JSON has them, by the schema of the writer. What the specification does not allow is unreadable.

A record is an object, an enum its symbol, a union the value alone. Of logical types only decimal counts, as the nearest double; a
timestamp is the number that was written. Bytes are base64. Of a key that a map repeats, the last value counts.

Not fastavro: a schema that holds itself lets a payload end its process (SIGSEGV), it reads -1 as the last symbol of an enum, and it takes
longer: 4.1 us for a record of five fields, ours 2.6 (measured; see orchestration/DECISIONS.md).
"""

import json
import math
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

from silver.numbers import of_single
from silver.records import UnreadableError

MAX_LONG = 1 << 64
FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Takes a payload and an offset; returns the value there and the offset after it. Raises one of BROKEN."""
BROKEN = (UnreadableError, ValueError, IndexError, struct.error)


@cache
def avro_reader(texts: Sequence[str]) -> Callable[[bytes, int], Any]:
    """Return a function that reads payloads of the last of these schemas from an offset to their end; the schemas that it needs come
    before it. The function raises one of BROKEN."""
    names: dict[str, Read] = {}
    *_, read = [_reader(json.loads(text), "", names) for text in texts]

    def to_end(payload: bytes, start: int) -> Any:
        value, end = read(payload, start)
        if end != len(payload):
            raise UnreadableError
        return value

    return to_end


def _reader(schema: Any, namespace: str, names: dict[str, Read]) -> Read:
    if isinstance(schema, list):
        return _union([_reader(one, namespace, names) for one in schema])
    if isinstance(schema, str):
        return PRIMITIVES.get(schema) or names[_full(schema, namespace)]
    kind = schema["type"]
    if not isinstance(kind, str):
        return _reader(kind, namespace, names)
    if kind in ("array", "map"):
        inner = _reader(schema["items" if kind == "array" else "values"], namespace, names)
        return partial(_array if kind == "array" else _map, inner)
    if kind in ("record", "error", "enum", "fixed"):
        name = _full(schema["name"], schema.get("namespace", namespace))
        names[name] = read = _named(kind, schema, name.rpartition(".")[0], names)
        return read
    return _decimal(_sized, schema.get("scale", 0)) if _is_decimal(schema) else _reader(kind, namespace, names)


def _named(kind: str, schema: Mapping[str, Any], namespace: str, names: dict[str, Read]) -> Read:
    if kind == "enum":
        return partial(_enum, schema["symbols"])
    if kind == "fixed":
        fixed = partial(_fixed, schema["size"])
        return _decimal(fixed, schema.get("scale", 0)) if _is_decimal(schema) else _base64(fixed)
    return _record([(field["name"], _reader(field["type"], namespace, names)) for field in schema["fields"]])


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    return schema.get("logicalType") == "decimal" and schema["type"] in ("bytes", "fixed")


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _record(fields: Sequence[tuple[str, Read]]) -> Read:
    def read(payload: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        for name, of_field in fields:
            values[name], at = of_field(payload, at)
        return values, at

    return read


def _union(branches: Sequence[Read]) -> Read:
    def read(payload: bytes, at: int) -> tuple[Any, int]:
        branch, at = long_at(payload, at)
        if branch < 0:
            raise UnreadableError
        return branches[branch](payload, at)

    return read


def _enum(symbols: Sequence[str], payload: bytes, at: int) -> tuple[str, int]:
    symbol, at = long_at(payload, at)
    if symbol < 0:
        raise UnreadableError
    return symbols[symbol], at


def _array(read: Read, payload: bytes, at: int) -> tuple[Any, int]:
    values = []
    count, at = _block(payload, at)
    while count:
        for _ in range(count):
            value, at = read(payload, at)
            values.append(value)
        count, at = _block(payload, at)
    return values, at


def _map(read: Read, payload: bytes, at: int) -> tuple[Any, int]:
    values = {}
    count, at = _block(payload, at)
    while count:
        for _ in range(count):
            key, at = _text(payload, at)
            values[key], at = read(payload, at)
        count, at = _block(payload, at)
    return values, at


def _block(payload: bytes, at: int) -> tuple[int, int]:
    """How many elements follow; a schema whose elements may have no bytes is refused where it is read."""
    count, at = long_at(payload, at)
    if count < 0:
        count, (_, at) = -count, long_at(payload, at)
    if count > len(payload) - at:
        raise UnreadableError
    return count, at


def long_at(payload: bytes, at: int) -> tuple[int, int]:
    """A whole number of 64 bits, zigzag, seven bits a byte; and the offset after it."""
    byte = payload[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 0x7F, 7
    while byte & 0x80:
        at += 1
        byte = payload[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        if value >= MAX_LONG or shift > 70:
            raise UnreadableError
    return (value >> 1) ^ -(value & 1), at + 1


def _fixed(size: int, payload: bytes, at: int) -> tuple[bytes, int]:
    end = at + size
    if size < 0 or end > len(payload):
        raise UnreadableError
    return payload[at:end], end


def _sized(payload: bytes, at: int) -> tuple[bytes, int]:
    size, at = long_at(payload, at)
    return _fixed(size, payload, at)


def _text(payload: bytes, at: int) -> tuple[str, int]:
    size = payload[at]
    if size < 0x80 and not size & 1:  # nearly all are that short
        at += 1
        end = at + (size >> 1)
        if end > len(payload):
            raise UnreadableError
        return payload[at:end].decode(), end
    content, at = _sized(payload, at)
    return content.decode(), at


def _base64(sized: Read) -> Read:
    def read(payload: bytes, at: int) -> tuple[str, int]:
        content, at = sized(payload, at)
        return b64encode(content).decode(), at

    return read


def _decimal(sized: Read, scale: int) -> Read:
    def read(payload: bytes, at: int) -> tuple[float, int]:
        content, at = sized(payload, at)
        try:
            return int.from_bytes(content, signed=True) / 10**scale, at
        except OverflowError:
            return math.inf, at

    return read


def _float(payload: bytes, at: int) -> tuple[float, int]:
    return of_single(FLOAT.unpack_from(payload, at)[0]), at + FLOAT.size


def _double(payload: bytes, at: int) -> tuple[float, int]:
    return DOUBLE.unpack_from(payload, at)[0], at + DOUBLE.size


PRIMITIVES: dict[str, Read] = {
    "null": lambda _, at: (None, at),
    "boolean": lambda payload, at: (payload[at] == 1, at + 1),
    "int": long_at,
    "long": long_at,
    "float": _float,
    "double": _double,
    "bytes": _base64(_sized),
    "string": _text,
}
