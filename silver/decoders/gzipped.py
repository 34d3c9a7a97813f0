"""`gzip`: a message that is packed by gzip or zlib."""

import zlib
from typing import Any

from silver.decoders.message import Message
from silver.records import UnreadableError

EITHER = zlib.MAX_WBITS | 32


def gzip(content: Any, message: Message) -> list[Any]:
    """The unpacked bytes of all members; no more than a payload may have (`policy.max_payload_bytes`)."""
    if not isinstance(content, bytes):
        raise UnreadableError("it is no bytes")
    unpacked = b""
    while content:
        member = zlib.decompressobj(EITHER)
        try:
            unpacked += member.decompress(content, message.most_bytes + 1 - len(unpacked))
        except zlib.error as error:
            raise UnreadableError(f"it is not packed ({error})") from None
        if len(unpacked) > message.most_bytes:
            raise UnreadableError(f"unpacked it has more than {message.most_bytes:,} bytes, which is policy.max_payload_bytes")
        if not member.eof:
            raise UnreadableError("it ends in the middle")
        content = member.unused_data
    return [unpacked]
