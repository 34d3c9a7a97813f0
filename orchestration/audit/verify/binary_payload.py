"""Payloads of Avro, Protobuf and Sparkplug B to objects: which schema a message has, where it begins, and what it holds.

Avro is read by Apache's own reader: records are objects, enums texts, bytes base64 and decimals the nearest doubles. No other logical type
counts: Apache's reader would make instants of numbers. Protobuf is read by protobuf_payload.py, and Sparkplug B is Protobuf with the fields
that stand here: an object with the metrics of the payload, each with the value that its datatype makes.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from functools import cache, partial
from io import BytesIO
from math import inf
from struct import error as StructError
from typing import Any

from avro.errors import AvroException
from avro.io import BinaryDecoder, DatumReader
from avro.name import Names
from avro.schema import FixedSchema, Schema, make_avsc_object
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.text_format import Parse

from orchestration.audit.verify import protobuf_payload
from orchestration.audit.verify.json_payload import Odd
from silver.decoders.message import Message
from silver.records import UnreadableError as Undecodable
from silver.spec import BINARY, DECLARED, PayloadFormat

BROKEN = (AvroException, TypeError, StructError, *protobuf_payload.BROKEN)
OF_DECIMAL = {"logicalType", "precision", "scale"}
MEANINGLESS = {"default", "aliases", "doc", "order"}
"""To who reads what this very schema wrote. With a default, an enum would take a symbol that it does not have."""
PAYLOAD = "timestamp:UINT64 metrics:MESSAGE seq:UINT64 uuid:STRING"
METRIC = (
    "name:STRING alias:UINT64 timestamp:UINT64 datatype:UINT32 is_historical:BOOL is_transient:BOOL is_null:BOOL - -"
    " int_value:UINT32 long_value:UINT64 float_value:FLOAT double_value:DOUBLE boolean_value:BOOL string_value:STRING bytes_value:BYTES"
)
"""Fields of Sparkplug B in the order of their numbers, from 1."""
BITS = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64, "UInt8": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64}
DATATYPES = ["Unknown", *BITS, "Float", "Double", "Boolean", "String", "DateTime"]


def own_decoders() -> dict[str, Callable[..., list[Any]]]:
    """Decoders of Avro, Protobuf and Sparkplug B that share no line with those of silver."""
    return {name: partial(_decoded, name) for name in BINARY}


def _decoded(name: str, content: Any, message: Message, shape: PayloadFormat, names: Collection[str] | None) -> list[Any]:
    try:
        if name == "sparkplug_b":
            return [_sparkplug_object(content, _birth(message, shape))]
        return [_object_reader(name, shape, names)(content)]
    except BROKEN:
        raise Undecodable from None


def _object_reader(name: str, shape: PayloadFormat, names: Collection[str] | None) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        schema, content = _unframed(payload, shape)
        texts = shape.schemas.get(schema)
        if not texts:
            raise ValueError("nobody knows the schema")
        if name == "avro":
            return _avro_reader(texts)(content)
        if not shape.registry:
            return protobuf_payload.protobuf_reader(texts, shape.message or "", names)(content)
        places, content = _places(content)
        return protobuf_payload.protobuf_reader(texts, protobuf_payload.message_at(texts, places), names)(content)

    return read


def _unframed(payload: bytes, shape: PayloadFormat) -> tuple[str, bytes]:
    """Return the name of the schema, and the bytes after it."""
    if shape.registry:
        if len(payload) < 5 or payload[0] != 0:
            raise ValueError("not as a registry's clients write")
        return f"{int.from_bytes(payload[1:5], 'big')}", payload[5:]
    if payload[:2] == bytes.fromhex("c301") and len(payload) >= 10 and (name := payload[2:10].hex()) in shape.schemas:
        return name, payload[10:]
    return DECLARED, payload


def _places(content: bytes) -> tuple[list[int], bytes]:
    """Return which message of the file it is, from the outermost in, and its bytes."""
    count, content = _zigzag(content)
    if count < 0:
        raise ValueError("a negative count")
    indexes = []
    for _ in range(count):
        index, content = _zigzag(content)
        indexes.append(index)
    return indexes or [0], content


def _zigzag(content: bytes) -> tuple[int, bytes]:
    for n in range(min(len(content), 10)):
        if content[n] < 0x80:
            value = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(content[: n + 1]))
            return (value >> 1) ^ -(value & 1), content[n + 1 :]
    raise ValueError("a number without an end")


@cache
def _avro_reader(texts: Sequence[str]) -> Callable[[bytes], Any]:
    """Return a function that reads whole payloads of the last schema."""
    names = Names()
    *_, schema = [make_avsc_object(_plain(json.loads(text)), names) for text in texts]
    reader = _Reader(schema)

    def read(payload: bytes) -> Any:
        content = BytesIO(payload)
        value = reader.read(_Decoder(content))
        if content.tell() != len(payload):
            raise ValueError("more bytes than the schema asks for")
        return value

    return read


def _plain(schema: Any) -> Any:
    """Without what makes Apache's reader read anything but what was written."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    is_decimal = schema.get("logicalType") == "decimal" and schema.get("type") in ("bytes", "fixed")
    if isinstance(schema.get("type"), dict | list) and "name" not in schema:
        return _plain(schema["type"])
    left_out = MEANINGLESS if is_decimal else MEANINGLESS | OF_DECIMAL
    nested = ("type", "items", "values", "fields")
    plain = {key: _plain(value) if key in nested else value for key, value in schema.items() if key not in left_out}
    return plain | ({"scale": schema.get("scale", 0)} if is_decimal else {})


class _Decoder(BinaryDecoder):
    def read_float(self) -> float:
        return protobuf_payload.with_fewest_digits(super().read_float())

    def read_bytes(self) -> Any:
        return b64encode(self.read(self.read_long())).decode()

    def read_utf8(self) -> str:
        return self.read(self.read_long()).decode("utf-8")

    def read_decimal_from_fixed(self, precision: int, scale: int, size: int) -> Any:
        try:
            return float(Fraction(int.from_bytes(self.read(size), signed=True), 10**scale))
        except OverflowError:
            return inf


class _Reader(DatumReader):
    def read_fixed(self, writers_schema: FixedSchema, readers_schema: Schema, decoder: BinaryDecoder) -> Any:
        return b64encode(decoder.read(writers_schema.size)).decode()

    def read_union(self, writers_schema: Any, readers_schema: Any, decoder: BinaryDecoder) -> Any:
        branch = decoder.read_long()
        if not 0 <= branch < len(writers_schema.schemas):
            raise ValueError("no branch of the union")
        schema = writers_schema.schemas[branch]
        return self.read_data(schema, schema, decoder)


def _fields(text: str) -> str:
    lines = []
    for number, word in enumerate(text.split(), 1):
        name, _, kind = word.partition(":")
        more = 'label: LABEL_REPEATED type_name: ".Metric"' if kind == "MESSAGE" else "label: LABEL_OPTIONAL"
        one_of = " oneof_index: 0" if name.endswith("_value") else ""
        lines.append(f'field {{ name: "{name}" number: {number} type: TYPE_{kind} {more}{one_of} }}' if kind else "")
    return "\n".join(lines)


@cache
def _sparkplug_reader() -> Callable[[bytes], dict[str, Any]]:
    text = f'name: "payload" message_type {{ name: "Payload" {_fields(PAYLOAD)} }}'
    text += f' message_type {{ name: "Metric" oneof_decl {{ name: "value" }} {_fields(METRIC)} }}'
    pool = DescriptorPool()
    pool.Add(Parse(text, FileDescriptorProto()))
    return protobuf_payload.reader_of(pool.FindMessageTypeByName("Payload"))


def _birth(message: Message, shape: PayloadFormat) -> dict[str, Any]:
    """Return name and datatype by alias, from the birth that a header of the event names."""
    named = (message.headers or {}).get("tidemark.birth", b"").decode()
    texts = shape.schemas.get(named)
    return json.loads(texts[0]) if texts else {}


def _sparkplug_object(payload: bytes, birth: dict[str, Any]) -> dict[str, Any]:
    message = _sparkplug_reader()(payload)
    for metric in message["metrics"]:
        if metric["name"] is None and (born := birth.get(str(metric["alias"]))):
            metric["name"] = born[0]
            metric["datatype"] = born[1] if metric["datatype"] is None else metric["datatype"]
        if metric["timestamp"] is None:
            metric["timestamp"] = message["timestamp"]
        metric["value"] = None if metric["is_null"] else _value(metric)
    return message


def _value(metric: dict[str, Any]) -> Any:
    name = next((name for name, value in metric.items() if name.endswith("_value") and value is not None), "")
    value: Any = metric.get(name)
    if name not in ("int_value", "long_value"):
        return value
    width, datatype = (32 if name == "int_value" else 64), metric["datatype"]
    kind = DATATYPES[datatype] if datatype is not None and datatype < len(DATATYPES) else "Unknown"
    bits = min(width, BITS.get(kind, 64))
    low = value % (1 << bits)
    if kind.startswith("Int"):
        return low - (1 << bits) if low >= 1 << (bits - 1) else low
    if kind.startswith("UInt") or kind == "DateTime":
        return low
    return value if value < 1 << (width - 1) else Odd()
