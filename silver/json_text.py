"""JSON payloads: one object a payload, of which only the declared members count. Strict JSON, and NaN and the infinities.

Of a name that an object repeats, the last value counts.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from silver.numbers import as_java_writes

MOST_DIGITS = 1_000
LONGEST_NAME = 50_000
DEEPEST = 998
SHALLOW = 100
"""Brackets that any reader can stack; more of them need room."""
BLANKS = " \t\n\r"
ODD = object()
"""Stands for a field that cannot be read because something that should be an object is none."""
STRING = r'"(?:[^"\\]|\\.)*+"?'
"""Also one that never ends, so that no text is searched twice."""
BRACKET_OUTSIDE = re.compile(rf"{STRING}|([\[\]{{}}])", re.DOTALL)
SIGNED_INFINITY = re.compile(rf"{STRING}|(?<![\w.+-])([+-]INF|\+Infinity)\b")
WRITTEN_OTHERWISE = re.compile(rf"{STRING}|(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|(-?Infinity|NaN)")


class UnreadableError(ValueError):
    """The payload is no JSON object, or larger than a reader has to put up with."""


class Repeating(dict[str, Any]):
    """An object that repeats a name; `members` are all of them in order."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        """A name leads to its last member."""
        super().__init__(members)
        self.members = members

    def items(self) -> Any:
        """Also those that a later one hides: so they are written."""
        return self.members


def read_object(text: str) -> dict[str, Any]:
    """The object that the text is, whole; UnreadableError otherwise."""
    if text.count("[") + text.count("{") <= SHALLOW:
        return _read(text)
    if _depth(text) > DEEPEST:
        raise UnreadableError
    with _room():
        return _read(text)


def values_of(members: Mapping[str, Any], name: str) -> list[Any]:
    """Return the values of a member: [None] if it is absent, several if the object repeats its name."""
    if isinstance(members, Repeating):
        return [value for key, value in members.items() if key == name] or [None]
    return [members.get(name)]


def as_text(value: Any) -> str | None:
    """A member as a name: a text as it is, half a surrogate pair as a question mark; all else as JSON without blanks."""
    if value is None or value is ODD:
        return None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is int:
        return str(value)
    with _room():
        return WRITTEN_OTHERWISE.sub(_as_java_writes, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _read(text: str) -> dict[str, Any]:
    try:
        payload = _whole(text)
    except ValueError as error:
        if "INF" not in text and "+Inf" not in text:
            raise UnreadableError from error
        payload = _with_signed_infinities(text)
    if not isinstance(payload, dict):
        raise UnreadableError
    return payload


def _whole(text: str) -> Any:
    stripped = text.strip(BLANKS)
    value, end = DECODER.raw_decode(stripped)
    if end != len(stripped):
        raise UnreadableError
    return value


def _with_signed_infinities(text: str) -> Any:
    """Some writers put +Infinity, +INF or -INF."""

    def plain(word: re.Match[str]) -> str:
        return word[0] if word[1] is None else ("-Infinity" if word[1].startswith("-") else "Infinity")

    try:
        return _whole(SIGNED_INFINITY.sub(plain, text))
    except ValueError as error:
        raise UnreadableError from error


def _as_java_writes(word: re.Match[str]) -> str:
    if word[2] is not None:
        return f'"{word[2]}"'
    if word[1] is None:
        return re.sub(r"\\\\|[\ud800-\udfff]|\\u[0-9a-f]{4}", _escaped, word[0])
    return word[0] if word[1].removeprefix("-").isdecimal() else as_java_writes(float(word[1]))


def _escaped(match: re.Match[str]) -> str:
    if match[0] == r"\\":
        return match[0]
    return f"\\u{match[0][2:].upper()}" if match[0].startswith("\\") else f"\\u{ord(match[0]):04X}"


def _members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(members)
    if any(len(name) > LONGEST_NAME for name in by_name):
        raise UnreadableError
    return by_name if len(by_name) == len(members) else Repeating(members)


def _short(digits: str) -> str:
    if len(digits) > MOST_DIGITS and sum(map(str.isdigit, digits)) > MOST_DIGITS:
        raise UnreadableError
    return digits


DECODER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_int=lambda digits: int(_short(digits)),
    parse_float=lambda digits: float(_short(digits)),
)


def _depth(text: str) -> int:
    """How deep brackets stand in each other; those in strings do not count."""
    deepest = depth = 0
    for bracket in BRACKET_OUTSIDE.finditer(text):
        if bracket[1]:
            depth += 1 if bracket[1] in "[{" else -1
            deepest = max(deepest, depth)
    return deepest


@contextmanager
def _room() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 4 * DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
