"""Turn each payload into a record: the members that its source declares, with their raw values. Pure: no I/O.

`{"device": "oven-01", "value": "181.2", "note": 1}` becomes `{"device": "oven-01", "value": "181.2"}`; measurements.py reads the number.

orjson reads JSON first, because it is fast. json_payload reads the payload again where orjson refuses it or hides something: NaN and
infinities, half surrogate pairs, numbers beyond 64 bits, repeated names, a list or an object where one value should be. Its answer counts.
measurements.py has replaced bytes that are not in the encoding of their source.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from orchestration.audit.verify.binary_payload import own_decoders
from orchestration.audit.verify.csv_payload import row_reader
from orchestration.audit.verify.json_payload import BLANKS, Odd, UnreadableError, read_object, values_of
from silver.decoders.chain import decoder_of, objects_of
from silver.decoders.message import Message
from silver.records import UnreadableError as Undecodable
from silver.short_forms import ELEMENT
from silver.spec import PayloadFormat

LONGEST = 1_000
"""The longest JSON payload for orjson, in characters. A shorter one reaches no limit of json_payload on digits, names and depth."""

MOST = 2.0**63
"""A float of orjson that is greater, on either side of zero, may have been a whole number in the payload."""
Record = Mapping[str, Any]
Reader = Callable[[str | None, str | None], Record | None]
"""A function from a text and the header of its file to a record; None if there is no text, or if it cannot be read as declared."""


@dataclass(frozen=True)
class Level:
    """The members to read from an object, or from each object of a list. A member that maps to None is taken with its raw value."""

    members: Mapping[str, "Level | None"]
    is_list: bool = False

    @property
    def inner(self) -> Iterator[str]:
        """Yield the names of all members that are objects or lists, at any depth."""
        for name, level in self.members.items():
            if level is not None:
                yield from (name, *level.inner)

    def record_of(self, members: dict[str, Any]) -> Record:
        """Return the record of an object that json_payload has parsed. If a name is repeated, its last value counts. Raise UnreadableError
        if a declared list is no list, or if the object around it is no object."""
        return {
            name: [value if level is None else level.fitted(value) for value in values_of(members, name)][-1]
            for name, level in self.members.items()
        }

    def is_exact(self, members: Record) -> bool:
        """Tell whether the answer of orjson is exact: no object or list where a value should be, and no whole number read as a float."""
        for name, level in self.members.items():
            value = members.get(name)
            if level is None:
                if isinstance(value, dict | list) or (isinstance(value, float) and not -MOST <= value <= MOST):
                    return False
            elif not all(level.is_exact(inner) for inner in (value if level.is_list else [value]) or () if inner is not None):
                return False
        return True

    def fitted(self, value: Any) -> Any:
        """Return the record of a member that should be this object, or the records of one that should be this list."""
        if value is None:
            return None
        if not self.is_list:
            return self._object(value)
        if not isinstance(value, list):
            raise UnreadableError
        return [None if element is None else self._object(element) for element in value]

    def _object(self, value: Any) -> Record:
        if isinstance(value, dict):
            return self.record_of(value)
        if self.has_list:
            raise UnreadableError
        return Odd()

    @property
    def has_list(self) -> bool:
        return any(level is not None and (level.is_list or level.has_list) for level in self.members.values())


def path_of(field: str, shape: PayloadFormat) -> tuple[bool, tuple[str, ...]]:
    """Return whether a field belongs to the elements of the list `each`, and its path: `a.b` is the names `a`, `b`."""
    if shape.format == "csv":
        return False, (field,)
    is_of_element = shape.each is not None and field.startswith(ELEMENT)
    if shape.paths.have_marks:  # decoders have made a row of each element, in which lists and objects by key are what one of them is
        return False, tuple(
            name for name in (f"{shape.each}.{field.removeprefix(ELEMENT)}" if is_of_element else field).split(".") if name != "*"
        )
    return is_of_element, tuple((field.removeprefix(ELEMENT) if is_of_element else field).split("."))


def decoded_reader(shape: PayloadFormat) -> Callable[[Message | None], list[Record] | None]:
    """Return a function that reads messages of this shape: a record of each object, None where the message cannot be read. Objects are made
    by the decoders of silver, but for those of binary formats."""
    level = _level_of(shape)
    decode = decoder_of(shape, frozenset(level.members), own_decoders())

    def read(message: Message | None) -> list[Record] | None:
        try:
            return None if message is None else [level.record_of(members) for members in objects_of(decode, message)]
        except (UnreadableError, Undecodable):
            return None

    return read


def reader(shape: PayloadFormat) -> Reader:
    """Return a function that reads JSON or CSV payloads of this shape."""
    if shape.format == "csv":
        row_of = row_reader(shape)
        return lambda line, header: None if line is None else row_of(line, header)
    level = _level_of(shape)
    quick = _quick_reader(level)

    def read(text: str | None, _: str | None) -> Record | None:
        if text is None:
            return None
        if text.strip(BLANKS) in ("", "null"):
            return {}
        try:
            if (record := quick(text)) is not None:
                return record
        except (orjson.JSONDecodeError, UnreadableError):
            pass  # json_payload decides
        try:
            return level.record_of(read_object(text))
        except UnreadableError:
            return None

    return read


def _quick_reader(level: Level) -> Callable[[str], Record | None]:
    """Return a function that reads a text with orjson; it returns None if json_payload has to decide."""
    inner = [f'"{name}"' for name in dict.fromkeys(level.inner)]
    members = [*level.members]

    def read_values(text: str) -> Record | None:
        if len(text) > LONGEST or "[" in text or text.count("{") != 1:
            return None
        record: Record = orjson.loads(text)
        for name in members:
            value = record.get(name)
            if type(value) is float and not -MOST <= value <= MOST:
                return None
        return record

    def read_objects(text: str) -> Record | None:
        if len(text) > LONGEST or "\\u" in text or any(text.count(name) > 1 for name in inner):
            return None
        read = orjson.loads(text)
        record = level.record_of(read) if type(read) is dict else None
        return record if record is not None and level.is_exact(record) else None

    return read_objects if inner else read_values


def _level_of(shape: PayloadFormat) -> Level:
    of_element = _level(list(_paths(shape, of_element=True)), is_list=True)
    return _level(
        list(_paths(shape, of_element=False)), tuple(shape.each.split(".")) if shape.each and not shape.paths.have_marks else (), of_element
    )


def _paths(shape: PayloadFormat, *, of_element: bool) -> Iterator[tuple[str, ...]]:
    of_locators = (part for _, locator in shape.locators for part in locator.parts)
    for field in (*of_locators, *shape.metrics.values(), *shape.attributes.values()):
        is_of_element, path = path_of(field, shape)
        if is_of_element == of_element:
            yield path


def _level(
    paths: Sequence[tuple[str, ...]], to_list: tuple[str, ...] = (), elements: Level | None = None, *, is_list: bool = False
) -> Level:
    """Make the level of these paths. `to_list`: the path to the list `each`, if it lies below; `elements`: the level of its elements."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in filter(None, (*paths, to_list[:1])):
        below.setdefault(first, []).extend([tuple(rest)] if rest else [])
    members: dict[str, Level | None] = {}
    for name, inner in below.items():
        is_way = to_list[:1] == (name,)
        if is_way and not to_list[1:]:
            members[name] = elements
        else:
            members[name] = _level(inner, to_list[1:] if is_way else (), elements) if inner or is_way else None
    return Level(members, is_list)
