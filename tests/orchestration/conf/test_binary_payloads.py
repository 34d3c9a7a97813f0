"""A source of Avro, Protobuf or Sparkplug B: what its settings mean, and that its schema is read and has the fields."""

import json
from pathlib import Path

import pytest

from orchestration.conf.avro_schemas import avro_schemas
from orchestration.conf.load import load
from orchestration.conf.payload_schemas import schemas_of
from orchestration.conf.protobuf_schemas import of_texts
from orchestration.conf.schema_members import SchemaError
from silver.spec import DECLARED, Registry
from tests.binary_formats import BATCH, PROTO2, PROTO3, READING
from tests.orchestration.conf.conftest import mistakes_of

KAFKA = "kafka: {servers: 'localhost:9092', subscribe: [readings]}"
LONG = "device: {field: device}, time: {field: ts, format: epoch_ms}, metric: {field: metric}, value: {field: value}"
ISO = LONG.replace(", format: epoch_ms", "")
AVRO, PROTO = "format: avro, schema: ./reading.avsc", "format: protobuf, schema: ./plant.proto, message: plant.Reading"
SPARKPLUG = "device: {constant: oven}, each: metrics, time: {field: each.timestamp, format: epoch_ms}, metric: {field: each.name}"
SOUND = [
    f"{AVRO}, {LONG}",
    f"{AVRO}, {LONG.replace('field: value', 'field: value.x')}",  # in a union of several types anything may be
    f"{PROTO}, {ISO}",
    "format: avro, registry: {url: 'http://localhost:8081', username: '${env:A}', password: '${file:b}'}, " + ISO,
    f"format: protobuf, registry: {{url: 'https://registry'}}, {ISO}",
    f"format: sparkplug_b, {SPARKPLUG}, value: {{field: each.value}}",
    "format: avro, schema: ./batch.avsc, device: {field: gateway.id}, each: list, time: {field: each.ts, format: epoch_ms}, "
    "metrics: {temperature: each.value, power: by_name.a}",
    "format: protobuf, schema: ./plant.proto, message: plant.Batch, device: {field: gateway}, each: list, time: {field: each.ts}, "
    "metric: {field: each.metric}, value: {field: each.by_name.x}",
]


def put(folder: Path, source: str, way: str = KAFKA) -> None:
    """The only source, and schemas beside the conf folder."""
    texts = {"reading.avsc": json.dumps(READING), "batch.avsc": json.dumps(BATCH), "plant.proto": PROTO3, "old.proto": PROTO2}
    texts |= {"broken.avsc": "{", "odd.avsc": '{"type": "recrd", "name": "x"}', "odd.proto": 'syntax = "proto3"; message A {'}
    texts["loop.avsc"] = '{"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}'
    for name, text in texts.items():
        (folder.resolve().parent / name).write_text(text)
    (folder / "sources.yml").write_text(f"sources:\n  plant: {{{way}, {source}}}\n")


@pytest.mark.parametrize("source", SOUND)
def test_what_can_be_read_is_no_mistake(source: str, folder: Path) -> None:
    put(folder, source)
    assert mistakes_of(folder) == []


REFUSED = {
    f"format: avro, {LONG}": "plant does not say by which schema its payloads are written; set schema (a file) or registry",
    f"{AVRO}, registry: {{url: 'http://r'}}, {LONG}": "plant sets schema and registry; keep one of them",
    f"{AVRO}, message: plant.Reading, {LONG}": "plant.message is for protobuf, but plant.format is avro; remove it",
    f"format: json, schema: ./reading.avsc, {LONG}": "plant.schema is for avro and protobuf, but plant.format is json; remove it",
    f"{PROTO.replace(', message: plant.Reading', '')}, {ISO}": "plant does not say which message of the schema it sends; set message,",
    "format: protobuf, registry: {url: 'http://r'}, message: a.B, " + ISO: "plant.message is told by each payload of a registry; remove",
    f"{PROTO.replace('plant.Reading', 'plant.Readin')}, {ISO}": "plant.message is 'plant.Readin', which the schema does not declare; did",
    f"{AVRO.replace('reading', 'gone')}, {LONG}": "gone.avsc', which cannot be read (No such file or directory); name the file of the",
    f"{AVRO.replace('reading', 'broken')}, {LONG}": "plant.schema is no JSON (Expecting property name",
    f"{AVRO.replace('reading', 'odd')}, {LONG}": "plant.schema is no Avro schema (Undefined type: recrd); correct it",
    f"{AVRO.replace('reading', 'loop')}, {LONG}": "plant.schema is recursive, so its depth has no limit; write one that is not",
    f"{PROTO.replace('plant.proto', 'odd.proto')}, {ISO}": "plant.schema is not accepted by protoc (odd.proto:1:31: ",
    f"{PROTO.replace('plant.proto', 'reading.avsc')}, {ISO}": "plant.schema is no FileDescriptorSet; name a .proto file, or what protoc",
    f"{AVRO}, {LONG.replace('field: device', 'field: devise')}": "is 'devise', which the schema does not have; did you mean 'device'?",
    f"{AVRO}, {LONG.replace('field: device', 'field: device.id')}": "plant.device.field is 'device.id', but 'device' is one value",
    f"{AVRO}, {ISO}": "plant.time.field is 'ts', a timestamp-millis in the schema, but its format is iso; set `format: epoch_ms`",
    f"{PROTO}, {LONG}": "a google.protobuf.Timestamp in the schema, but its format is epoch_ms; set `format: iso`",
    f"{PROTO}, {ISO.replace('field: value', 'field: kinds')}": "plant.value.field is 'kinds', which is a list",
    f"{PROTO}, {ISO.replace('field: value', 'field: other')}": "'other', which is no single value; it has device, metric, value, ts",
    f"{PROTO}, each: text, {ISO.replace('field: value', 'field: each.x')}": "plant.each is 'text', which is no list; name a list",
    f"format: sparkplug_b, {SPARKPLUG}, value: {{field: each.valeu}}": "plant.value.field is 'each.valeu', which the schema does not",
    f"format: avro, registry: {{url: 'http://me:canary@r'}}, {LONG}": "plant.registry.url holds a password in plain text; write",
    f"format: avro, registry: {{url: 'registry:8081'}}, {LONG}": (
        "plant.registry.url is not an address that begins with https:// or http://; write one"
    ),
    f"format: avro, registry: {{url: 'http://r', password: canary}}, {LONG}": "plant.registry.password is a secret in plain text; write",
    f"{AVRO}, separator: ';', {LONG}": "plant.separator is for csv, but plant.format is avro; remove it",
}


@pytest.mark.parametrize("source", REFUSED)
def test_a_mistake_is_one_sentence_with_the_way_out(source: str, folder: Path) -> None:
    put(folder, source)
    (line,) = mistakes_of(folder)
    assert REFUSED[source] in line
    assert "canary" not in line


def test_files_and_lines_hold_no_binary_messages(folder: Path) -> None:
    put(folder, f"{AVRO}, {LONG}", "path: ./landing")
    assert ["which is for messages; let them come by kafka, mqtt, kinesis, http or tcp" in line for line in mistakes_of(folder)] == [True]
    put(folder, f"{AVRO}, {LONG}", "tcp: {port: 9000}")
    (line,) = mistakes_of(folder)
    assert line.endswith("plant.tcp.framing is lines, but events of avro may hold line feeds; set plant.tcp.framing to length")
    put(folder, f"{AVRO}, {LONG}", "tcp: {port: 9000, framing: length}")
    assert mistakes_of(folder) == []


def test_a_conf_holds_the_schema_itself_and_no_secret(folder: Path) -> None:
    put(folder, SOUND[0])
    schemas = load(folder).sources["plant"].payload_format.schemas
    assert json.loads(schemas[DECLARED][0]) == READING
    assert len(schemas) == 2
    put(folder, SOUND[3])
    payload_format = load(folder).sources["plant"].payload_format
    assert (payload_format.schemas, payload_format.registry) == (
        {},
        Registry("http://localhost:8081", "${env:A}", f"${{file:{Path.cwd()}/b}}"),
    )


def test_what_protoc_made_of_a_file_is_the_same_as_the_file(tmp_path: Path) -> None:
    from base64 import b64decode

    (tmp_path / "plant.proto").write_text(PROTO3)
    of_text = schemas_of("protobuf", tmp_path / "plant.proto")
    (tmp_path / "plant.desc").write_bytes(b64decode(of_text[DECLARED][0]))
    assert schemas_of("protobuf", tmp_path / "plant.desc") == of_text


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "array", "items": "null"}, "elements are empty"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, "elements are empty"),
        ({"type": "map", "values": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}}, "elements are empty"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, "a decimal without a precision"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "gone.Name"}]}, "is no Avro schema"),
        ([], None),
        ({"type": "array", "items": ["null"]}, None),
    ],
)
def test_a_schema_by_which_few_bytes_could_claim_anything_is_refused(schema: object, told: str | None) -> None:
    if told is None:
        avro_schemas((json.dumps(schema),))
    else:
        with pytest.raises(SchemaError, match=told):
            avro_schemas((json.dumps(schema),))


def test_a_file_that_is_imported_lies_below_the_others() -> None:
    with pytest.raises(SchemaError, match="lies outside"):
        of_texts({"../evil.proto": "", "main.proto": 'syntax = "proto3";'}, "main.proto")
