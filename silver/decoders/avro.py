"""`avro`: a message in Avro's binary encoding, bare, as a single object, or framed by a schema registry."""

from typing import Any

from silver.avro_values import BROKEN, avro_reader
from silver.decoders.confluent import schema_texts
from silver.records import UnreadableError
from silver.spec import PayloadFormat

SINGLE_OBJECT, FINGERPRINT_END = b"\xc3\x01", 10
"""Avro's encoding of single objects: these, and 8 bytes of the fingerprint of the schema."""


def avro(content: Any, shape: PayloadFormat) -> list[Any]:
    """The object of one message, to its last byte."""
    if not shape.registry and content[:2] == SINGLE_OBJECT and (single := content[2:FINGERPRINT_END].hex()) in shape.schemas:
        texts, start = shape.schemas[single], FINGERPRINT_END
    else:
        texts, start = schema_texts(content, shape)
    try:
        return [avro_reader(texts)(content, start)]
    except BROKEN:
        raise UnreadableError(f"its {len(content)} bytes are no message of the schema") from None
