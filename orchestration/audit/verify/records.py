"""Payloads to records: of each payload the members that a shape reads, and of each member what stands there, not yet understood.

msgspec reads JSON into a class that is made from the shape's paths. What it refuses is read again with care by json_payload, which decides:
NaN and infinities, half surrogate pairs, numbers beyond all floats, lists and objects where one value should be. Text that is not UTF-8 is
replaced before, because msgspec does not look at the letters of members that nobody reads.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from orchestration.audit.verify.csv_payload import row_reader
from orchestration.audit.verify.json_payload import UnreadableError, read_object, values_of
from silver.spec import ELEMENT, PayloadFormat

LONGEST = 1_000
"""Letters of a JSON payload for msgspec: within them no limit of json_payload on digits, names and depth is reached."""
LEAF = str | int | float | bool | None

Record = msgspec.Struct
Reader = Callable[[str | None, str | None], Record | None]
"""Of a text and the header of its file; None where there is none, or where it cannot be read as declared."""


@dataclass(frozen=True)
class Level:
    """What is read of an object, or of each object of a list; a member without a level of its own is read as it stands."""

    members: Mapping[str, "Level | None"]
    is_list: bool = False

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Of a record, by name of the member: names of members need not be names in Python."""
        return {name: f"m{n}" for n, name in enumerate(self.members)}

    @cached_property
    def record(self) -> type[Record]:
        """A class with a member for each; one that is absent is None."""
        types = {name: LEAF if level is None else level.value for name, level in self.members.items()}
        fields = [(attribute, types[name], None) for name, attribute in self.attributes.items()]
        return msgspec.defstruct("Record", fields, rename={at: name for name, at in self.attributes.items()}, gc=False)

    @property
    def value(self) -> Any:
        """The type of a member that is this object or list."""
        return list[self.record | None] | None if self.is_list else self.record | None  # type: ignore[name-defined]

    def record_of(self, members: Mapping[str, Any]) -> Record:
        """Of an object that json_payload or csv_payload read; UnreadableError where what is declared an object or a list is none.

        Of a member that is there more than once, each has to be as declared, and the last counts.
        """
        values = [
            [value if level is None else level.fitted(value) for value in values_of(members, name)] for name, level in self.members.items()
        ]
        return self.record(*(of_member[-1] for of_member in values))

    def fitted(self, value: Any) -> Any:
        """The record, or the records, of a member that is this object or list."""
        if value is None:
            return None
        if not self.is_list:
            return self._object(value)
        if not isinstance(value, list):
            raise UnreadableError
        return [None if element is None else self._object(element) for element in value]

    def _object(self, value: Any) -> Record:
        if not isinstance(value, dict):
            raise UnreadableError
        return self.record_of(value)


def levels_of(shape: PayloadFormat) -> tuple[Level, Level]:
    """Of an event and of an element of its list. In CSV an event has one level."""
    of_event = list(_paths(shape, of_element=False))
    of_element = _level(list(_paths(shape, of_element=True)), is_list=True)
    return _level(of_event, tuple(shape.each.split(".")) if shape.each else (), of_element), of_element


def path_of(field: str, shape: PayloadFormat) -> tuple[bool, tuple[str, ...]]:
    """Whether a field is one of the elements, and the names of its members from the outermost in."""
    if shape.format == "csv":
        return False, (field,)
    is_of_element = shape.each is not None and field.startswith(ELEMENT)
    return is_of_element, tuple((field.removeprefix(ELEMENT) if is_of_element else field).split("."))


def reader(shape: PayloadFormat) -> Reader:
    """What reads payloads of this shape."""
    level, _ = levels_of(shape)
    if shape.format == "csv":
        return _csv_reader(shape, level)
    quick = msgspec.json.Decoder(level.record).decode

    def read(text: str | None, _: str | None) -> Record | None:
        if text is None:
            return None
        try:
            if len(text) <= LONGEST:
                return quick(text)
        except msgspec.DecodeError:
            pass  # json_payload decides
        try:
            return level.record_of(read_object(text))
        except UnreadableError:
            return None

    return read


def _csv_reader(shape: PayloadFormat, level: Level) -> Reader:
    row_of = row_reader(shape)

    def read(line: str | None, header: str | None) -> Record | None:
        row = None if line is None else row_of(line, header)
        return None if row is None else level.record_of(row)

    return read


def _paths(shape: PayloadFormat, *, of_element: bool) -> Iterator[tuple[str, ...]]:
    origins = [origin.field for origin in (shape.device, shape.zone, shape.metric, shape.unit) if origin and origin.field]
    for field in (*origins, shape.time.field, *shape.metrics.values(), *([shape.value] if shape.value else [])):
        is_of_element, path = path_of(field, shape)
        if is_of_element == of_element:
            yield path


def _level(
    paths: Sequence[tuple[str, ...]], to_list: tuple[str, ...] = (), elements: Level | None = None, *, is_list: bool = False
) -> Level:
    """`to_list`: the path of the list, where there is one below."""
    members: dict[str, Level | None] = {}
    for name in dict.fromkeys(path[0] for path in (*paths, to_list) if path):
        inner = [path[1:] for path in paths if path[0] == name and path[1:]]
        is_way = to_list[:1] == (name,)
        if is_way and not to_list[1:]:
            members[name] = elements
        else:
            members[name] = _level(inner, to_list[1:] if is_way else (), elements) if inner or is_way else None
    return Level(members, is_list)
