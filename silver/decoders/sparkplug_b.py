"""`sparkplug_b`: an object with the time of the payload and its metrics, each with the value that its datatype makes.

Whole numbers are signed or not by their datatype; a number without one that would then be either cannot be read. A metric without a time
has that of the payload. Metrics that have an alias and no name get name and datatype of the birth that a header of the event names; where
nobody knows that birth, the name is null.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from silver.decoders.message import Message
from silver.numbers import of_single
from silver.protobuf_values import checked
from silver.records import ODD, UnreadableError
from silver.spec import PayloadFormat

PAYLOAD = {"timestamp": (1, "UINT64"), "metrics": (2, "MESSAGE"), "seq": (3, "UINT64"), "uuid": (4, "STRING")}
METRIC = {"name": (1, "STRING"), "alias": (2, "UINT64"), "timestamp": (3, "UINT64"), "datatype": (4, "UINT32")}
METRIC |= {"is_historical": (5, "BOOL"), "is_transient": (6, "BOOL"), "is_null": (7, "BOOL")}
VALUE = {"int_value": (10, "UINT32"), "long_value": (11, "UINT64"), "float_value": (12, "FLOAT"), "double_value": (13, "DOUBLE")}
VALUE |= {"boolean_value": (14, "BOOL"), "string_value": (15, "STRING"), "bytes_value": (16, "BYTES")}
"""Fields of Eclipse Tahu's sparkplug_b.proto. Data sets, templates and extensions are no value, and their bytes are not read."""
SIGNED_BITS = {1: 8, 2: 16, 3: 32, 4: 64}
"""Bits by datatype: Int8, Int16, Int32, Int64."""
UNSIGNED_BITS = {5: 8, 6: 16, 7: 32, 8: 64, 13: 64}
"""UInt8, UInt16, UInt32, UInt64, DateTime."""


def _message(name: str, fields: dict[str, tuple[int, str]]) -> str:
    texts = []
    for field, (number, kind) in fields.items():
        more = 'label: LABEL_REPEATED type_name: ".Metric"' if kind == "MESSAGE" else "label: LABEL_OPTIONAL"
        more += " oneof_index: 0" if field in VALUE else ""
        texts.append(f'field {{ name: "{field}" number: {number} type: TYPE_{kind} {more} }}')
    one_of = 'oneof_decl { name: "value" }' if fields.keys() & VALUE else ""
    return f'message_type {{ name: "{name}" {one_of} {" ".join(texts)} }}'


POOL = DescriptorPool()
POOL.Add(Parse(f'name: "sparkplug_b.proto" {_message("Metric", METRIC | VALUE)} {_message("Payload", PAYLOAD)}', FileDescriptorProto()))
Payload: Any = GetMessageClass(POOL.FindMessageTypeByName("Payload"))
NAMES = {field: field.name for field in POOL.FindMessageTypeByName("Metric").fields if field.name in METRIC}
INT, LONG, FLOAT, TEXT, BYTES = (VALUE[f"{kind}_value"][0] for kind in ("int", "long", "float", "string", "bytes"))
CONVERTED = {INT, LONG, FLOAT, TEXT, BYTES}
BIRTH = "tidemark.birth"
"""The header of an event that names its birth: a key of `PayloadFormat.schemas`."""
Birth = Mapping[int, tuple[str, int | None]]
"""Name and datatype by alias."""


def sparkplug_b(content: Any, message: Message, shape: PayloadFormat) -> list[Any]:
    """The object of one payload."""
    payload: Any = payload_of(content)
    birth: Birth = {}
    if message.headers and (header := message.headers.get(BIRTH)) and (texts := shape.schemas.get(header.decode())):
        birth = birth_in(texts[0])
    time = payload.timestamp if payload.HasField("timestamp") else None
    seq, uuid = (getattr(payload, name) if payload.HasField(name) else None for name in ("seq", "uuid"))
    return [{"timestamp": time, "seq": seq, "uuid": checked(uuid), "metrics": [_metric(metric, time, birth) for metric in payload.metrics]}]


def payload_of(content: Any) -> Any:
    """The message of Protobuf; UnreadableError where the content is none."""
    try:
        return Payload.FromString(content)
    except (DecodeError, TypeError):
        raise UnreadableError("it is no payload of Sparkplug B") from None


def birth_text(payload: Any) -> str:
    """The part of a birth that later messages need, as `PayloadFormat.schemas` has it: JSON of name and datatype by alias."""
    metrics = {str(metric.alias): (metric.name, metric.datatype or None) for metric in payload.metrics if metric.HasField("alias")}
    return json.dumps(metrics, sort_keys=True)


@lru_cache(1024)
def birth_in(text: str) -> Birth:
    """The birth of such a text."""
    return {int(alias): (name, datatype) for alias, (name, datatype) in json.loads(text).items()}


def _metric(metric: Any, time: int | None, birth: Birth) -> dict[str, Any]:
    values: dict[str, Any] = {"name": None, "timestamp": time, "value": None}
    kind, sent = 0, None
    for field, value in metric.ListFields():
        if (member := NAMES.get(field)) is None:
            kind, sent = field.number, value
        else:
            values[member] = value
    if values["name"] is None:
        values["name"], datatype = birth.get(values.get("alias", -1), (None, None))
        values.setdefault("datatype", datatype)
    else:
        checked(values["name"])
    if kind and not values.get("is_null"):
        values["value"] = _value(kind, sent, values.get("datatype")) if kind in CONVERTED else sent
    return values


def _value(kind: int, value: Any, datatype: int | None) -> Any:
    if kind == FLOAT:
        return of_single(value)
    if kind not in (INT, LONG):
        return b64encode(value).decode() if kind == BYTES else checked(value)
    sent = 32 if kind == INT else 64
    if datatype in SIGNED_BITS:
        bits = min(sent, SIGNED_BITS[datatype])
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value
    if datatype in UNSIGNED_BITS:
        return value & ((1 << min(sent, UNSIGNED_BITS[datatype])) - 1)
    return ODD if value >> (sent - 1) else value
