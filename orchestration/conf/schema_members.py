"""Fields that a schema declares, in whatever language it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from expectations.wording import hint, quoted


class SchemaError(ValueError):
    """A schema that cannot be used: the second half of a sentence."""


@dataclass(frozen=True)
class Member:
    """A field. `members`: those of an object, and of the objects of a list; of a map, what any name leads to, under the name ''.

    `logical`: the logical type in Avro, or google.protobuf.Timestamp.
    """

    kind: Literal["value", "object", "list", "map", "any"]
    members: Callable[[], Mapping[str, "Member"]] = dict
    logical: str | None = None


def member_at(root: Member, path: str) -> Member | str:
    """Follow a path to a member, from an object or the element of a list; else the second half of a sentence."""
    here, walked = root, list[str]()
    for name in path.split("."):
        if here.kind == "any":
            return here
        if walked and here.kind in ("value", "list"):
            what = "one value" if here.kind == "value" else "a list; read it by `each`"
            return f"but {quoted('.'.join(walked))} is {what}"
        members = here.members()
        if here.kind != "map" and name not in members:
            return f"which the schema does not have; {hint(name, members, 'there is ' + ', '.join([*members][:20]))}"
        here = members["" if here.kind == "map" else name]
        walked.append(name)
    return here
