"""Schemas and writers of Avro, Protobuf and Sparkplug B for tests, and payloads that nobody should send."""

import io
import json
import random
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from typing import Any

import fastavro
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from orchestration.conf.avro_schemas import fingerprint
from orchestration.conf.protobuf_schemas import of_texts
from silver.spec import DECLARED, Origin, PayloadFormat, Registry, Time

READING: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "device", "type": ["null", "string"]},
        {"name": "metric", "type": {"type": "enum", "name": "Kind", "symbols": ["temperature", "humidity", "power"], "default": "power"}},
        {"name": "value", "type": ["double", "long", "float", "boolean", "string", "null"]},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
BATCH: dict[str, Any] = {
    "type": "record",
    "name": "Batch",
    "fields": [
        {
            "name": "gateway",
            "type": {"type": "record", "name": "Gateway", "namespace": "site", "fields": [{"name": "id", "type": "string"}]},
        },
        {"name": "other", "type": ["null", "site.Gateway"]},
        {"name": "list", "type": {"type": "array", "items": READING}},
        {"name": "by_name", "type": {"type": "map", "values": "float"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 3}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 3}},
        {"name": "cost", "type": {"type": "fixed", "name": "Cost", "size": 5, "logicalType": "decimal", "precision": 11, "scale": 2}},
        {"name": "more", "type": ["null", "plant.Kind", {"type": "array", "items": "bytes"}, "int"]},
    ],
}
PROTO2 = """syntax = "proto2"; package old; import "google/protobuf/timestamp.proto";
enum Kind { none = 0; temperature = 1; power = 2; }
message Reading {
  required string device = 1; optional Kind metric = 2; optional double value = 3; optional int64 ts = 4;
  repeated Kind kinds = 5; map<string, Kind> by_name = 6; optional Reading inner = 7;
  optional group Extra = 8 { optional sint32 x = 1; repeated fixed32 y = 2 [packed = true]; optional Reading again = 3; }
  oneof one { string text = 9; Reading other = 10; bytes raw = 11; uint32 number = 12; }
  map<int64, string> names = 13; optional int32 level = 14 [default = 5]; repeated string tags = 15;
}
message Outer { message Inner { optional Reading reading = 1; } }"""
PROTO3 = """syntax = "proto3"; package plant; import "google/protobuf/timestamp.proto";
enum Kind { none = 0; temperature = 1; power = 2; }
message Reading {
  string device = 1; Kind metric = 2; double value = 3; google.protobuf.Timestamp ts = 4;
  repeated Kind kinds = 5; map<string, double> by_name = 6; optional float share = 7; bytes raw = 8; repeated sint64 counts = 9;
  oneof one { bool is_on = 10; Reading other = 11; fixed64 number = 12; string text = 13; }
  map<bool, Reading> by_switch = 14; sfixed32 small = 15; uint64 large = 16;
}
message Batch { string gateway = 1; repeated Reading list = 2; message Part { Reading reading = 1; } }"""
LONG: dict[str, Any] = {"metric": Origin(field="metric"), "value": "value"}
OF_LIST: dict[str, Any] = {"metric": Origin(field="each.metric"), "value": "each.value", "each": "list"}


@cache
def files(name: str) -> tuple[str, ...]:
    """A FileDescriptorSet: of `old` or `plant`."""
    return (of_texts({"reading.proto": PROTO2 if name == "old" else PROTO3}, "reading.proto"),)


def declared(schema: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    text = json.dumps(schema)
    return {DECLARED: (text,), fingerprint(text): (text,)}


ID_OF, MILLIS, REGISTRY = Origin(field="device"), Time("ts", "epoch_ms"), dict[str, Any](registry=Registry("http://registry"))


@cache
def shapes() -> dict[str, PayloadFormat]:
    return _avro() | _protobuf() | {"sparkplug": SPARKPLUG}


SPARKPLUG = PayloadFormat(
    "sparkplug_b",
    Origin(constant="oven"),
    Time("each.timestamp", "epoch_ms"),
    metric=Origin(field="each.name"),
    value=Origin("each.value"),
    unit=Origin(field="uuid"),
    each="metrics",
)


def _avro() -> dict[str, PayloadFormat]:
    each = {"temperature": "list", "power": "by_name.b", "humidity": "raw", "price": "price", "cost": "cost", "more": "more"}
    of_list = PayloadFormat("avro", Origin(field="gateway.id"), Time("each.ts", "epoch_ms"), schemas=declared(BATCH), **OF_LIST)
    told: dict[str, tuple[str, ...]] = {"7": (json.dumps(READING),), "8": (), "258": (json.dumps(BATCH),)}
    return {
        "avro": PayloadFormat("avro", ID_OF, MILLIS, schemas=declared(READING), **LONG),
        "avro list": of_list,
        "avro wide": PayloadFormat(
            "avro", Origin(field="other.id"), Time("gateway.id"), Origin(field="list"), schemas=declared(BATCH), metrics=each
        ),
        "avro of a registry": PayloadFormat("avro", ID_OF, MILLIS, schemas=told, **LONG, **REGISTRY),
    }


def _protobuf() -> dict[str, PayloadFormat]:
    old, plant = {DECLARED: files("old")}, {DECLARED: files("plant")}
    maps = {"temperature": "by_name.a", "power": "level", **{name: name for name in ("kinds", "extra", "raw", "tags", "names")}}
    names = ("by_name", "share", "raw", "counts", "other", "number", "text", "by_switch", "small", "large", "is_on", "kinds")
    all_of = {name: name for name in names}
    told: dict[str, tuple[str, ...]] = {"7": files("plant"), "8": (), "258": files("old")}
    far = Origin(field="inner.device"), Time("other.ts", "epoch_us")
    return {
        "proto2": PayloadFormat("protobuf", ID_OF, MILLIS, message="old.Reading", schemas=old, **LONG),
        "proto2 wide": PayloadFormat("protobuf", *far, Origin(field="extra"), message="old.Reading", metrics=maps, schemas=old),
        "proto3": PayloadFormat("protobuf", ID_OF, Time("ts"), message="plant.Reading", schemas=plant, **LONG),
        "proto3 wide": PayloadFormat(
            "protobuf", ID_OF, Time("ts"), Origin(field="other"), message="plant.Reading", metrics=all_of, schemas=plant
        ),
        "proto3 list": PayloadFormat("protobuf", Origin(field="gateway"), Time("each.ts"), message="plant.Batch", schemas=plant, **OF_LIST),
        "protobuf of a registry": PayloadFormat("protobuf", ID_OF, Time("ts"), schemas=told, **LONG, **REGISTRY),
    }


def avro(schema: dict[str, Any], value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return stream.getvalue()


def message_class(package: str, name: str) -> Any:
    return GetMessageClass(_pool(package).FindMessageTypeByName(f"{package}.{name}"))


@cache
def _pool(package: str) -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(b64decode(files(package)[0])).file:
        pool.Add(file)
    return pool


def framed(schema: int, content: bytes, *places: int) -> bytes:
    """As clients of a registry write it; with places, of Protobuf."""
    behind = b"" if not places else b"\0" if places == (0,) else b"".join(bytes([2 * n]) for n in (len(places), *places))
    return b"\0" + schema.to_bytes(4) + behind + content


def varint(number: int) -> bytes:
    """Seven bits a byte, the least first."""
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def nested(tag: int, depth: int, innermost: bytes = b"") -> bytes:
    """A message in a message and so on."""
    for _ in range(depth):
        innermost = varint(tag << 3 | 2) + varint(len(innermost)) + innermost
    return innermost


def changed(payload: bytes, chance: random.Random) -> bytes:
    """Cut, lengthened, or with other bytes."""
    at, end = sorted(chance.randrange(len(payload) + 1) for _ in range(2))
    new = chance.choice(
        [b"", b"\xff", b"\x80" * 9 + b"\x01", b"\xff" * 8 + b"\x7f", b"\x00", b"\x01", bytes([chance.randrange(256)]), b"\x0b\x0c"]
    )
    match chance.randrange(4):
        case 0:
            return payload[:at]
        case 1:
            return payload[:at] + new + payload[at:]
        case 2:
            return payload[:at] + new + payload[at + 1 :]
        case _:
            return payload[:at] + payload[at:end] * 2 + payload[min(end, at + 3) :]


def hostile(good: list[bytes], seed: int, count: int) -> Iterator[bytes]:
    """So many changes of good payloads, and bytes by chance."""
    chance = random.Random(seed)
    for n in range(count):
        payload = chance.randbytes(chance.randrange(40)) if n % 8 == 0 else chance.choice(good)
        for _ in range(chance.randint(1, 3) if n % 8 else 0):
            payload = changed(payload, chance)
        yield payload
