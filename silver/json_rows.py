"""JSON payloads to rows: of each payload the fields that a format declares, as they stand there.

Strict JSON, and NaN and the infinities. Of a name that an object repeats, the last value counts.

msgspec reads JSON into a class that is made of the declared paths. What it refuses is read again with care by `read_object`, which decides:
NaN and infinities, half surrogate pairs, an object where a value should be, nulls where an object should be. So is what is long enough to
reach one of its limits.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.decoders.json_text import STRING, depth_of
from silver.records import ODD, Node, Record, Repeating, Rows, UnreadableError, nodes, rows_of
from silver.spec import PayloadFormat

MOST_DIGITS = 1_000
LONGEST_NAME = 50_000
DEEPEST = 998
SHALLOW = 100
"""Brackets that any reader can stack; more of them need room."""
BLANKS = " \t\n\r"
PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7
"""Java writes numbers between these without an exponent."""
SIGNED_INFINITY = re.compile(rf"{STRING}|(?<![\w.+-])([+-]INF|\+Infinity)\b")
WRITTEN_OTHERWISE = re.compile(rf"{STRING}|(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|(-?Infinity|NaN)")
ALWAYS_WITHIN = 1_000
"""Letters of a payload that is too short for any of these limits."""
NOTHING = ("", "null")
"""Payloads that say that nothing was measured: an empty line, a message that only deletes."""
MANY_DIGITS = re.compile(r"[0-9]{300}")


def json_rows(texts: pa.Array, shape: PayloadFormat) -> Iterator[Rows]:
    """Rows of payloads, null where one is too long to be read: one an event, or one an element where the format reads a list."""
    both_nodes = event, _ = nodes(shape)
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    records, is_readable = _records(texts.to_pylist(), event, longest)
    yield from rows_of(records, is_readable, shape, both_nodes, longest)


def _records(texts: Sequence[str | None], event: Node, longest: int) -> tuple[list[Record], pa.Array]:
    """Return a record for each text, and whether it could be read. A text that msgspec refuses, or null, ends its run; decoding goes on
    after it."""
    decode, absent = msgspec.json.Decoder(event.record).decode, event.record()
    if longest > ALWAYS_WITHIN:
        decode = partial(_decode_within_limits, decode)
    records: list[Record] = []
    is_readable, rest = np.ones(len(texts), bool), iter(texts)
    while len(records) < len(texts):
        try:
            records.extend(map(decode, rest))  # type: ignore[arg-type]  # of null it raises TypeError
        except (msgspec.DecodeError, TypeError, RecursionError):
            record = _read_with_care(texts[len(records)], event)
            is_readable[len(records)] = record is not None
            records.append(absent if record is None else record)
    return records, pa.array(is_readable)


def _decode_within_limits(decode: Callable[[str], Record], text: str) -> Record:
    if len(text) <= LONGEST_NAME and text.count("{") + text.count("[") <= DEEPEST and MANY_DIGITS.search(text) is None:
        return decode(text)
    raise msgspec.DecodeError


def _read_with_care(text: str | None, event: Node) -> Record | None:
    if text is None:
        return None
    if text.strip(BLANKS) in NOTHING:
        return event.record()
    try:
        return event.record_of(read_object(text))
    except UnreadableError:
        return None


def read_object(text: str) -> dict[str, Any]:
    """The object that the text is, whole; UnreadableError otherwise."""
    if text.count("[") + text.count("{") <= SHALLOW:
        return _read(text)
    if depth_of(text) > DEEPEST:
        raise UnreadableError
    with _room():
        return _read(text)


def as_text(value: Any) -> str | None:
    """A member as a name: a text as it is, half a surrogate pair as a question mark; all else as JSON without blanks."""
    if value is None or value is ODD:
        return None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is int:
        return str(value)
    if type(value) is float and math.isfinite(value):
        return _as_java_writes(value)
    with _room():
        return WRITTEN_OTHERWISE.sub(_written, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


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


def _written(word: re.Match[str]) -> str:
    if word[2] is not None:
        return f'"{word[2]}"'
    if word[1] is None:
        return re.sub(r"\\\\|[\ud800-\udfff]|\\u[0-9a-f]{4}", _escaped, word[0])
    return word[0] if word[1].removeprefix("-").isdecimal() else _as_java_writes(float(word[1]))


def _as_java_writes(value: float) -> str:
    """A finite JSON number with a fraction or an exponent, as text: 1.50 is `1.5`, 1e7 is `1.0E7`."""
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    sign, (first, *others), exponent = Decimal(repr(value)).normalize().as_tuple()
    return f"{'-' if sign else ''}{first}.{''.join(map(str, others)) or '0'}E{int(exponent) + len(others)}"


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
    object_pairs_hook=_members, parse_int=lambda digits: int(_short(digits)), parse_float=lambda digits: float(_short(digits))
)


@contextmanager
def _room() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 4 * DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
