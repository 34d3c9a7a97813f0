"""Sparkplug B payloads by the wire format: an object with the metrics of the payload, each with the value that its datatype makes of it."""

from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.text_format import Parse

from orchestration.audit.verify.json_payload import Odd
from orchestration.audit.verify.protobuf_payload import reader_of

PAYLOAD = "timestamp:UINT64 metrics:MESSAGE seq:UINT64 uuid:STRING"
METRIC = (
    "name:STRING alias:UINT64 timestamp:UINT64 datatype:UINT32 is_historical:BOOL is_transient:BOOL is_null:BOOL - -"
    " int_value:UINT32 long_value:UINT64 float_value:FLOAT double_value:DOUBLE boolean_value:BOOL string_value:STRING bytes_value:BYTES"
)
"""Fields in the order of their numbers, from 1."""
BITS = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64, "UInt8": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64}
DATATYPES = ["Unknown", *BITS, "Float", "Double", "Boolean", "String", "DateTime"]


def _fields(text: str) -> str:
    lines = []
    for number, word in enumerate(text.split(), 1):
        name, _, kind = word.partition(":")
        more = 'label: LABEL_REPEATED type_name: ".Metric"' if kind == "MESSAGE" else "label: LABEL_OPTIONAL"
        of = " oneof_index: 0" if name.endswith("_value") else ""
        lines.append(f'field {{ name: "{name}" number: {number} type: TYPE_{kind} {more}{of} }}' if kind else "")
    return "\n".join(lines)


@cache
def _reader() -> Callable[[bytes], dict[str, Any]]:
    text = f'name: "payload" message_type {{ name: "Payload" {_fields(PAYLOAD)} }}'
    text += f' message_type {{ name: "Metric" oneof_decl {{ name: "value" }} {_fields(METRIC)} }}'
    pool = DescriptorPool()
    pool.Add(Parse(text, FileDescriptorProto()))
    return reader_of(pool.FindMessageTypeByName("Payload"))


def sparkplug_object(payload: bytes) -> dict[str, Any]:
    """Raises one of protobuf_payload.BROKEN."""
    found = _reader()(payload)
    for metric in found["metrics"]:
        if metric["timestamp"] is None:
            metric["timestamp"] = found["timestamp"]
        metric["value"] = None if metric["is_null"] else _value(metric)
    return found


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
