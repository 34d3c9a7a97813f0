"""`base64`: a field, or the whole payload, in base64, with JSON, a text or bytes for the next decoder inside."""

from base64 import b64decode
from binascii import Error
from typing import Any

from silver.decoders.json_text import text_of
from silver.records import UnreadableError

OF_URLS = str.maketrans("-_", "+/", "\r\n")


def base64(content: Any) -> list[Any]:
    """The bytes; also of the alphabet for URLs, with line ends, and without the padding. What is no text stays as it is."""
    if not isinstance(content, bytes | str):
        return [content]
    text = text_of(content).strip().translate(OF_URLS)
    try:
        return [b64decode(text + "=" * (-len(text) % 4), validate=True)]
    except (Error, ValueError):
        raise UnreadableError(f"{text[:20]!r} is no base64") from None
