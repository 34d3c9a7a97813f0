"""Payloads of Avro, Protobuf and Sparkplug B to objects: what stands before a message, and which schema it has."""

from collections.abc import Callable, Collection
from typing import Any

from orchestration.audit.verify import avro_payload, protobuf_payload
from orchestration.audit.verify.sparkplug_payload import sparkplug_object
from silver.spec import DECLARED, PayloadFormat

BROKEN = (*avro_payload.BROKEN, *protobuf_payload.BROKEN)


def object_reader(shape: PayloadFormat, names: Collection[str]) -> Callable[[bytes], Any]:
    """What reads payloads of this shape, at least the members of these names; raises one of BROKEN."""
    if shape.format == "sparkplug_b":
        return sparkplug_object

    def read(payload: bytes) -> Any:
        schema, content = _unframed(payload, shape)
        texts = shape.schemas.get(schema)
        if not texts:
            raise ValueError("nobody knows the schema")
        if shape.format == "avro":
            return avro_payload.avro_reader(texts)(content)
        if not shape.registry:
            return protobuf_payload.protobuf_reader(texts, shape.message or "", names)(content)
        places, content = _places(content)
        return protobuf_payload.protobuf_reader(texts, protobuf_payload.message_at(texts, places), names)(content)

    return read


def _unframed(payload: bytes, shape: PayloadFormat) -> tuple[str, bytes]:
    """The name of the schema, and what stands behind it."""
    if shape.registry:
        if len(payload) < 5 or payload[0] != 0:
            raise ValueError("not as a registry's clients write")
        return f"{int.from_bytes(payload[1:5], 'big')}", payload[5:]
    if payload[:2] == bytes.fromhex("c301") and len(payload) >= 10 and (name := payload[2:10].hex()) in shape.schemas:
        return name, payload[10:]
    return DECLARED, payload


def _places(content: bytes) -> tuple[list[int], bytes]:
    """Which message of the file it is, from the outermost in."""
    count, content = _zigzag(content)
    places = []
    for _ in range(count if count else 0):
        place, content = _zigzag(content)
        places.append(place)
    if count < 0:
        raise ValueError("a negative count")
    return places or [0], content


def _zigzag(content: bytes) -> tuple[int, bytes]:
    for n in range(min(len(content), 6)):
        if content[n] < 0x80:
            value = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(content[: n + 1]))
            return (value >> 1) ^ -(value & 1), content[n + 1 :]
    raise ValueError("a number without an end")
