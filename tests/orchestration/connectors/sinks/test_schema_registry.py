"""What a schema registry is asked, and what stands before each value. The registry is a stand-in: Confluent's is in no package registry."""

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from orchestration.conf.sink_settings import TopicSettings
from orchestration.conf.transport_settings import RegistrySettings
from orchestration.connectors.sinks.kafka_messages import writer_of
from orchestration.connectors.sinks.sink import Batch
from orchestration.connectors.sinks.sink_states import SinkPosition
from orchestration.errors import TidemarkError
from tests.http_server import Answer, Asked, http_server

CANARY = "canary-0815-secret"
ROWS = pa.table({"device_id": ["oven", None], "value": [1.5, None]})
BATCH = Batch("out", "marts.daily", "1", None, SinkPosition(0, "id", 0, 0), True, ROWS.schema, ())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the stand-in was asked last; `answer`: its code and its body."""
    known: dict[str, Any] = {"answer": (200, b'{"id": 258}')}

    def answer(asked: Asked) -> Answer:
        schema = json.loads(json.loads(asked.body)["schema"])
        known.update(path=asked.path, schema=schema, authorization=asked.headers["Authorization"])
        code, body = known["answer"]
        return code, body

    with http_server(answer) as url:
        monkeypatch.setenv("REGISTRY_PASSWORD", CANARY)
        known["settings"] = RegistrySettings(f"{url}/", "plant", "${env:REGISTRY_PASSWORD}")
        yield known


def values(registry: RegistrySettings) -> list[bytes]:
    settings = TopicSettings("localhost:1", "daily", format="avro", key=("device_id",), registry=registry)
    return [*writer_of(settings, BATCH)(ROWS)]


def test_a_stand_in_of_a_registry_is_asked_for_the_number_of_the_schema_which_stands_before_each_value(asked: dict[str, Any]) -> None:
    found = values(asked["settings"])
    assert asked["path"] == "/subjects/daily-value/versions"
    assert asked["authorization"] == f"Basic {base64.b64encode(f'plant:{CANARY}'.encode()).decode()}"
    assert {value[:5] for value in found} == {b"\x00\x00\x00\x01\x02"}
    schema = fastavro.parse_schema(asked["schema"])
    assert [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in found] == ROWS.to_pylist()


@pytest.mark.parametrize(
    ("answer", "said"), [((409, b"{}"), "answered 409 for subject daily-value"), ((200, b"no JSON"), "gave an invalid answer")]
)
def test_a_stand_in_of_a_registry_that_refuses_is_told_without_its_address(asked: dict[str, Any], answer: Any, said: str) -> None:
    asked["answer"] = answer
    with pytest.raises(TidemarkError, match=said) as error:
        values(asked["settings"])
    assert not any(text in str(error.value) for text in (CANARY, "127.0.0.1"))


def test_a_column_that_avro_cannot_hold_is_told() -> None:
    odd = pa.table({"a": pa.array([], pa.struct([("b", pa.int64())]))})
    batch = Batch("out", "marts.daily", "1", None, BATCH.position, True, odd.schema, ())
    with pytest.raises(TidemarkError, match=r"column a of marts.daily is struct<b: int64>, for which Avro has no type here"):
        writer_of(TopicSettings("localhost:1", "daily", format="avro", key=("a",)), batch)
    named = replace(batch, schema=pa.schema([("a b", pa.int64())]))
    with pytest.raises(TidemarkError, match=r"marts.daily has a column 'a b', a name that Avro does not allow"):
        writer_of(TopicSettings("localhost:1", "daily", format="avro", key=("a b",)), named)
