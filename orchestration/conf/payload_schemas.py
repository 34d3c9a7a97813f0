"""The schema file of a source, read when conf is loaded; and what it says of fields, in whatever language it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from expectations.wording import hint, quoted
from silver.spec import DECLARED


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


_VALUE, _TIME = Member("value"), Member("value", logical="timestamp-millis")
_METRIC = dict.fromkeys(("name", "alias", "datatype", "is_historical", "is_transient", "is_null", "value"), _VALUE) | {"timestamp": _TIME}
SPARKPLUG = Member("object", lambda: {"timestamp": _TIME, "seq": _VALUE, "uuid": _VALUE, "metrics": Member("list", lambda: _METRIC)})


def schemas_of(format: str, file: Path) -> dict[str, tuple[str, ...]]:
    """`PayloadFormat.schemas` of a file of Avro or Protobuf; SchemaError says why it cannot be used."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SchemaError(f"is {str(file)!r}, which cannot be read ({error.strerror}); name the file of the schema") from None
    if format == "protobuf":
        from orchestration.conf.protobuf_schemas import of_file

        return {DECLARED: (of_file(file, content),)}
    from orchestration.conf.avro_schemas import avro_schemas, fingerprint

    text = content.decode(errors="replace")
    avro_schemas((text,))
    return {DECLARED: (text,), fingerprint(text): (text,)}


def members_of(format: str, schemas: dict[str, tuple[str, ...]], message: str | None) -> Member:
    """The fields of what a source sends. Raises SchemaError for a message that the schema does not declare."""
    if format == "sparkplug_b":
        return SPARKPLUG
    if format == "protobuf":
        from orchestration.conf.protobuf_schemas import protobuf_members

        return protobuf_members(schemas[DECLARED][0], message or "")
    from orchestration.conf.avro_schemas import avro_members, avro_schemas

    return avro_members(avro_schemas(schemas[DECLARED]))


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
