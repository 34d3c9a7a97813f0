"""`flatten`: lists in lists become rows with the fields of each level."""

from typing import Any

from silver.decoders.json_text import check_spread, object_of
from silver.records import UnreadableError


def flatten(content: Any, field: str) -> list[Any]:
    """One object for each element of the innermost list, in which each list of the path is one of its elements.

    With `devices.values`, {"site": "a", "devices": [{"id": 1, "values": [20, 21]}]} is {"site": "a", "devices": {"id": 1, "values": 20}}
    and {"site": "a", "devices": {"id": 1, "values": 21}}. A list that is absent or empty has no rows.
    """
    return _rows(object_of(content), field.split("."))


def _rows(members: Any, path: list[str]) -> list[Any]:
    if not isinstance(members, dict):
        raise UnreadableError(f"what should hold {path[0]} is no object")
    name, *inner = path
    value = members.get(name)
    elements = value if isinstance(value, list) else [] if value is None else [value]
    below = [row for element in elements for row in (_rows(element, inner) if inner else [element])]
    check_spread(len(below), members)
    return [{**members, name: row} for row in below]
