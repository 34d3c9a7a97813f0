"""What a registry tells is kept before events are handed over: once, for ever, and nothing where it gives no answer.

The registry stands in for a real one, but for the last test, which has Apicurio.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import HttpSettings
from orchestration.connectors.sources.schemas import RegistryClient, Schemas
from orchestration.connectors.sources.source import SourceDownError
from orchestration.storage.payload_formats import payload_formats, remember
from silver.spec import PayloadFormat, Registry
from tests.binary_formats import LONG, PROTO3, READING, avro, framed, message_class, shapes
from tests.lakes import conf
from tests.orchestration.audit.verify.test_measurements import events_of
from tests.registry import Apicurio, StandIn, stand_in
from tests.silver.test_measurements import of_silver, of_verify

SECRET = "canary-4711"
ROW = {"device": "oven", "metric": "power", "value": 1.5, "ts": 1767225601000}
KIND = {"type": "enum", "name": "Kind", "namespace": "plant", "symbols": ["temperature", "power"]}


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as running:
        running.schemas[7] = {"schema": json.dumps(READING)}
        yield running


def lake(folder: Path, registry: Registry, name: str = "avro of a registry") -> Conf:
    shape = replace(shapes()[name], registry=registry, schemas={})
    made = conf(folder, sources={"plant": Source("plant", shape, HttpSettings(port=0))})
    remember(made)
    return made


def learn(made: Conf, *payloads: bytes | None) -> Schemas:
    schemas = Schemas.of(made, "plant")
    assert schemas is not None
    schemas.learn(pa.chunked_array([pa.array(payloads, pa.binary())]))
    return schemas


def known(made: Conf) -> dict[str, tuple[str, ...]]:
    return payload_formats(made)["plant"].schemas


def test_for_a_preview_ids_are_asked_for_and_nothing_is_kept(tmp_path: Path, registry: StandIn) -> None:
    made = lake(tmp_path, Registry(registry.url))
    schemas = Schemas.of(made, "plant")
    assert schemas is not None
    assert [*schemas.known(pa.chunked_array([[framed(7, b"")]]))] == ["7"]
    assert known(made) == {}


def test_each_id_is_asked_for_once_and_kept_also_when_the_source_or_the_address_is_gone(tmp_path: Path, registry: StandIn) -> None:
    made = lake(tmp_path, Registry(registry.url))
    odd = [None, b"", b"\0\0\0", b"\1\0\0\0\7", b"rubbish"]
    for _ in range(2):
        told = learn(made, *odd, framed(7, b""), framed(7, b"x"), framed(9, b""))
    assert registry.asked == ["/schemas/ids/7", "/schemas/ids/9"]
    assert known(made) == {"7": (json.dumps(READING),), "9": ()}
    assert told.notices == []
    elsewhere = replace(made, sources={"plant": replace(made.sources["plant"], payload_format=lake_shape(made, "http://127.0.0.1:1"))})
    remember(elsewhere)
    assert known(elsewhere) == known(replace(made, sources={})) == {"7": (json.dumps(READING),), "9": ()}


def lake_shape(made: Conf, url: str) -> PayloadFormat:
    return replace(made.sources["plant"].payload_format, registry=Registry(url))


def test_an_id_that_nobody_knows_is_told_and_asked_for_again_by_a_retry(tmp_path: Path, registry: StandIn) -> None:
    made = lake(tmp_path, Registry(registry.url))
    told = learn(made, framed(9, b""))
    assert [(notice.what, notice.facts["schema"]) for notice in told.notices] == [("schema unknown", "9")]
    registry.schemas[9] = registry.schemas[7]
    learn(made, framed(9, b""))
    assert known(made) == {"9": ()}
    again = Schemas.of(made, "plant")
    assert again is not None
    again.ask_again()
    assert known(made) == {"9": (json.dumps(READING),)}


def test_payloads_that_are_none_make_no_flood_of_requests_and_hide_no_schema(
    tmp_path: Path, registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.connectors.sources.schemas.MAX_ASKED", 10)
    made = lake(tmp_path, Registry(registry.url))
    learn(made, *(framed(1_000 + n, b"") for n in range(5_000)), framed(7, b""), framed(7, b""))
    assert len(registry.asked) == 10
    assert known(made)["7"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, {}), "it answers 500"),
        ((401, {}), "it answers 401 to /schemas/ids/7; see username and password of the registry in sources.yml"),
        ((404, {}), "it answers 404"),  # another server, or a path that is wrong
        ((302, {}), "it answers 302"),
        ((200, {}), "its answer to /schemas/ids/7 has no schema"),
        ((200, {"schema": 5}), "its answer to /schemas/ids/7 has no schema"),
    ],
)
def test_no_answer_is_a_source_that_is_down_and_keeps_nothing(
    answer: tuple[int, dict[str, str]], reason: str, tmp_path: Path, registry: StandIn
) -> None:
    made = lake(tmp_path, Registry(registry.url))
    registry.answer = answer
    with pytest.raises(SourceDownError, match="source plant cannot be read, as its registry at") as down:
        learn(made, framed(7, b""))
    assert reason in str(down.value)
    assert known(made) == {}


def test_a_registry_that_is_not_there_is_a_source_that_is_down(tmp_path: Path) -> None:
    made = lake(tmp_path, Registry("http://127.0.0.1:1"))
    with pytest.raises(SourceDownError, match="Connection refused"):
        learn(made, framed(7, b""))


def test_name_and_password_are_sent_and_are_nowhere_else(tmp_path: Path, registry: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_OF_REGISTRY", "me")
    (tmp_path / "password").write_text(SECRET)
    made = lake(tmp_path, Registry(registry.url, "${env:USER_OF_REGISTRY}", f"${{file:{tmp_path / 'password'}}}"))
    learn(made, framed(7, b""))
    assert registry.headers == ["Basic bWU6Y2FuYXJ5LTQ3MTE="]
    registry.answer = 401, {}
    with pytest.raises(SourceDownError) as down:
        learn(made, framed(8, b""))
    assert SECRET not in str(down.value) + repr(made) + (made.lake.local / "sources.json").read_text()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"schema": "{}", "schemaType": "JSON"}, "it is JSON, but the format of the source is avro"),
        ({"schema": "{"}, "is no JSON"),
        ({"schema": '{"type": "array", "items": "null"}'}, "elements are empty"),
        ({"schema": '"int"', "references": [{"name": "a", "subject": "a", "version": 1}]}, "the registry does not know a, which it needs"),
    ],
)
def test_a_schema_that_cannot_be_used_makes_its_events_unreadable_and_says_why(
    answer: dict[str, str], told: str, tmp_path: Path, registry: StandIn
) -> None:
    made = lake(tmp_path, Registry(registry.url))
    registry.schemas[8] = answer
    (notice,) = learn(made, framed(8, b"")).notices
    assert told in notice.facts["reason"]
    assert known(made) == {"8": ()}


def test_schemas_that_others_need_come_with_them(registry: StandIn, tmp_path: Path) -> None:
    fields = [{"name": "metric", "type": "plant.Kind"}, *(field for field in READING["fields"] if field["name"] != "metric")]
    needing = {"type": "record", "name": "Needing", "fields": fields}
    reference = {"name": "plant.Kind", "subject": "kinds/of plant", "version": 2}
    registry.versions["kinds%2Fof%20plant/versions/2"] = {"schema": json.dumps(KIND), "references": [reference]}  # of itself: ends
    registry.schemas[8] = {"schema": json.dumps(needing), "references": [reference]}
    made = lake(tmp_path, Registry(registry.url))
    learn(made, framed(8, b""))
    whole = {**needing, "fields": [{"name": "metric", "type": KIND}, *fields[1:]]}
    events, shape = events_of([framed(8, avro(whole, ROW))]), payload_formats(made)["plant"]
    assert of_silver(events, shape) == of_verify(events, shape)
    assert "'power', 1.5" in of_silver(events, shape)[0]


def test_files_of_protobuf_that_others_import_come_with_them(registry: StandIn, tmp_path: Path) -> None:
    registry.versions["plant/versions/1"] = {"schema": PROTO3, "schemaType": "PROTOBUF"}
    text = 'syntax = "proto3"; import "a/plant.proto"; message Other {} message Wrapped { plant.Reading device = 1; string metric = 2; }'
    references = [{"name": "a/plant.proto", "subject": "plant", "version": 1}]
    registry.schemas[8] = {"schema": text, "schemaType": "PROTOBUF", "references": references}
    made = lake(tmp_path, Registry(registry.url), "protobuf of a registry")
    learn(made, framed(8, b""))
    inner = message_class("plant", "Reading")(device="oven").SerializeToString()
    events, shape = events_of([framed(8, b"\x0a" + bytes([len(inner)]) + inner + b"\x12\x01m", 1)]), payload_formats(made)["plant"]
    shape = replace(shape, **LONG)
    assert of_silver(events, shape) == of_verify(events, shape)
    assert "'m'" in of_silver(events, shape)[0]


def test_a_client_asks_with_the_type_of_a_registry(registry: StandIn) -> None:
    assert RegistryClient("plant", "R", registry.url + "/", None).schema(7, "avro") == (json.dumps(READING),)
    assert registry.headers == [None]


@pytest.mark.slow
def test_schemas_of_avro_and_protobuf_with_references_are_read_and_outlive_the_registry(tmp_path: Path) -> None:
    with Apicurio(tmp_path).running() as registry:
        registry.register("kind", json.dumps(KIND))
        needing = {"type": "record", "name": "Needing", "fields": [{"name": "metric", "type": "plant.Kind"}, *READING["fields"][2:]]}
        ids = [
            registry.register("reading", json.dumps(READING)),
            registry.register("needing", json.dumps(needing), references=({"name": "plant.Kind", "subject": "kind", "version": 1},)),
        ]
        made = lake(tmp_path / "avro", Registry(registry.url))
        inner = {**needing, "fields": [{"name": "metric", "type": KIND}, *READING["fields"][2:]]}
        payloads = [framed(ids[0], avro(READING, ROW)), framed(ids[1], avro(inner, ROW)), framed(12345, b"")]
        told = learn(made, *payloads)
        assert [notice.facts["schema"] for notice in told.notices] == ["12345"]

        registry.register("file", PROTO3, "PROTOBUF")
        text = 'syntax = "proto3"; import "plant.proto"; message Wrapped { plant.Reading device = 1; string metric = 2; double value = 3; }'
        references = ({"name": "plant.proto", "subject": "file", "version": 1},)
        other = registry.register("wrapped", text, "PROTOBUF", references)
        of_protobuf = lake(tmp_path / "protobuf", Registry(registry.url), "protobuf of a registry")
        device = message_class("plant", "Reading")(device="oven").SerializeToString()
        wrapped = framed(other, b"\x0a" + bytes([len(device)]) + device + b"\x12\x05power", 0)
        learn(of_protobuf, wrapped)
        registry.kill()
        learn(made, *payloads)
        with pytest.raises(SourceDownError, match="Connection refused"):
            learn(made, framed(777, b""))
    for lake_of, came in ((made, payloads), (of_protobuf, [wrapped])):
        shape, events = payload_formats(lake_of)["plant"], events_of(came)
        rows = of_silver(events, shape)
        assert rows == of_verify(events, shape)
        assert sum("'power'" in row for row in rows) == len([text for text in known(lake_of).values() if text])
