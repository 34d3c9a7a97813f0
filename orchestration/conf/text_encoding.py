"""Encodings of texts that are divided into lines, by the names that Python's codecs know."""

import codecs
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from orchestration.conf.values import Text

LINE_FEEDS = (b"\n", b"%")
"""Of ASCII and of EBCDIC."""


def encoded(letter: str, encoding: str) -> bytes:
    """A letter as it stands in the middle of a text, without a byte order mark before it; empty where the encoding lacks it."""
    return (letter * 2).encode(encoding, "ignore")[len(letter.encode(encoding, "ignore")) :]


def _canonical(encoding: str) -> str:
    """Refused are codecs of no text, of escapes, and those that let half a letter pass, which no table holds."""
    try:
        if encoded("\n", encoding).strip(b"\0") in LINE_FEEDS and not encoded("\ud800", encoding):
            return codecs.lookup(encoding).name.removesuffix("-sig")
    except (LookupError, ValueError):
        pass
    raise PydanticCustomError("encoding", "write an encoding that Python knows, such as utf-8, latin-1, windows-1252 or utf-16")


Encoding = Annotated[Text, AfterValidator(_canonical)]
