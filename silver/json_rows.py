"""JSON payloads to rows: of each payload the fields that a format declares, as they stand there.

msgspec reads JSON into a class that is made of the declared paths. What it refuses is read again with care by json_text, which decides: NaN
and infinities, half surrogate pairs, an object where a value should be, nulls where an object should be. So is what is long enough to reach
one of its limits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from silver.json_text import UnreadableError, read_object, values_of
from silver.rows import Rows
from silver.spec import ELEMENT, PayloadFormat

LEAF = str | int | float | bool | None
ALWAYS_WITHIN = 1_000
"""Letters of a payload that is too short for any limit of json_text."""
MOST_BRACKETS, LONGEST = 998, 50_000
MANY_DIGITS = re.compile(r"[0-9]{300}")
Record = msgspec.Struct


@dataclass(frozen=True)
class Node:
    """What is read of an object, or of each object of a list: by name of the member a node for an object, None for a value."""

    members: Mapping[str, "Node | None"]
    is_list: bool = False

    @cached_property
    def record(self) -> type[Record]:
        """A class with an attribute for each member. One that is absent is None, or a record of absent ones where it is an object."""
        fields = [(f"m{n}", *_type_and_default(node)) for n, node in enumerate(self.members.values())]
        return msgspec.defstruct("Record", fields, rename={f"m{n}": name for n, name in enumerate(self.members)}, gc=False)

    def attribute(self, path: Sequence[str]) -> str:
        """Of a record, by the path of the field: names of members need not be names in Python."""
        first, *others = path
        inner, attribute = self.members[first], f"m{[*self.members].index(first)}"
        return f"{attribute}.{inner.attribute(others)}" if others and inner else attribute

    def read(self, members: Mapping[str, Any]) -> Record:
        """The record of an object that json_text read; UnreadableError where what is declared an object or a list is none.

        Of a member that is there more than once, each has to be as declared, and the last counts.
        """
        return self.record(*([_fitted(node, value) for value in values_of(members, name)][-1] for name, node in self.members.items()))


def json_rows(texts: Sequence[str | None], shape: PayloadFormat) -> Rows:
    """Rows of payloads, each a text or null: one an event, or one an element where the format reads a list."""
    event, element = _nodes(shape)
    decode, absent = msgspec.json.Decoder(event.record).decode, event.record()
    read = [None if text is None else _read(text, decode, event) for text in texts]
    records = [absent if record is None else record for record in read]
    is_readable = pa.array([record is not None for record in read], pa.bool_())
    if shape.each is None:
        return Rows(is_readable, lambda field: _values(records, event, field.split(".")))
    lists = _values(records, event, shape.each.split("."))
    no_element = element.record()
    elements = [one for of_event in lists for one in (of_event or (no_element,))]
    counts = pa.array([None if of_event is None else len(of_event) for of_event in lists], pa.int32())
    rows_of_event = [len(of_event) if of_event else 1 for of_event in lists]
    event_at = np.repeat(np.arange(len(lists)), rows_of_event)
    element_at = np.arange(len(event_at)) - np.repeat(np.cumsum(rows_of_event) - rows_of_event, rows_of_event)

    def values(field: str) -> list[Any]:
        if field.startswith(ELEMENT):
            return _values(elements, element, field.removeprefix(ELEMENT).split("."))
        of_events = _values(records, event, field.split("."))
        return [of_events[at] for at in event_at.tolist()]

    return Rows(is_readable, values, pa.array(event_at, pa.int32()), pa.array(element_at, pa.int32()), counts)


def _read(text: str, decode: Any, node: Node) -> Record | None:
    try:
        if len(text) <= ALWAYS_WITHIN or _is_within_limits(text):
            return decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass  # json_text decides
    try:
        return node.read(read_object(text))
    except UnreadableError:
        return None


def _is_within_limits(text: str) -> bool:
    return len(text) <= LONGEST and text.count("{") + text.count("[") <= MOST_BRACKETS and MANY_DIGITS.search(text) is None


def _values(records: Sequence[Record], node: Node, path: Sequence[str]) -> list[Any]:
    return list(map(attrgetter(node.attribute(path)), records))


def _type_and_default(node: Node | None) -> tuple[Any, Any]:
    if node is None:
        return LEAF, None
    if node.is_list:
        return list[node.record] | None, None
    return node.record, msgspec.field(default_factory=node.record)


def _fitted(node: Node | None, value: Any) -> Any:
    if node is None:
        return value
    if not node.is_list:
        return _object(node, value)
    if not isinstance(value, list | None):
        raise UnreadableError
    return None if value is None else [_object(node, one) for one in value]


def _object(node: Node, value: Any) -> Record:
    if value is None:
        return node.record()
    if not isinstance(value, dict):
        raise UnreadableError
    return node.read(value)


def _nodes(shape: PayloadFormat) -> tuple[Node, Node]:
    """Of an event, and of an element of its list."""
    of_element = Node(_members([path.removeprefix(ELEMENT).split(".") for path in shape.fields if _is_of_element(path, shape)]), is_list=True)
    of_event = [path.split(".") for path in shape.fields if not _is_of_element(path, shape)]
    return Node(_members(of_event, shape.each.split(".") if shape.each else [], of_element)), of_element


def _is_of_element(path: str, shape: PayloadFormat) -> bool:
    return shape.each is not None and path.startswith(ELEMENT)


def _members(paths: Sequence[Sequence[str]], to_list: Sequence[str] = (), elements: Node | None = None) -> dict[str, Node | None]:
    """By name; `to_list` is the path of the list, where there is one."""
    members: dict[str, Node | None] = {}
    for name in dict.fromkeys(path[0] for path in (*paths, to_list) if path):
        inner = [path[1:] for path in paths if path[0] == name and path[1:]]
        rest = to_list[1:] if to_list[:1] == [name] else ()
        if to_list == [name]:
            members[name] = elements
        else:
            members[name] = Node(_members(inner, rest, elements)) if inner or rest else None
    return members
