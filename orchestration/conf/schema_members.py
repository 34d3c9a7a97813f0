"""What a schema says of the fields of its messages, whatever language it is written in: enough to find paths that lead nowhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestration.conf.diagnostic import hint, quoted


class SchemaError(ValueError):
    """A schema that cannot be used: the second half of a sentence."""


@dataclass(frozen=True)
class Member:
    """A field. `members`: of an object, and of the objects of a list; of a map, what any name leads to, under the name ''.

    `logical`: the logical type in Avro, or google.protobuf.Timestamp.
    """

    kind: Literal["value", "object", "list", "map", "any"]
    members: Callable[[], Mapping[str, "Member"]] = dict
    logical: str | None = None


def found(root: Member, path: str) -> Member | str:
    """The member that a path leads to from an object or the element of a list; else the second half of a sentence."""
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
