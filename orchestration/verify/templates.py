"""JSON payloads of one make: devices of a fleet write the same text but for the values, so many payloads are read at once.

A template is made of one payload, and fits others that have its members in its order, each of the same kind. It has objects, texts in
ASCII without escapes, numbers without an exponent, true, false and null; where there is more to read, payloads are read one by one.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Path = tuple[str, ...]
"""Names of members, from the outermost in."""

BLANK = r"[ \t\n\r]*"
PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""What means itself between quotes. There is no quote in it, so quotes cut payloads of one template into as many pieces."""
INTEGER = "0|-?[1-9][0-9]{0,17}"  # not -0, which is another number
AROUND_NUMBER = " \t\n\r,:{}"
LEFT, RIGHT = r"\{", r"\}"


class Kind(Enum):
    """Of a value that is no object: the regular expression that it is written by."""

    TEXT = f'"{PLAIN.pattern}"'
    INTEGER = f"(?:{INTEGER})"
    NUMBER = rf"(?:{INTEGER}|-?(?:0|[1-9][0-9]{{0,17}})\.[0-9]{{1,17}})"
    SWITCH = "(?:true|false)"
    NULL = "null"


class Value(NamedTuple):
    """Of a member: what it is, and in which of the pieces that the quotes make."""

    kind: Kind
    piece: int


class Part(NamedTuple):
    """Of a payload: its regular expression, how many quotes are in it, and of which member it is the value."""

    pattern: str
    quotes: int
    path: Path = ()
    kind: Kind = Kind.NULL


@dataclass(frozen=True)
class Template:
    """`pattern` fits whole payloads, which quotes cut into `pieces`."""

    pattern: str
    pieces: int
    values: Mapping[Path, Value]

    def fits(self, payloads: pa.Array) -> pa.Array:
        """Which of the payloads have this template."""
        return pc.match_substring_regex(payloads, self.pattern)

    def texts(self, payloads: pa.Array) -> dict[Path, pa.Array]:
        """The values of payloads that it fits as they are written, texts without their quotes; of what is null, none."""
        cut = pc.split_pattern(payloads.cast(pa.string()), '"').flatten()
        return {path: self._text(cut, value) for path, value in self.values.items() if value.kind is not Kind.NULL}

    def _text(self, cut: pa.Array, value: Value) -> pa.Array:
        found = cut.take(np.arange(value.piece, len(cut), self.pieces))
        return found if value.kind is Kind.TEXT else pc.utf8_trim(found, AROUND_NUMBER)


class PeculiarError(ValueError):
    """No template is made of this payload."""


def template_of(payload: bytes, read: Collection[Path], as_text: Collection[Path]) -> Template | None:
    """Of a payload that is an object. `read`: the members that are asked for; `as_text`: those whose numbers count as they are written."""
    try:
        members = json.loads(payload, object_pairs_hook=tuple)  # lists stay lists
        parts = list(_parts((), members, read, as_text))
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, tuple):
        return None
    quotes, values = 0, {}
    for part in parts:
        if part.path in read:
            values[part.path] = Value(part.kind, quotes + (part.kind is Kind.TEXT))
        quotes += part.quotes
    return Template(rf"\A{BLANK}{''.join(part.pattern for part in parts)}{BLANK}\z", quotes + 1, values)


def _parts(path: Path, value: Any, read: Collection[Path], as_text: Collection[Path]) -> Iterator[Part]:
    if not isinstance(value, tuple):
        kind = _kind(value, path in as_text)
        if kind is not Kind.NULL and any(path == longer[: len(path)] for longer in read if longer != path):
            raise PeculiarError
        yield Part(kind.value, 2 * (kind is Kind.TEXT), path, kind)
        return
    names = [name for name, _ in value]
    if path in read or len({*names}) < len(names) or not all(map(PLAIN.fullmatch, names)):
        raise PeculiarError
    for at, (name, inner) in enumerate(value):
        yield Part(rf'{"," if at else LEFT}{BLANK}"{re.escape(name)}"{BLANK}:{BLANK}', 2)
        yield from _parts((*path, name), inner, read, as_text)
        yield Part(BLANK, 0)
    yield Part(RIGHT if value else f"{LEFT}{BLANK}{RIGHT}", 0)


def _kind(value: Any, counts_as_written: bool) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.SWITCH
        case str():
            return Kind.TEXT
        case int():
            return Kind.INTEGER if counts_as_written else Kind.NUMBER
        case float() if not counts_as_written:
            return Kind.NUMBER
        case _:
            raise PeculiarError
