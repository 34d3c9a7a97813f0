"""Hostile rows to Postgres, CSV and Kafka, 10,000 or as many as `--hostile` says: each is delivered, or in ops.dead_rows with its reason.

`--seed` repeats a run. No sink stops.
"""

import csv
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from string import ascii_letters
from typing import Any

import pyarrow as pa
import pytest

from orchestration.connectors.sinks.dead_rows import dead_rows
from orchestration.storage.commit import append_rows
from tests.broker import Broker
from tests.orchestration.audit.verify.hostile import payloads
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.connectors.sinks.small_lake import READINGS, SmallLake, reading
from tests.orchestration.connectors.sinks.test_kafka import messages

pytestmark = [pytest.mark.fuzz, pytest.mark.postgres, pytest.mark.usefixtures("patient")]
AT_ONCE = 100_000
FIRST_MICROS, LAST_MICROS = -(2**60), 2**60
"""Years far beyond those that Postgres has."""


@pytest.fixture
def count(pytestconfig: pytest.Config) -> int:
    chosen: int = pytestconfig.getoption("hostile")
    return chosen


def hostile_rows(count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Readings whose texts are hostile payloads; one of some is too long, too wide, early or late."""
    texts = [payload.decode("utf-8", "replace") for _, payload, _ in payloads(chance.randrange(10_000), 500)]
    for number in range(count):
        text, other = chance.choice(texts), chance.choice(texts)
        row = reading(0, number, chance.choice([None, 0.0, -0.0, 5e-324, 1e308, float("nan"), float("inf")]), device_id=text, zone=other)
        row |= {"attributes": {other: text, "\\u0000": None}, "groups": [text, None, other], "unit": text[:10]}
        if number % 500 == 3:
            row["unit"] = "".join(chance.choices(ascii_letters, k=30))
        if number % 5_000 == 7:
            row["zone"] = "z" * 1_100_000
        yield row


def write_hostile(lake: SmallLake, count: int, chance: random.Random) -> None:
    """Every 400th has an instant of any year."""
    table, rows = lake.store.tables[READINGS], hostile_rows(count, chance)
    at = table.schema.get_field_index("event_time")
    for begin in range(0, count, AT_ONCE):
        part = pa.Table.from_pylist([*islice(rows, AT_ONCE)], table.schema)
        micros = part["event_time"].cast(pa.int64()).to_pylist()
        odd = [chance.randrange(FIRST_MICROS, LAST_MICROS) if n % 400 == 0 else micro for n, micro in enumerate(micros, begin)]
        append_rows(
            table.location, part.set_column(at, table.schema.field(at), pa.array(odd, pa.int64()).cast(table.schema.field(at).type))
        )
    lake.pin(0)


def assert_each_is_there_or_dead(lake: SmallLake, count: int, delivered: list[int], *, has_dead: bool = True) -> None:
    (name,) = lake.conf.sinks
    dead = {json.loads(key)["bronze_row"]: row.reason for key, row in dead_rows(lake.conf.lake, name).items()}
    assert sorted([*delivered, *dead]) == [*range(count)]
    assert bool(dead) == has_dead and all(dead.values())
    print(f"{name}: {len(delivered):,} delivered, {len(dead):,} dead")


def test_each_hostile_row_is_in_postgres_or_dead(tmp_path: Path, postgres: PostgresServer, count: int, chance: random.Random) -> None:
    lake = SmallLake(tmp_path, {"warehouse": {"table": READINGS, "postgres": {"dsn": "${env:PG_DSN}", "table": "received"}}})
    lake.pin(-1)
    lake.step()
    postgres.rows("alter table received alter unit type varchar(20), add check (bronze_row % 1000 <> 999)")
    write_hostile(lake, count, chance)
    lake.step()
    assert_each_is_there_or_dead(lake, count, [row for (row,) in postgres.rows("select bronze_row from received")])


def test_each_hostile_row_is_in_a_file_of_csv(tmp_path: Path, count: int, chance: random.Random) -> None:
    lake = SmallLake(tmp_path, {"export": {"table": READINGS, "files": {"path": str(tmp_path / "export"), "format": "csv"}}})
    write_hostile(lake, count, chance)
    lake.step()
    before = csv.field_size_limit(10**8)
    delivered = list[int]()
    for path in (tmp_path / "export").rglob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            delivered += [int(row["bronze_row"]) for row in csv.DictReader(file)]
    csv.field_size_limit(before)
    assert_each_is_there_or_dead(lake, count, delivered, has_dead=False)


def test_each_hostile_row_is_a_message_or_dead(tmp_path: Path, running: Broker, topic: str, count: int, chance: random.Random) -> None:
    lake = SmallLake(tmp_path, {"fleet": {"table": READINGS, "kafka": {"servers": running.servers, "topic": topic}}})
    write_hostile(lake, count, chance)
    lake.step()
    delivered = [
        json.loads(message.key() or b"")["bronze_row"] for message in messages(running, topic) if json.loads(message.value() or b"")
    ]
    assert_each_is_there_or_dead(lake, count, delivered)
