"""Payloads of Avro, Protobuf and Sparkplug B to rows: each becomes the object that JSON would have been, and is read like that.

What cannot be decoded to its end, or has a schema that nobody knows, is unreadable. Nothing here raises.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver import avro_values, protobuf_values
from silver.avro_values import avro_reader
from silver.protobuf_values import in_frame, protobuf_reader
from silver.records import Node, Record, Rows, UnreadableError, nodes, rows_of
from silver.sparkplug_values import sparkplug_values
from silver.spec import DECLARED, PayloadFormat

SINGLE_OBJECT, FINGERPRINT_END = b"\xc3\x01", 10
"""Avro's encoding of single objects: these, and 8 bytes of the fingerprint of the schema."""
FRAME_LENGTH, FRAME_START = 5, b"\0"
"""The frame of a schema registry: a byte that is 0, and 4 bytes of the id of the schema, big-endian."""
BROKEN = (*avro_values.BROKEN, *protobuf_values.BROKEN)
Decode = Callable[[bytes], Any]


def binary_rows(payloads: pa.Array, shape: PayloadFormat) -> Iterator[Rows]:
    """Rows of payloads, null where one is too long to be read: one an event, or one an element where the format reads a list."""
    both_nodes = event, _ = nodes(shape)
    convert, absent = partial(msgspec.convert, type=event.record), event.record()
    decode, records = _decoder(shape, frozenset(event.members)), list[Record]()
    is_readable = np.ones(len(payloads), bool)
    for payload in payloads.to_pylist():
        record = None if payload is None else _record(decode, convert, event, payload)
        is_readable[len(records)] = record is not None
        records.append(absent if record is None else record)
    yield from rows_of(records, pa.array(is_readable), shape, both_nodes, pc.max(pc.binary_length(payloads)).as_py() or 0)


def _record(decode: Decode, convert: Callable[[Any], Record], event: Node, payload: bytes) -> Record | None:
    try:
        value = decode(payload)
        try:
            return convert(value)
        except msgspec.ValidationError:  # a list or an object where a value should be, or the other way round
            return event.record_of(value) if isinstance(value, dict) else None
    except BROKEN:
        return None if payload else event.record()  # a message without content only deletes


def _decoder(shape: PayloadFormat, names: frozenset[str]) -> Decode:
    """It raises one of BROKEN. `names`: of the members that are read."""
    if shape.format == "sparkplug_b":
        return sparkplug_values
    if shape.format == "avro":

        def of_avro(payload: bytes) -> Any:
            texts, start = _frame(payload, shape)
            return avro_reader(texts)(payload, start)

        return of_avro

    def of_protobuf(payload: bytes) -> Any:
        texts, start = _frame(payload, shape)
        message, start = in_frame(payload, start) if shape.registry else (shape.message or "", start)
        return protobuf_reader(texts, message, names)(payload[start:])

    return of_protobuf


def _frame(payload: bytes, shape: PayloadFormat) -> tuple[tuple[str, ...], int]:
    """The texts of the schema of a payload, and where its message begins."""
    schema, start = DECLARED, 0
    if shape.registry:
        if (number := schema_in_frame(payload)) is None:
            raise UnreadableError
        schema, start = str(number), FRAME_LENGTH
    elif payload[:2] == SINGLE_OBJECT and (fingerprint := payload[2:FINGERPRINT_END].hex()) in shape.schemas:
        schema, start = fingerprint, FINGERPRINT_END
    texts = shape.schemas.get(schema)
    if not texts:
        raise UnreadableError
    return texts, start


def registry_frame(schema: int) -> bytes:
    """Return the frame before a payload of that schema."""
    return FRAME_START + schema.to_bytes(FRAME_LENGTH - 1)


def schema_in_frame(payload: bytes) -> int | None:
    """The id of the schema; None where a payload begins otherwise."""
    return int.from_bytes(payload[1:FRAME_LENGTH]) if payload[:1] == FRAME_START and len(payload) >= FRAME_LENGTH else None
