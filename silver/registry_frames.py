"""The frame of a schema registry before a payload: a byte that is 0, and 4 bytes of the id of its schema, big-endian."""

LENGTH = 5
_MAGIC = b"\0"


def frame_of(schema: int) -> bytes:
    """Return the frame before a payload of that schema."""
    return _MAGIC + schema.to_bytes(LENGTH - 1)


def schema_of(payload: bytes) -> int | None:
    """The id of the schema; None where a payload begins otherwise."""
    return int.from_bytes(payload[1:LENGTH]) if payload[:1] == _MAGIC and len(payload) >= LENGTH else None
