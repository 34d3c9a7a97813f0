"""`protobuf`: one message of Protobuf, bare or framed by a schema registry."""

from typing import Any

from silver.decoders.confluent import schema_texts
from silver.protobuf_values import BROKEN, in_frame, protobuf_reader
from silver.records import UnreadableError
from silver.spec import PayloadFormat


def protobuf(content: Any, shape: PayloadFormat, names: frozenset[str] | None) -> list[Any]:
    """The object of one message. `names`: the members that are read; None for all."""
    texts, start = schema_texts(content, shape)
    try:
        message, start = in_frame(content, start) if shape.registry else (shape.message or "", start)
        return [protobuf_reader(texts, message, names)(content[start:])]
    except BROKEN:
        raise UnreadableError(f"its {len(content)} bytes are no {shape.message or 'message of the schema'}") from None
