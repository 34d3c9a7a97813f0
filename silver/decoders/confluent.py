"""`confluent`: the frame of a schema registry, a byte that is 0 and 4 bytes of the id of the schema, before JSON or another content."""

from typing import Any

from silver.records import UnreadableError
from silver.spec import DECLARED, PayloadFormat

FRAME_LENGTH, FRAME_START = 5, b"\0"


def confluent(content: Any) -> list[Any]:
    """The content behind the frame; one without a frame, which a topic may have too, as it is."""
    return [content[FRAME_LENGTH:] if isinstance(content, bytes) and schema_in_frame(content) is not None else content]


def schema_texts(payload: Any, shape: PayloadFormat) -> tuple[tuple[str, ...], int]:
    """The texts of the schema of a payload, and where its message begins."""
    if not isinstance(payload, bytes):
        raise UnreadableError("it is no bytes")
    schema = schema_in_frame(payload) if shape.registry else DECLARED
    if schema is None:
        raise UnreadableError("it does not begin with a byte 0 and the id of a schema")
    if not (texts := shape.schemas.get(str(schema))):
        raise UnreadableError(f"nobody knows the schema {schema}")
    return texts, FRAME_LENGTH if shape.registry else 0


def registry_frame(schema: int) -> bytes:
    """Return the frame before a payload of that schema."""
    return FRAME_START + schema.to_bytes(FRAME_LENGTH - 1)


def schema_in_frame(payload: bytes) -> int | None:
    """The id of the schema; None where a payload begins otherwise."""
    return int.from_bytes(payload[1:FRAME_LENGTH]) if payload[:1] == FRAME_START and len(payload) >= FRAME_LENGTH else None
