"""Paths with marks: `a.*.b` makes rows of an object, as `flatten` does, and `a[0].b` names one element of a list."""

from collections.abc import Callable, Sequence
from typing import Any

from silver.decoders.flatten import flatten, member_of
from silver.spec import PayloadFormat


def rows_by_paths(shape: PayloadFormat) -> Callable[[dict[str, Any]], list[Any]]:
    """Return the function from an object to its rows: one for each element at `spread`, in which each list on the way is one of its
    elements. Elements that paths name by a number are members of that name, such as `a[0]`."""
    spread = shape.paths.spread
    paths = [path for _, path in map(shape.paths.names, shape.fields) if any("[" in name for name in path)]

    def rows(members: dict[str, Any]) -> list[Any]:
        made = flatten(members, spread) if spread else [members]
        return [_with_numbered(row, paths) for row in made] if paths else made

    return rows


def _with_numbered(row: Any, paths: Sequence[Sequence[str]]) -> Any:
    """The row with a member for each element that a path names by a number."""
    if not isinstance(row, dict):
        return row
    names = dict.fromkeys(path[0] for path in paths if path)
    return row | {name: _with_numbered(member_of(row, name), [path[1:] for path in paths if path[:1] == [name]]) for name in names}
