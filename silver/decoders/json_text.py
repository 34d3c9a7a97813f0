"""JSON of which nobody knows yet what it holds: strict, and NaN and the infinities. Of a name that an object repeats, the last counts."""

import json
import re
from typing import Any

import msgspec

from silver.records import UnreadableError

DEEPEST = 500
MOST_DIGITS, MOST_COPIED = 1_000, 1_000_000
STRING = r'"(?:[^"\\]|\\.)*+"?'
"""Also one that never ends, so that no text is searched twice."""
BRACKET_OUTSIDE = re.compile(rf"{STRING}|([\[\]{{}}])", re.DOTALL)
LONG_NUMBER = re.compile(rf"[0-9]{{{MOST_DIGITS}}}")
_QUICK = msgspec.json.Decoder().decode


def json_of(content: Any) -> Any:
    """The value that a text holds, of bytes in UTF-8; what is a value already as it is."""
    if not isinstance(content, bytes | str):
        return content
    if len(content) > DEEPEST:
        checked_text(content)
    try:
        return _QUICK(content)
    except (msgspec.DecodeError, UnicodeError):
        return _with_care(content)


def object_of(content: Any) -> dict[str, Any]:
    """The object that a text holds; an empty one for null, which measures nothing."""
    value = json_of(content)
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    kind = "a list" if isinstance(value, list) else "a single value"
    raise UnreadableError(f"it is {kind}, not an object" + ("; see the decoder `array`" if kind == "a list" else ""))


def text_of(content: Any) -> str:
    """Bytes as text, and a text as it is."""
    if isinstance(content, str):
        return content
    if not isinstance(content, bytes):
        raise UnreadableError("it is no text")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(f"0x{content[error.start]:02x} is no UTF-8", f"byte {error.start + 1}") from None


def checked_text(content: Any) -> str:
    """A text that no parser of JSON can choke on."""
    text = text_of(content)
    if text.count("{") + text.count("[") > DEEPEST and depth_of(text) > DEEPEST:
        raise UnreadableError(f"it is nested more deeply than {DEEPEST}")
    if len(text) > MOST_DIGITS and LONG_NUMBER.search(text):
        raise UnreadableError(f"a number has more than {MOST_DIGITS} digits")
    return text


def check_spread(rows: int, members: Any) -> None:
    """Refuse so many rows that each get a copy of these members: a few bytes could claim any memory."""
    if rows * len(members) > MOST_COPIED:
        raise UnreadableError(f"{rows:,} rows, each beside {len(members):,} other fields, are too many")


def _with_care(content: bytes | str) -> Any:
    """Half surrogate pairs, NaN, infinities and numbers beyond all doubles, which msgspec refuses."""
    text = checked_text(content)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        near = text[error.pos :].strip()[:20]
        raise UnreadableError(f"{error.msg.lower().removesuffix(' at')}, found {near!r}", f"character {error.pos + 1}") from None


def depth_of(text: str) -> int:
    """How deep brackets stand in each other; those in strings do not count."""
    deepest = depth = 0
    for bracket in BRACKET_OUTSIDE.finditer(text):
        if bracket[1]:
            depth += 1 if bracket[1] in "[{" else -1
            deepest = max(deepest, depth)
    return deepest
