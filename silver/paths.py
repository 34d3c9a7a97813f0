"""Paths of fields: names with dots between them, with marks for elements of lists."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from silver.short_forms import ELEMENT

MARKED = re.compile(r"(^|\.)\*(\.|$)|\[-?\d+\](\.|$)")
"""Marks of a path: `*` for each element of a list, or each member of an object, and `[0]` for one element."""


@dataclass(frozen=True)
class Paths:
    """The paths that a source reads. `list_path`: that of the list whose elements are rows, if there is one. `may_have_marks`: else marks
    are parts of names."""

    fields: Sequence[str]
    list_path: str | None
    may_have_marks: bool

    @cached_property
    def have_marks(self) -> bool:
        """Whether one goes through lists or objects by key (`a.*.b`), or to one element (`a[0].v`): rows are made as decoders do."""
        return self.may_have_marks and any(MARKED.search(path) for path in (*self.fields, self.list_path or ""))

    @property
    def to_list(self) -> list[str] | None:
        """The names that lead to the list whose elements are rows, unless paths have marks."""
        return self.list_path.split(".") if self.list_path and not self.have_marks else None

    @cached_property
    def spread(self) -> str | None:
        """The longest path to elements, ending in `*`, where paths have marks: a row is one of these elements, with what it is in."""
        paths = [self.full(path) for path in (*self.fields, *([ELEMENT] if self.list_path else []))] if self.have_marks else []
        ends = [path[: len(path) - path[::-1].index("*")] for path in paths if "*" in path]
        longest: list[str] = max(ends, key=len, default=[])
        return ".".join(longest) or None

    def full(self, field: str) -> list[str]:
        """The path of a field from the event on, with `*` for each element of a list."""
        if self.list_path is None or not field.startswith(ELEMENT):
            return field.split(".")
        of_list = self.list_path if self.list_path.split(".")[-1] == "*" else f"{self.list_path}.*"
        return [*of_list.split("."), *filter(None, field.removeprefix(ELEMENT).split("."))]

    def names(self, field: str) -> tuple[bool, list[str]]:
        """Whether a field is of the elements of the list `each`, and the names of its path in an object that is read."""
        if self.have_marks:
            return False, [name for name in self.full(field) if name != "*"]
        is_of_element = self.list_path is not None and field.startswith(ELEMENT)
        return is_of_element, (field.removeprefix(ELEMENT) if is_of_element else field).split(".")

    def are_on_the_way(self, field: str) -> bool:
        """Whether the lists that a field goes through are those of which a row is an element."""
        names, spread = self.full(field), (self.spread or "").split(".")
        ends = [n for n, name in enumerate(names, 1) if name == "*"]
        return not ends or not self.spread or names[: ends[-1]] == spread[: ends[-1]]
