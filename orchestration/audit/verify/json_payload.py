"""JSON payloads by the letter: the whole grammar on one screen. Strict JSON, and NaN and the infinities.

orjson reads most payloads (records.py); what it refuses, or does not tell, is decided here. Of a name that an object repeats, the last
value counts.
"""

import re
import sys
from collections.abc import Iterator
from math import isfinite, isnan
from typing import Any, NamedTuple

from orchestration.audit.verify.numerals import as_java_writes

# The same limits as silver/json_rows.py, written twice on purpose.
MOST_DIGITS = 1_000
LONGEST_NAME = 50_000
DEEPEST = 998
BLANKS = " \t\n\r"
WORDS = {"true": True, "false": False, "null": None}
INFINITE = {"Infinity": "Infinity", "+Infinity": "Infinity", "+INF": "Infinity", "-Infinity": "-Infinity", "-INF": "-Infinity"}
TOKEN = re.compile(
    rf"[{BLANKS}]*+(?:"
    r"(?P<mark>[{}\[\],:])"
    r'|"(?P<text>(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+)"'
    r"|(?:(?P<whole>-?(?:0|[1-9][0-9]*+))(?P<more>(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)|(?P<word>[+-]?[A-Za-z]++))(?![\w.+-])"
    r")"
)
ESCAPE = re.compile(r"\\(?:u([dD][89abAB]..)\\u([dD][c-fC-F]..)|u(....)|(.))")
ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WRITTEN = {letter: f"\\{name}" for name, letter in ESCAPED.items()} | {'"': '\\"', "\\": "\\\\"}
TO_ESCAPE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
SURROGATE = re.compile(r"[\ud800-\udfff]")
# Each level of a payload takes up to three calls. The limit stays: to set it back would end another thread that reads at the same time.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * DEEPEST))


class UnreadableError(ValueError):
    """The payload is no JSON object, or larger than a reader has to put up with."""


class NotFinite(NamedTuple):
    """NaN or an infinity: it is no number, and can still be named."""

    name: str


class Odd(dict[str, Any]):
    """Something that should be an object and is none: each member of it is there, and cannot be read."""

    def get(self, *_: object) -> "Odd":
        return self

    def __bool__(self) -> bool:
        return True


class Repeating(dict[str, Any]):
    """An object that repeats a name, which leads to its last member; `members` are all of them in order."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.members = members


def read_object(text: str) -> dict[str, Any]:
    """The object that the text is, whole; UnreadableError otherwise."""
    reader = _Reader(text)
    value = reader.value(reader.token(), 0)
    if not isinstance(value, dict) or text[reader.at :].strip(BLANKS):
        raise UnreadableError
    return value


def values_of(members: dict[str, Any], name: str) -> list[Any]:
    """Return the values of a member: [None] if it is absent, several if the object repeats its name."""
    if isinstance(members, Repeating):
        return [value for key, value in members.members if key == name] or [None]
    return [members.get(name)]


def as_text(value: Any) -> str | None:
    """Write a member as a name: a text as it is, with a question mark for half a surrogate pair; all else as JSON without blanks."""
    if value is None or isinstance(value, Odd):
        return None
    if isinstance(value, str):
        return value if value.isascii() else SURROGATE.sub("?", value)
    return "".join(_written(value))


class _Reader:
    """From the front to the back; `at`: what is read of the text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def token(self) -> re.Match[str]:
        token = TOKEN.match(self.text, self.at)
        if token is None:
            raise UnreadableError
        self.at = token.end()
        return token

    def value(self, token: re.Match[str], depth: int) -> Any:
        mark, text, whole, more, word = token.groups()
        if text is not None:
            return _unescaped(text)
        if whole is not None:
            return _number(whole, more)
        if word is not None:
            return _word(word)
        if depth == DEEPEST or mark not in "{[":
            raise UnreadableError
        return self.object(depth + 1) if mark == "{" else self.list(depth + 1)

    def object(self, depth: int) -> dict[str, Any]:
        members: list[tuple[str, Any]] = []
        token = self.token()
        while token["mark"] != "}" or members:
            if token["text"] is None or self.token()["mark"] != ":":
                raise UnreadableError
            name = _unescaped(token["text"])
            if len(name) > LONGEST_NAME:
                raise UnreadableError
            members.append((name, self.value(self.token(), depth)))
            if not self.goes_on("}"):
                break
            token = self.token()
        by_name = dict(members)
        return by_name if len(by_name) == len(members) else Repeating(members)

    def list(self, depth: int) -> list[Any]:
        values: list[Any] = []
        token = self.token()
        while token["mark"] != "]" or values:
            values.append(self.value(token, depth))
            if not self.goes_on("]"):
                break
            token = self.token()
        return values

    def goes_on(self, end: str) -> bool:
        """Whether a comma follows; otherwise it has to be the end."""
        mark = self.token()["mark"]
        if mark not in {",", end}:
            raise UnreadableError
        return mark == ","


def _unescaped(text: str) -> str:
    return ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(escape: re.Match[str]) -> str:
    high, low, code, letter = escape.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(code, 16)) if code is not None else ESCAPED.get(letter, letter)


def _number(whole: str, more: str) -> int | float:
    if len(whole) + len(more) > MOST_DIGITS and sum(map(str.isdigit, whole + more)) > MOST_DIGITS:
        raise UnreadableError
    return float(whole + more) if more else int(whole)


def _word(word: str) -> Any:
    if word in WORDS:
        return WORDS[word]
    if word != "NaN" and word not in INFINITE:
        raise UnreadableError
    return NotFinite(INFINITE.get(word, word))


def _written(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        members = value.members if isinstance(value, Repeating) else value.items()
        yield "{"
        for n, (name, member) in enumerate(members):
            yield f"{',' if n else ''}{_quoted(name)}:"
            yield from _written(member)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for n, member in enumerate(value):
            yield "," if n else ""
            yield from _written(member)
        yield "]"
    elif isinstance(value, NotFinite):
        yield f'"{value.name}"'
    else:
        yield _leaf(value)


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        if not isfinite(value):  # of a payload that is no text
            return '"NaN"' if isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
        return as_java_writes(value)
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    escaped = TO_ESCAPE.sub(lambda letter: WRITTEN.get(letter[0]) or f"\\u{ord(letter[0]):04X}", text)
    return f'"{escaped}"'
