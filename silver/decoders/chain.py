"""Decoders in a row: from a message to plain objects, the rows of its event in their order.

A decoder takes a content and returns contents: bytes, texts, or values as JSON has them. The next one takes each of these; what the last
one leaves as bytes is JSON. A decoder with a `field` works on that field of an object, and so do all behind it: what they make takes the
place of the field, beside the others of the object. A message is read as a whole, or it is unreadable.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from traceback import extract_tb
from typing import Any, TypeAlias

from silver.decoders.arrays import array
from silver.decoders.avro import avro
from silver.decoders.base64_text import base64
from silver.decoders.by_key import by_key
from silver.decoders.columns import columns
from silver.decoders.concatenated import concatenated
from silver.decoders.confluent import confluent
from silver.decoders.flatten import flatten
from silver.decoders.gzipped import gzip
from silver.decoders.influx import influx
from silver.decoders.join import join
from silver.decoders.json_text import check_spread, json_of, object_of
from silver.decoders.lines import lines
from silver.decoders.marked_paths import rows_by_paths
from silver.decoders.message import Message
from silver.decoders.otlp import otlp
from silver.decoders.protobuf import protobuf
from silver.decoders.senml import senml
from silver.decoders.sparkplug_b import sparkplug_b
from silver.decoders.steps import Step, steps_of
from silver.decoders.text import text
from silver.decoders.user_code import function_in
from silver.records import UnreadableError
from silver.spec import BINARY, PayloadFormat

BUILT_IN: dict[str, Callable[..., list[Any]]] = {
    decoder.__name__: decoder
    for decoder in (
        *(text, lines, concatenated, array, base64, by_key, columns, flatten, join, gzip, confluent),
        *(influx, senml, otlp, avro, protobuf, sparkplug_b),
    )
}
MOST_OBJECTS = 100_000
"""The most objects of one message."""
Decode: TypeAlias = Callable[[Any, Message], list[Any]]


def decoder_of(shape: PayloadFormat, names: frozenset[str], own: Mapping[str, Callable[..., list[Any]]] = BUILT_IN) -> Decode:
    """Return the function that makes objects of a message; it raises UnreadableError. `names`: members of objects that are read. `own`:
    decoders by name, if a reader has some of its own."""
    steps, functions = steps_of(shape), BUILT_IN | dict(own)
    is_last = bool(steps) and steps[-1].name in BINARY and not shape.paths.have_marks
    more = {"shape": shape, "names": names if is_last else None}
    bound = [_bound(functions.get(step.name) or function_in(shape.code, step.name), step, more) for step in steps]
    decode = _chain(bound, _object)
    return _by_paths(decode, rows_by_paths(shape)) if shape.paths.have_marks else decode


def objects_of(decode: Decode, message: Message) -> list[dict[str, Any]]:
    """The objects of a message; none of one without content, which only deletes. Raises UnreadableError."""
    return decode(message.payload, message) if message.payload else []


def _bound(function: Callable[..., list[Any]], step: Step, more: Mapping[str, Any]) -> tuple[str, Decode, str | None]:
    """The name of a decoder, it with its arguments, and the field that it works on, unless that is one of its arguments."""
    names = signature(function).parameters
    given = {**step.arguments, **{key: value for key, value in more.items() if key in names}}
    given |= {"field": step.field} if "field" in names else {}
    bound = partial(function, **given) if given else function
    return step.name, bound if "message" in names else lambda content, _: bound(content), None if "field" in names else step.field


def _chain(steps: Sequence[tuple[str, Decode, str | None]], last: Decode) -> Decode:
    if not steps:
        return last
    (name, decode, field), *others = steps
    behind = _then(name, decode, _chain(others, _value if field else last))
    return _within(field, behind) if field else behind


def _then(name: str, decode: Decode, behind: Decode) -> Decode:
    def both(content: Any, message: Message) -> list[Any]:
        try:
            contents = decode(content, message)
        except UnreadableError as error:
            raise UnreadableError(error.reason, f"{name}, {error.where}" if error.where else name) from None
        except Exception as error:  # of a function of the user's
            where = f"{name}, line {extract_tb(error.__traceback__)[-1].lineno}"
            raise UnreadableError(f"{type(error).__name__}: {error}", where) from None
        if len(contents) == 1:
            return behind(contents[0], message)
        return _few([made for inner in contents for made in behind(inner, message)], name)

    return both


def _by_paths(decode: Decode, rows: Callable[[dict[str, Any]], list[Any]]) -> Decode:
    def both(content: Any, message: Message) -> list[Any]:
        return _few([row for members in decode(content, message) for row in rows(members)])

    return both


def _few(made: list[Any], where: str = "") -> list[Any]:
    if len(made) > MOST_OBJECTS:
        raise UnreadableError(f"a message has more than {MOST_OBJECTS:,} objects", where)
    return made


def _within(field: str, decode: Decode) -> Decode:
    path = field.split(".")

    def inside(content: Any, message: Message) -> list[Any]:
        outer = object_of(content)
        value: Any = outer
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return [outer]
        contents = decode(value, message) or [None]
        check_spread(len(contents), outer)
        return [_replaced(outer, path, inner) for inner in contents]

    return inside


def _replaced(outer: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *others = path
    return {**outer, first: _replaced(outer[first], others, value) if others else value}


def _object(content: Any, _: Message) -> list[Any]:
    return [object_of(content)]


def _value(content: Any, _: Message) -> list[Any]:
    """Return the value of a field, which need be no object: bytes are JSON, or else a text."""
    if not isinstance(content, bytes):
        return [content]
    try:
        return [json_of(content)]
    except UnreadableError:
        try:
            return [content.decode()]
        except UnicodeDecodeError:
            raise UnreadableError("it is neither JSON nor a text; name the decoder of these bytes") from None
