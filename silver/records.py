"""Rows of payloads, each of which has the declared fields. Objects become rows through records.

A class of records is made of the declared paths. Readers of formats make such a record of each payload, whatever wrote the object; rows
of records have the declared fields as they stand there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.spec import PayloadFormat

Values: TypeAlias = pa.Array | Sequence[Any]
"""The values of a field, one a row, null if it is absent: texts of Arrow, or values of JSON."""
LEAF = str | int | float | bool | None
MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of one field of rows that are handed over at once."""
Record = msgspec.Struct
ODD = object()
"""Stands for a field that cannot be read because something that should be an object is none."""


class UnreadableError(ValueError):
    """The payload cannot be read. `reason`: a few words for people; `where`: the part of the payload that they are about."""

    def __init__(self, reason: str = "it cannot be read", where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason, self.where = reason, where


class Repeating(dict[str, Any]):
    """An object that repeats a name; `members` are all of them in order."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        """A name leads to its last member."""
        super().__init__(members)
        self.members = members

    def items(self) -> Any:
        """Also those that a later one hides: so they are written."""
        return self.members


@dataclass(frozen=True)
class Rows:
    """One row an event, or one for each of its objects and for each element of their lists. An event that cannot be read has one row, in
    which every field is absent.

    `values`: of a field. `event_at`: which event a row is of, from 0; `element_at`: its place in the event. Of each event: `is_readable`;
    and `elements`, how many there are: 1 where no list is declared, null where there is none, of several objects all their rows.
    """

    values: Callable[[str], Values]
    event_at: pa.Array
    element_at: pa.Array
    is_readable: pa.Array
    elements: pa.Array
    is_one_an_event: bool = False

    def of_event(self, column: pa.Array) -> pa.Array:
        """A column of the events, as one of the rows."""
        return column if self.is_one_an_event else column.take(self.event_at)


def one_an_event(values: Callable[[str], Values], is_readable: pa.Array) -> Rows:
    """Rows where no list is declared."""
    first, one = (pa.array(np.full(len(is_readable), n, np.int32)) for n in (0, 1))
    return Rows(values, pa.array(np.arange(len(is_readable), dtype=np.int32)), first, is_readable, one, is_one_an_event=True)


@dataclass(frozen=True)
class Node:
    """The members to read of an object, or of each object of a list: by name a node for an object, None for a value."""

    members: Mapping[str, "Node | None"]
    is_list: bool = False

    @cached_property
    def record(self) -> type[Record]:
        """A class with an attribute for each member. One that is absent is None, or a record of absent ones where it is an object."""
        fields = [(f"m{n}", *_type_and_default(node)) for n, node in enumerate(self.members.values())]
        return msgspec.defstruct("Record", fields, rename={f"m{n}": name for n, name in enumerate(self.members)}, gc=False)

    def attribute(self, path: Sequence[str]) -> str:
        """Return the attribute path of a field in a record: names of members need not be names in Python."""
        first, *others = path
        inner, attribute = self.members[first], f"m{[*self.members].index(first)}"
        return f"{attribute}.{inner.attribute(others)}" if others and inner else attribute

    def record_of(self, members: Mapping[str, Any]) -> Record:
        """The record of an object that a reader of a format made; UnreadableError where what is declared a list is none. Of a member that
        is there more than once, the last counts."""
        return self.record(*([_fitted(node, value) for value in values_of(members, name)][-1] for name, node in self.members.items()))

    def odd_record(self) -> Record:
        """The record of something that should be an object and is none: no field of it can be read, and its neighbours can. UnreadableError
        where it should hold the list: nobody knows how many measurements that would have."""
        if self.holds_list:
            raise UnreadableError("what should hold the list that conf reads is no object")
        return self.record(*(ODD if node is None else node.odd_record() for node in self.members.values()))

    @cached_property
    def holds_list(self) -> bool:
        return any(node is not None and (node.is_list or node.holds_list) for node in self.members.values())


def values_of(members: Mapping[str, Any], name: str) -> list[Any]:
    """Return the values of a member: [None] if it is absent, several if the object repeats its name."""
    if isinstance(members, Repeating):
        return [value for key, value in members.items() if key == name] or [None]
    return [members.get(name)]


def rows_of(
    records: Sequence[Record],
    is_readable: pa.Array,
    shape: PayloadFormat,
    both_nodes: tuple[Node, Node],
    longest: int,
    *,
    event_at: Sequence[int] | None = None,
) -> Iterator[Rows]:
    """Rows of records: one a record, or one an element where the format reads a list. `both_nodes`: those of an event, and of an element of
    its list. `longest`: bytes of the longest payload. `event_at`: the event of each record, in order, if one may have several."""
    event, element = both_nodes
    several = len(records) > len(is_readable)
    if shape.paths.to_list is None and not several:
        yield one_an_event(lambda field: _values(records, event, shape.paths.names(field)[1]), is_readable)
        return
    lists = _values(records, event, shape.paths.to_list) if shape.paths.to_list else [[record] for record in records]
    elements = [one for of_record in lists for one in (of_record or (element.record(),))]
    sizes = np.array([len(of_record) if of_record else 1 for of_record in lists], np.int32)
    count = pa.array([None if of_record is None else len(of_record) for of_record in lists], pa.int32())
    record_at = np.repeat(np.arange(len(lists), dtype=np.int32), sizes)
    row_event = np.asarray(event_at, np.int32)[record_at] if several else record_at
    rows_of_event = np.bincount(row_event, minlength=len(is_readable)).astype(np.int32)
    element_at = (np.arange(len(row_event)) - np.repeat(np.cumsum(rows_of_event) - rows_of_event, rows_of_event)).astype(np.int32)
    if several:
        first = np.flatnonzero(np.diff(np.asarray(event_at), prepend=-1))
        is_alone = np.diff(first, append=len(lists)) == 1
        count = pc.if_else(pa.array(is_alone), count.take(pa.array(first)), pa.array(rows_of_event))
    # Each element is a row with the fields of its event, which may be as long as the payload is.
    step = max(1, MOST_BYTES // max(longest, 1))
    for start in range(0, len(row_event), step):
        here = slice(start, start + step)
        of_events = [records[at] for at in record_at[here]]
        column = partial(_of_list, shape, (event, of_events), (element, elements[here]))
        yield Rows(column, pa.array(row_event[here]), pa.array(element_at[here]), is_readable, count)


def _of_list(shape: PayloadFormat, events: tuple[Node, list[Record]], elements: tuple[Node, list[Record]], field: str) -> list[Any]:
    is_of_element, path = shape.paths.names(field)
    node, records = elements if is_of_element else events
    return _values(records, node, path)


def _values(records: Sequence[Record], node: Node, path: Sequence[str]) -> list[Any]:
    return list(map(attrgetter(node.attribute(path)), records))


def _type_and_default(node: Node | None) -> tuple[Any, Any]:
    if node is None:
        return LEAF, None
    if node.is_list:
        return list[node.record] | None, None  # type: ignore[name-defined]
    return node.record, msgspec.field(default_factory=node.record)


def _fitted(node: Node | None, value: Any) -> Any:
    if node is None:
        return value
    if not node.is_list:
        return _object(node, value)
    if not isinstance(value, list | None):
        raise UnreadableError("what conf reads as a list is none")
    return None if value is None else [_object(node, one) for one in value]


def _object(node: Node, value: Any) -> Record:
    if value is None:
        return node.record()
    return node.record_of(value) if isinstance(value, dict) else node.odd_record()


def nodes(shape: PayloadFormat) -> tuple[Node, Node]:
    """Return the nodes of an event, and of an element of its list."""
    paths = list(map(shape.paths.names, shape.fields))
    of_element = Node(_members([path for is_of_element, path in paths if is_of_element]), is_list=True)
    of_event = [path for is_of_element, path in paths if not is_of_element]
    return Node(_members(of_event, shape.paths.to_list or [], of_element)), of_element


def _members(paths: Sequence[Sequence[str]], to_list: Sequence[str] = (), elements: Node | None = None) -> dict[str, Node | None]:
    """Group paths by their first name; `to_list` is the path of the list, if there is one."""
    members: dict[str, Node | None] = {}
    for name in dict.fromkeys(path[0] for path in (*paths, to_list) if path):
        inner = [path[1:] for path in paths if path[0] == name and path[1:]]
        rest = to_list[1:] if to_list[:1] == [name] else ()
        if to_list == [name]:
            members[name] = elements
        else:
            members[name] = Node(_members(inner, rest, elements)) if inner or rest else None
    return members
