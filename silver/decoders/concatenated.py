"""`concatenated`: several JSON documents in one message, with or without blanks between them."""

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any

from silver.decoders.json_text import checked_text
from silver.records import UnreadableError

BLANKS = re.compile(r"[ \t\r\n]*")
_decode = JSONDecoder().raw_decode


def concatenated(content: Any) -> list[Any]:
    """Each document."""
    text = checked_text(content)
    documents, at = list[Any](), BLANKS.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        try:
            document, end = _decode(text, at)
        except JSONDecodeError as error:
            raise UnreadableError(f"{error.msg.lower()}", f"document {len(documents) + 1}") from None
        documents.append(document)
        at = BLANKS.match(text, end).end()  # type: ignore[union-attr]
    return documents
