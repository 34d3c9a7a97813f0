"""The schemas of payloads that are not text: read when conf is loaded, and held against what a source reads and how it comes."""

from collections.abc import Iterator
from pathlib import Path

from expectations.settings import Step
from expectations.wording import quoted
from orchestration.conf.schema_members import Member, SchemaError, member_at
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from silver.decoders.steps import step_of
from silver.short_forms import ELEMENT
from silver.spec import BINARY, DECLARED

WITH_SCHEMA = ("avro", "protobuf")
TIME_FORMATS = {"timestamp-millis": "epoch_ms", "timestamp-micros": "epoch_us", "google.protobuf.Timestamp": "iso"}
Path_ = tuple[Step, ...]
Fields = list[tuple[Path_, str]]
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


def check_payload_schema(base: Path_, source: SourceSettings, fields: Fields) -> Iterator[Finding]:
    """`fields`: every field that the source reads, with where it is set."""
    findings = [*_check_settings(base, source), *_check_way(base, source)]
    yield from findings
    if source.format in BINARY and not source.decode and not source.paths.have_marks and not findings and not source.registry:
        yield from _check_fields(base, source, fields)


def _check_settings(base: Path_, source: SourceSettings) -> Iterator[Finding]:
    for key in ("schema", "registry", "message"):
        formats = ("protobuf",) if key == "message" else WITH_SCHEMA
        if getattr(source, key) and source.written_in not in formats:
            yield Finding.of((*base, key), f"is for {' and '.join(formats)}, but {base[1]}.format is {source.format}; remove it")
    if source.written_in not in WITH_SCHEMA:
        return
    if not source.schema and not source.registry:
        yield Finding.of(base, "does not say by which schema its payloads are written; set schema (a file) or registry")
    elif source.schema and source.registry:
        yield Finding.of(base, "sets schema and registry; keep one of them", "registry")
    elif source.written_in == "protobuf" and bool(source.message) == bool(source.registry):
        if source.message:
            yield Finding.of((*base, "message"), "is told by each payload of a registry; remove it")
        else:
            yield Finding.of(base, "does not say which message of the schema it sends; set message, for example plant.Reading")


def _check_way(base: Path_, source: SourceSettings) -> Iterator[Finding]:
    if not source.is_binary:
        return
    key, name = ("decode", step_of(source.decode[0]).name) if source.decode else ("format", source.format)
    if source.path or source.s3 or source.delta:
        problem = f"is {name}, which is for messages; let them come by kafka, mqtt, kinesis, http or tcp, or write JSON or CSV files"
        yield Finding.of((*base, key), problem)
    if source.tcp and source.tcp.framing == "lines":
        problem = f"is lines, but events of {name} may hold line feeds; set {base[1]}.tcp.framing to length"
        yield Finding.of((*base, "tcp", "framing"), problem)


def _check_fields(base: Path_, source: SourceSettings, fields: Fields) -> Iterator[Finding]:
    at = (*base, "schema")
    try:
        schemas = schemas_of(source.format, source.schema) if source.schema else {}
        at = (*base, "message") if source.message else at
        root = members_of(source.format, schemas, source.message)
    except SchemaError as error:
        yield Finding.of(at, str(error))
        return
    element = member_at(root, source.each) if source.each else root
    if isinstance(element, str) or (source.each and element.kind not in ("list", "any")):
        problem = element if isinstance(element, str) else "which is no list; name a list, or leave `each` out"
        yield Finding.of((*base, "each"), f"is {quoted(source.each)}, {problem}")
        return
    elements = Member("object", element.members) if element.kind == "list" else element
    for where, field in fields:
        is_of_element = source.each is not None and field.startswith(ELEMENT)
        member = member_at(elements, field.removeprefix(ELEMENT)) if is_of_element else member_at(root, field)
        wrong = member if isinstance(member, str) else _problem(member, source if where[2] == "time" else None)
        if wrong:
            yield Finding.of(where, f"is {quoted(field)}, {wrong}")


def _problem(member: Member, of_time: SourceSettings | None) -> str | None:
    if member.kind not in ("value", "any"):
        inner = [name for name in member.members() if name]
        return f"which is {'a list' if member.kind == 'list' else 'no single value'}" + (
            f"; it has {', '.join(inner[:20])}" if inner else ""
        )
    if of_time and (wanted := TIME_FORMATS.get(member.logical or "")) not in (None, of_time.time.format):
        return f"a {member.logical} in the schema, but its format is {of_time.time.format}; set `format: {wanted}`"
    return None
