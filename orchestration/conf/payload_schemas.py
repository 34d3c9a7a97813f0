"""The schema file of a source, read when conf is loaded, and its fields."""

from pathlib import Path

from orchestration.conf.schema_members import Member, SchemaError
from silver.spec import DECLARED

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
