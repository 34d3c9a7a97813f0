"""A real registry (Apicurio) and its schemas: what it tells is read, and is needed no longer once it was told."""

import json
from pathlib import Path

import pytest

from orchestration.connectors.sources.source import SourceDownError
from orchestration.storage.payload_formats import payload_formats
from silver.spec import Registry
from tests.binary_formats import PROTO3, READING, avro, framed, message_class
from tests.orchestration.audit.verify.test_measurements import events_of
from tests.orchestration.connectors.sources.test_schemas import known, lake, learn
from tests.registry import Apicurio
from tests.silver.test_measurements import of_silver, of_verify

ROW = {"device": "oven", "metric": "power", "value": 1.5, "ts": 1767225601000}
KIND = {"type": "enum", "name": "Kind", "namespace": "plant", "symbols": ["temperature", "power"]}


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
    for lake_of, of in ((made, payloads), (of_protobuf, [wrapped])):
        shape, events = payload_formats(lake_of)["plant"], events_of(of)
        rows = of_silver(events, shape)
        assert rows == of_verify(events, shape)
        assert sum("'power'" in row for row in rows) == len([text for text in known(lake_of).values() if text])
