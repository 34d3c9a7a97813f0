"""`sparkplug_b`: an object with the time of the payload and its metrics, each with the value that its datatype makes.

Whole numbers are signed or not by their datatype. Messages of data may leave it out; a number that would then be either cannot be read. A
metric without a time has that of the payload. A metric that has an alias and no name has the name null: only its birth message knows it.
"""

from base64 import b64encode
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from silver.numbers import of_single
from silver.protobuf_values import checked
from silver.records import ODD, UnreadableError

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


def sparkplug_b(content: Any) -> list[Any]:
    """The object of one payload."""
    try:
        payload = Payload.FromString(content)
    except (DecodeError, TypeError):
        raise UnreadableError("it is no payload of Sparkplug B") from None
    time = payload.timestamp if payload.HasField("timestamp") else None
    seq, uuid = (getattr(payload, name) if payload.HasField(name) else None for name in ("seq", "uuid"))
    return [{"timestamp": time, "seq": seq, "uuid": checked(uuid), "metrics": [_metric(metric, time) for metric in payload.metrics]}]


def _metric(metric: Any, time: int | None) -> dict[str, Any]:
    values = {name: getattr(metric, name) if metric.HasField(name) else None for name in METRIC}
    if values["timestamp"] is None:
        values["timestamp"] = time
    return values | {"name": checked(values["name"]), "value": None if values["is_null"] else _value(metric, values["datatype"])}


def _value(metric: Message, datatype: int | None) -> Any:
    kind = metric.WhichOneof("value")
    value: Any = getattr(metric, kind) if kind else None
    if kind == "float_value":
        return of_single(value)
    if kind not in ("int_value", "long_value"):
        return b64encode(value).decode() if kind == "bytes_value" else checked(value)
    sent = 32 if kind == "int_value" else 64
    if datatype in SIGNED_BITS:
        bits = min(sent, SIGNED_BITS[datatype])
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value
    if datatype in UNSIGNED_BITS:
        return value & ((1 << min(sent, UNSIGNED_BITS[datatype])) - 1)
    return ODD if value >> (sent - 1) else value
