"""`decode` of a source: each decoder is there and takes its arguments, and a function of the user's is part of the conf."""

from pathlib import Path

import pytest

from orchestration.conf.changes import changes
from orchestration.conf.load import load
from orchestration.conf.texts import texts_of, with_settings
from tests.orchestration.conf.conftest import mistakes_of

OWN = "def pairs(payload, message, separator):\n    return []\n"


SOUND = [
    "text",
    "[{base64: Body}, senml]",
    "{by_key: {match: 't.*', field: s}}",
    "[lines, {columns: {start: t0, step: 0.5}}]",
    "{flatten: a.b}",
    "{own:pairs: {separator: ';'}}",
    "[{influx: {precision: s}}, {by_key: fields}]",
    "{join: {into: name, fields: [host, tags.cpu], separator: /}}",
]


def source(folder: Path, decode: str, *more: str, own: str = OWN) -> None:
    settings = "    device: {constant: oven}\n    time: {field: time}\n    metrics: [temperature]\n"
    lines = "".join(f"    {line}\n" for line in more or ("path: ./landing",))
    (folder / "own.py").write_text(own)
    (folder / "sources.yml").write_text(f"sources:\n  plant:\n{lines}    decode: {decode}\n{settings}")


@pytest.mark.parametrize("decode", SOUND)
def test_decoders_with_their_arguments_are_no_mistake(decode: str, folder: Path) -> None:
    source(folder, decode)
    assert mistakes_of(folder) == []
    assert load(folder).sources["plant"].payload_format.format == "json"


@pytest.mark.parametrize(
    ("decode", "mistake"),
    [
        ("senm", "4: plant.decode names 'senm', which is no decoder; did you mean 'senml'?"),
        ("[array, xyz]", "4: plant.decode names 'xyz', which is no decoder; they are array, avro, base64, by_key,"),
        ("{join: {into: name, fields: host}}", "4: plant.decode has join, whose fields is 'host', but must be a list of texts"),
        ("{by_key: {mach: 't.*'}}", "4: plant.decode has by_key, which has no argument 'mach'; did you mean 'match'?"),
        ("{by_key: {match: '('}}", "4: plant.decode has by_key, whose match is '(', which is no regular expression"),
        ("{columns: {step: [1]}}", "4: plant.decode has columns, whose step is"),
        ("{influx: {precision: h}}", "4: plant.decode has influx, whose precision is 'h', but must be one of s, ms, us, ns"),
        ("flatten", "4: plant.decode has flatten, which needs field; write for example `flatten: {field: ..}`"),
        ("{base64: a..b}", "4: plant.decode has base64, whose field is 'a..b'; write names with single dots between them"),
        ("own:pars", "4: plant.decode names 'own:pars', but own.py has no function 'pars'; did you mean 'pairs'?"),
        ("own:pairs", "4: plant.decode has own:pairs, which needs separator; write for example `own:pairs: {separator: ..}`"),
        ("gone:f", "4: plant.decode names 'gone:f', but the conf folder has no gone.py; put it there"),
        ("gzip", "4: plant.decode is gzip, which is for messages; let them come by kafka, mqtt, kinesis, http or tcp"),
        ("avro", "2: plant does not say by which schema its payloads are written; set schema (a file) or registry"),
        ("[5]", "4: plant.decode has 5; write the name of a decoder, `name: field`, or `name: {argument: value}`"),
    ],
)
def test_a_mistake_in_a_decoder_has_a_line_and_a_hint(decode: str, mistake: str, folder: Path) -> None:
    source(folder, decode)
    assert any(mistake in line for line in mistakes_of(folder)), mistakes_of(folder)


def test_code_that_cannot_be_imported_is_a_mistake(folder: Path) -> None:
    source(folder, "own:pairs", own="def pairs(:")
    (mistake,) = mistakes_of(folder)
    assert mistake.endswith("but own.py cannot be imported: SyntaxError: invalid syntax (own.py, line 1)")


def test_decoders_make_objects_so_a_source_of_csv_has_none(folder: Path) -> None:
    source(folder, "array", "path: ./landing", "format: csv", "header: true")
    (mistake,) = mistakes_of(folder)
    assert "plant.format is csv, but plant has decoders; they make objects, which are read as JSON; remove it" in mistake


def test_a_registry_tells_schemas_of_payloads_that_begin_with_their_id(folder: Path) -> None:
    source(folder, "[gzip, avro]", "kafka: {servers: 'localhost:9092', subscribe: [a]}", "registry: {url: 'http://localhost:8081'}")
    (mistake,) = mistakes_of(folder)
    assert "plant.registry is for payloads that begin with the id of their schema, but other decoders come first; set schema" in mistake
    source(folder, "avro", "kafka: {servers: 'localhost:9092', subscribe: [a]}", "registry: {url: 'http://localhost:8081'}")
    assert mistakes_of(folder) == []


def test_the_lake_keeps_the_source_of_a_function_and_a_changed_one_is_told(folder: Path) -> None:
    source(folder, "own:lines_of", own="def lines_of(payload):\n    return []\n")
    before = load(folder)
    assert with_settings(before, texts_of(before)).sources["plant"].payload_format == before.sources["plant"].payload_format
    (folder / "own.py").write_text("def lines_of(payload):\n    return [{}]\n")
    assert before.sources["plant"].payload_format.code == {"own": "def lines_of(payload):\n    return []\n"}
    (change,) = changes(texts_of(before), texts_of(load(folder)))
    assert change.setting == "plant.code.own"
    assert "with the digest" in str(change)
    assert change.consequence.value == "holds for what comes from now on, and for all after `tidemark replay`"
