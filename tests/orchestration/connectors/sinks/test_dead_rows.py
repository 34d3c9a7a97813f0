"""A sink goes on behind a row that its target refuses for what it holds: the row is in ops.dead_rows, and is sent again when it can be."""

import csv
import json
import math
import random
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import NewTopic
from deltalake import write_deltalake

from orchestration.connectors.sinks.all import sinks
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow, State, dead_rows
from orchestration.connectors.sinks.sink_states import Request, request
from orchestration.crash import Point
from orchestration.errors import TidemarkError
from orchestration.jobs.maintenance import retire_records
from orchestration.storage.commit import append_rows
from orchestration.storage.marts import MARTS, Build
from tests.broker import Broker
from tests.http_server import receiving
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, NOW, READINGS, SmallLake, reading, window
from tests.orchestration.connectors.sinks.test_kafka import kept
from tests.orchestration.connectors.sinks.test_kafka import lake_for as lake_of_topic
from tests.orchestration.connectors.sinks.test_postgres import TO, assert_equal, lake_for

LONG = "".join(random.Random(1).choices(ascii_letters, k=5000))


def dead(lake: SmallLake) -> dict[str, str]:
    """Reasons by device, and of readings by their row."""
    (name,) = lake.conf.sinks
    rows = {**dead_rows(lake.conf.lake, name)}
    return {str(json.loads(key).get("device_id", json.loads(key).get("bronze_row"))): row.reason for key, row in rows.items()}


def log(lake: SmallLake) -> list[DeadRow]:
    return DEAD_ROWS.rows(lake.conf.lake)


@pytest.mark.postgres
def test_a_row_that_postgres_refuses_is_dead_and_comes_when_it_is_amended_or_sent_again(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    rows = [window(0, number, float(number), device=f"oven-{number}") for number in range(40)]
    lake.write(AGGREGATES, rows).pin(0)
    lake.step()
    postgres.rows("alter table received add constraint narrow check (value < 50)")
    bad = [window(1, number, 60.0 + number, device=f"oven-{number}") for number in (41, 43, 44)]
    lake.write(AGGREGATES, [window(1, 42, 1.0, device="oven-42"), *bad]).pin(1)
    sent = lake.step()
    assert sent is not None and (sent.rows, sent.dead) == (1, 3)
    reason = 'Postgres answered: new row for relation "tidemark_chunk" violates check constraint "narrow".'
    assert {device: text.replace('"received"', '"tidemark_chunk"') for device, text in dead(lake).items()} == {
        f"oven-{number}": reason for number in (41, 43, 44)
    }
    assert log(lake)[0].row_key == '{"device_id":"oven-41","metric":"power","window_end":"2026-01-05T07:00:00Z"}'
    assert lake.step() is None
    lake.write(AGGREGATES, [window(1, 41, 2.0, revision=1, device="oven-41")]).pin(2)
    lake.step()
    assert {*dead(lake)} == {"oven-43", "oven-44"}
    postgres.rows("alter table received drop constraint narrow")
    request(lake.conf.lake, "warehouse", Request.RESEND, NOW)
    sent = lake.step()
    assert sent is not None and (sent.rows, sent.dead, sent.is_complete) == (2, 0, False)
    assert (dead(lake), lake.step()) == ({}, None)
    assert_equal(postgres, lake, AGGREGATES, lake.pin(2))
    assert [row.state for row in log(lake)] == [State.DEAD] * 3 + [State.OVER] * 3


@pytest.mark.postgres
@pytest.mark.parametrize("is_filled", [False, True])
def test_each_row_that_postgres_cannot_hold_is_dead_whether_it_comes_first_or_later(
    tmp_path: Path, postgres: PostgresServer, is_filled: bool
) -> None:
    lake = lake_for(tmp_path, READINGS)
    if is_filled:
        lake.write(READINGS, [reading(0, 0)]).pin(0)
        lake.step()
    early = datetime(1, 1, 1, tzinfo=UTC)
    odd = {"nul": {"q": "a\0b"}, "escape": {"q": "\\u0000", "\0": '\\"\\u0000\\'}, "null": {"q": None}}
    rows = [reading(1, number, device_id=name, attributes=attributes) for number, (name, attributes) in enumerate(odd.items())]
    rows += [reading(1, 10, device_id="early", event_time=early), reading(1, 11, math.inf, device_id="wide", unit="u" * 300_000)]
    snapshot = lake.write(READINGS, rows).pin(1)
    early_micros = pa.array([-70_000_000_000_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = lake.store.tables[READINGS].location
    whole = pa.Table.from_pylist([reading(1, 12, device_id="before year 1")], schema=lake.store.tables[READINGS].schema)
    append_rows(table, whole.set_column(whole.schema.get_field_index("event_time"), "event_time", early_micros))
    lake.pin(1)
    lake.step()
    assert {*dead(lake)} == {"12"}
    attributes = dict(postgres.rows("select device_id, attributes from received where attributes is not null"))
    assert attributes == {"nul": {"q": "a\ufffdb"}, "escape": {"q": "\\u0000", "\ufffd": '\\"\\u0000\\'}, "null": {"q": None}}
    assert postgres.rows("select count(*) from received") == [(5 + is_filled,)]
    assert snapshot.bronze_batch == 1


@pytest.mark.postgres
def test_a_key_that_no_index_holds_and_a_column_that_is_too_narrow_or_must_not_be_null_are_dead(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [window(0, 0, 1.0), window(0, 1, 1.0, device=LONG)]).pin(0)
    lake.step()
    assert {device[:10]: text.split(" row size")[0] for device, text in dead(lake).items()} == {LONG[:10]: "Postgres answered: index"}
    postgres.rows("alter table received alter device_id type varchar(5), alter value set not null")
    lake.write(AGGREGATES, [window(1, 2, 1.0), window(1, 3, 1.0, device="oven-4711"), window(1, 4, None)]).pin(1)
    lake.step()
    assert {*dead(lake)} == {LONG, "oven-4711", "oven"}
    assert dead(lake)["oven-4711"] == "Postgres answered: value too long for type character varying(5)."
    assert 'null value in column "value"' in dead(lake)["oven"]
    assert postgres.rows("select count(*) from received") == [(2,)]


@pytest.mark.postgres
def test_what_postgres_refuses_for_all_rows_stops_the_sink_and_kills_no_row(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [window(0, 0, 1.0)]).pin(0)
    lake.step()
    postgres.rows("create function away() returns trigger language plpgsql as 'begin perform * from nowhere; end'")
    postgres.rows("create trigger away before insert on received for each row execute function away()")
    lake.write(AGGREGATES, [window(1, 1, 1.0)]).pin(1)
    with pytest.raises(TidemarkError, match='Postgres answered: relation "nowhere" does not exist'):
        lake.step()
    assert log(lake) == []
    postgres.rows("drop trigger away on received")
    assert lake.step() is not None


@pytest.mark.postgres
def test_rows_are_noted_before_the_target_has_the_batch_and_a_repeat_counts_them_once(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [window(0, 0, 1.0), window(0, 1, 1.0, device=LONG)]).pin(0)

    def kill(passed: Point) -> None:
        if passed is Point.DEAD_ROWS_NOTED:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("orchestration.crash.point", kill)
        lake.step()
    assert (len(dead(lake)), postgres.rows("select to_regclass('received')")) == (1, [(None,)])
    lake.step()
    assert (len(dead(lake)), len(log(lake))) == (1, 1)


@pytest.mark.postgres
def test_a_column_that_the_table_gets_is_added_and_rows_from_before_have_null(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [window(0, 0, 1.0)]).pin(0)
    lake.step()
    postgres.rows("alter table received drop column latest, drop column min")
    last = lake.write(AGGREGATES, [window(1, 1, 2.0), window(1, 0, 3.0, revision=1)]).pin(1)
    lake.step()
    assert_equal_by_name(postgres, lake)
    assert last.bronze_batch == 1


def assert_equal_by_name(postgres: PostgresServer, lake: SmallLake) -> None:
    assert postgres.rows("select value, min, latest from received order by window_end") == [(3.0, 3.0, 3.0), (2.0, 2.0, 2.0)]


def csv_lake(folder: Path, table: str, **more: str) -> SmallLake:
    return SmallLake(folder, {"export": {"table": table, "files": {"path": str(folder / "export"), "format": "csv", **more}}})


def csv_rows(folder: Path) -> list[dict[str, str]]:
    return [row for file in (folder / "export").rglob("*.csv") for row in csv.DictReader(file.read_text().splitlines())]


def test_bytes_come_as_base64_by_choice(tmp_path: Path) -> None:
    row = {"broken_rules": ["a"], "bronze_batch": 0, "part": 0}
    lake = csv_lake(tmp_path, "silver.quarantine", binary="base64")
    lake.write("silver.quarantine", [row | {"payload": bytes(range(256)), "bronze_row": 0}, row | {"payload": None, "bronze_row": 1}]).pin(
        0
    )
    lake.step()
    sent = {row["bronze_row"]: row["payload"] for row in csv_rows(tmp_path)}
    assert (b64decode(sent["0"]), sent["1"], dead_rows(lake.conf.lake, "export")) == (bytes(range(256)), "", {})


def test_of_a_mart_the_rows_that_csv_cannot_hold_are_dead_and_a_build_that_is_right_ends_that(tmp_path: Path) -> None:
    lake = csv_lake(tmp_path, "marts.odd")
    lake.pin(0)
    for build, payload in ((1, b"b\xff"), (2, b"b")):
        write_deltalake(lake.conf.lake.local / "marts" / "odd", pa.table({"payload": [b"a", payload, b"c"]}), mode="overwrite")
        MARTS.append(lake.conf.lake, [Build(build, NOW, 0, 1, {"marts.odd": build - 1})])
        lake.step()
        assert sorted(row["payload"] for row in csv_rows(tmp_path)) == ["a", *(["b"] if build == 2 else []), "c"]
        rows = dead_rows(lake.conf.lake, "export")
        assert {key: row.reason for key, row in rows.items()} == ({} if build == 2 else {'{"payload":"b\\\\xff"}': "Invalid UTF8 payload"})


def test_a_row_that_is_too_large_for_a_topic_is_dead_and_the_others_come(tmp_path: Path, running: Broker, topic: str) -> None:
    small = f"{topic}-small"
    running.admin.create_topics([NewTopic(small, 1, 1, config={"max.message.bytes": "3000"})])[small].result()
    lake = lake_of_topic(tmp_path, running, small)
    devices = [f"oven-{number}" if number not in {7, 23} else f"{LONG}-{number}" for number in range(200)]
    lake.write(AGGREGATES, [window(0, number, 1.0, device=device) for number, device in enumerate(devices)]).pin(0)
    sent = lake.step()
    assert sent is not None and (sent.rows, sent.dead) == (198, 2)
    assert len(kept(running, small)) == 198
    assert {*dead(lake)} == {devices[7], devices[23]}
    assert "a row is too large for it; raise `max.message.bytes` there" in dead(lake)[devices[7]]


def test_a_row_that_is_too_large_for_the_client_is_dead(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_of_topic(tmp_path, running, topic, READINGS)
    lake.write(READINGS, [reading(0, 0), reading(0, 1, zone="z" * 1_100_000), reading(0, 2)]).pin(0)
    sent = lake.step()
    assert sent is not None and (sent.rows, sent.dead) == (2, 1)
    assert len(kept(running, topic)) == 2


@pytest.mark.parametrize("code", [413, 422])
def test_rows_whose_content_a_webhook_refuses_are_dead_and_others_come_once(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as receiver:
        monkeypatch.setenv("URL", receiver.url)
        lake = SmallLake(tmp_path, {"alarm": {"table": AGGREGATES, "webhook": {"url": "${env:URL}", "rows_per_request": 4}}})
        lake.write(AGGREGATES, [window(0, number, float(number)) for number in range(8)]).pin(0)
        receiver.answers = [code, 204, code, code, 204]  # of 0..3 the rows 0, 1; then 2, 3; then 2; then 3
        lake.step()
    taken = [[row["value"] for row in document["rows"]] for document in receiver.documents]
    assert taken == [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3], [4, 5, 6, 7]]
    assert len({*receiver.keys}) == 6
    assert [row.reason for row in log(lake)] == [f"the webhook answered {code}."]


def test_dead_rows_are_kept_and_what_is_over_is_retired(tmp_path: Path) -> None:
    lake = csv_lake(tmp_path, AGGREGATES)
    at = NOW - timedelta(days=400)
    rows = [DeadRow("export", AGGREGATES, key, "odd", state, 0, "1", at) for key, state in (("a", "dead"), ("b", "dead"), ("b", "over"))]
    DEAD_ROWS.append(lake.conf.lake, rows)
    retire_records(lake.conf.lake, NOW)
    assert log(lake) == rows[:1]


def test_a_type_that_a_sink_cannot_hold_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    odd = pa.schema([("bytes", pa.binary()), ("pair", pa.struct([("a", pa.int64())]))])
    lists = pa.schema([("grid", pa.list_(pa.list_(pa.float64())))])
    settings: dict[str, dict[str, Any]] = {
        "csv": {"files": {"path": str(tmp_path / "export"), "format": "csv"}},
        "warehouse": {"postgres": TO},
        "fleet": {"kafka": {"servers": "127.0.0.1:1", "topic": "t", "key": ["bytes"], "format": "avro"}},
    }
    lake = SmallLake(tmp_path, {name: {"table": "marts.odd", **target} for name, target in settings.items()})
    told = {name: problem_of(sink, odd) for name, sink in sinks(lake.conf).items()}
    assert told == {
        "csv": "column bytes of marts.odd is binary, which CSV cannot hold; set `binary: base64`, or `format: parquet`.",
        "warehouse": "column pair of marts.odd is struct<a: int64>, for which Postgres has no type here; leave it out of the mart.",
        "fleet": "column pair of marts.odd is struct<a: int64>, for which Avro has no type here; leave it out of the mart.",
    }
    grid = "column grid of marts.odd is list<item: list<item: double>>, for which Postgres has no type here; leave it out of the mart."
    assert problem_of(sinks(lake.conf)["warehouse"], lists) == grid


def problem_of(sink: Any, schema: pa.Schema) -> str:
    with pytest.raises(TidemarkError) as raised:
        sink.check("marts.odd", schema)
    return str(raised.value)
