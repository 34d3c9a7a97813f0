"""Encodings of texts that are divided into lines, by the names that Python's codecs know."""

import codecs
from typing import Annotated

from pydantic import AfterValidator

from expectations.settings import of_pattern

LINE_FEEDS = (b"\n", b"%")
"""Bytes of a line feed in ASCII and in EBCDIC."""


def encoded(letter: str, encoding: str) -> bytes:
    """A letter as it stands in the middle of a text, without a byte order mark before it; empty where the encoding lacks it."""
    return (letter * 2).encode(encoding, "ignore")[len(letter.encode(encoding, "ignore")) :]


def _canonical(encoding: str) -> str:
    """ValueError for codecs of no text, of escapes, and those that let half a letter pass, which no table holds."""
    try:
        is_of_lines = encoded("\n", encoding).strip(b"\0") in LINE_FEEDS and not encoded("\ud800", encoding)
    except LookupError:
        is_of_lines = False
    if not is_of_lines:
        raise ValueError(encoding)
    return codecs.lookup(encoding).name.removesuffix("-sig")


_HINT = "write an encoding that Python knows, such as utf-8, latin-1, windows-1252 or utf-16"
Encoding = Annotated[str, of_pattern(r"^[A-Za-z0-9._-]+$", _HINT, 100, 1), AfterValidator(_canonical)]
