"""`flatten`: lists in lists become rows with the fields of each level."""

import re
from typing import Any

from silver.decoders.json_text import check_spread, object_of
from silver.records import UnreadableError

NUMBERED = re.compile(r"(.+?)((?:\[-?\d+\])+)")


def flatten(content: Any, field: str) -> list[Any]:
    """One object for each element of the innermost list, in which each list of the path is one of its elements.

    With `devices.values`, {"site": "a", "devices": [{"id": 1, "values": [20, 21]}]} is {"site": "a", "devices": {"id": 1, "values": 20}}
    and {"site": "a", "devices": {"id": 1, "values": 21}}. A list that is absent or empty has no rows. A `*` in the path stands for each
    element of a list, or each member of an object, with its key as `key`; one that is no object is its `value`.
    """
    return _rows(object_of(content), field.split("."))


def member_of(members: dict[str, Any], name: str) -> Any:
    """A member; `a[0]` is the first element of the list `a`, unless a member has that name. None where it is absent."""
    numbered = None if name in members else NUMBERED.fullmatch(name)
    if numbered is None:
        return members.get(name)
    value = members.get(numbered[1])
    for number in map(int, re.findall(r"-?\d+", numbered[2])):
        value = value[number] if isinstance(value, list) and -len(value) <= number < len(value) else None
    return value


def _rows(members: Any, path: list[str]) -> list[Any]:
    name, *inner = path
    if name == "*":
        return [row for element in _elements(members) for row in (_rows(element, inner) if inner else [element])]
    if not isinstance(members, dict):
        raise UnreadableError(f"what should hold {name} is no object")
    value = member_of(members, name)
    if inner[:1] == ["*"]:
        below = _rows(value, inner)
    else:
        elements = value if isinstance(value, list) else [] if value is None else [value]
        below = [row for element in elements for row in (_rows(element, inner) if inner else [element])]
    check_spread(len(below), members)
    return [{**members, name: row} for row in below]


def _elements(value: Any) -> list[Any]:
    """The elements of a list; the members of an object with their keys."""
    if isinstance(value, dict):
        return [{**(member if isinstance(member, dict) else {"value": member}), "key": key} for key, member in value.items()]
    if not isinstance(value, list | None):
        raise UnreadableError("what conf reads as a list is none")
    return value or []
