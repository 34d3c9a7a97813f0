"""A table of Postgres equals the table of the lake at a snapshot, and never holds half of one."""

import json
import math
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from orchestration.connectors.sinks.sink_states import snapshots_of_sinks
from orchestration.jobs.sinks import Sent
from orchestration.storage import snapshots
from orchestration.storage.commit import delete_rows
from orchestration.storage.snapshot import Snapshot
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.connectors.sinks.small_lake import (
    AGGREGATES,
    KEYS,
    READINGS,
    VECTORS,
    SmallLake,
    alert,
    reading,
    sent,
    session,
    vector,
    window,
    windows,
)

pytestmark = pytest.mark.postgres
TO = {"dsn": "${env:PG_DSN}", "table": "public.received"}


def lake_for(folder: Path, table: str) -> SmallLake:
    return SmallLake(folder, {"warehouse": {"table": table, "postgres": TO}})


def received(server: PostgresServer, table: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Rows of Postgres by key, with instants in UTC."""
    columns = [name for (name,) in server.rows("select attname from pg_attribute where attrelid = 'received'::regclass and attnum > 0")]
    rows = (dict(zip(columns, row, strict=True)) for row in server.rows("select * from received"))
    in_utc = ({name: cell.astimezone(UTC) if isinstance(cell, datetime) else cell for name, cell in row.items()} for row in rows)
    return {tuple(str(row[name]) for name in KEYS[table]): row for row in in_utc}


def assert_equal(server: PostgresServer, lake: SmallLake, table: str, snapshot: Snapshot) -> None:
    found, expected = received(server, table), lake.expected(table, snapshot)
    assert found.keys() == expected.keys()
    assert {key: repr(row) for key, row in found.items()} == {key: repr(_plain(row)) for key, row in expected.items()}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """With the one class of UTC that the driver uses."""
    return {name: cell.astimezone(UTC) if isinstance(cell, datetime) else cell for name, cell in row.items()}


def test_new_rows_come_once_and_amendments_take_the_place_of_what_they_amend(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    first = lake.write(AGGREGATES, [*windows(0, range(5)), window(0, 2, 7.0, revision=1)]).pin(0)
    assert lake.step() == sent(5)
    assert_equal(postgres, lake, AGGREGATES, first)
    assert lake.step() is None
    lake.write(AGGREGATES, [window(0, 1, 9.0, revision=1)])  # amended, and no micro-batch of gold since
    lake.write(AGGREGATES, [window(0, 4, 9.5, revision=1)])
    lake.compact(AGGREGATES, first)
    second = lake.pin(1)
    assert lake.step() == sent(2, is_complete=False)
    assert_equal(postgres, lake, AGGREGATES, second)
    third = lake.write(AGGREGATES, [*windows(1, range(5, 8)), window(1, 5, 3.0, revision=1), window(1, 1, 11.0, revision=2)]).pin(2)
    assert lake.step() == sent(4, is_complete=False)
    assert_equal(postgres, lake, AGGREGATES, third)


@pytest.mark.parametrize("table", ["gold.heating", "gold.alerts"])
def test_of_flows_and_alerts_what_is_new_comes_once_and_all_where_the_earlier_snapshot_is_gone(
    table: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    def add(*numbers: int) -> Snapshot:
        for number in numbers:
            lake.write("gold.sessions", [session(number), session(number, "cooling")]).write("gold.alerts", [alert(number, "firing")])
        return lake.pin(numbers[-1])

    lake = lake_for(tmp_path, table)
    lake.pin(0)
    assert lake.step() == Sent(0, 0, ANY, True)
    second = add(1, 2)
    assert lake.step() == Sent(1, 2, ANY, False)
    lake.compact("gold.sessions", second)
    third = add(3)
    assert lake.step() == Sent(2, 1, ANY, False)
    assert lake.step() is None
    assert_equal(postgres, lake, table, third)
    fourth = add(4)
    snapshots.SNAPSHOTS.delete(lake.conf.lake, "snapshot_id", [third.snapshot_id])
    assert lake.step() == Sent(3, 4, ANY, True)
    assert_equal(postgres, lake, table, fourth)


def test_without_the_earlier_snapshot_rows_of_the_newest_batch_come_again_and_change_nothing(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    first = lake.write(AGGREGATES, [*windows(0, range(5)), *windows(1, range(5, 7))]).pin(0)
    lake.step()
    second = lake.write(AGGREGATES, [window(1, 1, 9.0, revision=1)]).pin(1)
    snapshots.SNAPSHOTS.delete(lake.conf.lake, "snapshot_id", [first.snapshot_id])
    assert lake.step() == sent(3, is_complete=False)
    assert_equal(postgres, lake, AGGREGATES, second)


@pytest.mark.parametrize("snapshots_since", [1, 3])
def test_a_lake_that_was_restored_from_a_backup_brings_the_table_to_what_it_has_now(
    tmp_path: Path, postgres: PostgresServer, snapshots_since: int
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    shutil.copytree(lake.conf.lake.local, tmp_path / "backup")
    lake.write(AGGREGATES, [*windows(1, range(5, 9)), window(1, 0, 9.0, revision=1)]).pin(1)
    lake.pin(1)
    lake.step()
    shutil.rmtree(lake.conf.lake.local)
    shutil.copytree(tmp_path / "backup", lake.conf.lake.local)
    for number in range(snapshots_since):
        last = lake.write(AGGREGATES, [*windows(number + 1, [number + 5], value=2.0)]).pin(number + 1)
    lake.send_all()
    assert_equal(postgres, lake, AGGREGATES, last)


def test_a_snapshot_that_a_sink_has_never_expires(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    assert snapshots_of_sinks(lake.conf) == set()
    lake.pin(0)
    kept = lake.pin(0)
    lake.step()
    newest = lake.pin(1)
    assert snapshots_of_sinks(lake.conf) == {kept.snapshot_id}
    assert snapshots_of_sinks(replace(lake.conf, sinks={})) == set()
    assert newest.snapshot_id not in snapshots_of_sinks(lake.conf)


def test_a_snapshot_that_pins_nothing_new_moves_the_position_alone(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    lake.compact(AGGREGATES)
    last = lake.pin(1)
    assert lake.step() == Sent(last.snapshot_id, 0, ANY, False)
    ((position,),) = postgres.rows("select position from tidemark_positions")
    assert json.loads(position)["snapshot_id"] == last.snapshot_id


def test_of_silver_what_lies_beyond_the_prefix_of_a_snapshot_waits_for_the_next(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, READINGS)
    first = lake.write(READINGS, [reading(batch, row) for batch in range(3) for row in range(4)]).pin(1)
    assert lake.step() == sent(8)
    assert_equal(postgres, lake, READINGS, first)
    second = lake.pin(2)
    assert lake.step() == sent(4, is_complete=False)
    assert_equal(postgres, lake, READINGS, second)


def test_every_type_arrives_as_it_is(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, VECTORS)
    odd = [math.nan, math.inf, -math.inf, None, -0.0, 5e-324, 1.7976931348623157e308, 0.1]
    snapshot = lake.write(VECTORS, [vector(0, 0, odd), vector(0, 1, []), vector(0, 2, None), vector(0, 3, [1.0])]).pin(0)
    lake.step()
    assert_equal(postgres, lake, VECTORS, snapshot)
    other = lake_for(tmp_path / "other", READINGS)
    texts = ["", "a,b", 'say "x"', "line\nend\r\n", "\\.", "NULL", "\\N", "é 日本 🌊", " ", "'", "{}"]
    rows = [
        reading(0, row, device_id=text, unit=text, groups=[text, text], attributes={"q": text, "no": None})
        for row, text in enumerate(texts)
    ]
    other.write(READINGS, [*rows, reading(0, 90, math.nan), reading(0, 91, None, groups=None), reading(0, 92, -math.inf, groups=[])])
    snapshot = other.pin(0)
    postgres.rows("drop table received; delete from tidemark_positions")
    other.step()
    assert_equal(postgres, other, READINGS, snapshot)


def test_bytes_arrive_as_they_are_and_a_nul_in_a_text_is_replaced(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, "silver.quarantine")
    row = {"broken_rules": ["a"], "payload": bytes(range(256)), "device_id": "a\x00b", "bronze_batch": 0, "bronze_row": 0, "part": 0}
    lake.write("silver.quarantine", [row, row | {"payload": None, "bronze_row": 1}]).pin(0)
    lake.step()
    found = postgres.rows("select payload, device_id from received order by bronze_row")
    assert found == [
        (bytes(range(256)), "a\ufffdb"),
        (None, "a\ufffdb"),
    ]


def test_what_a_retry_takes_from_quarantine_goes_and_what_it_brings_to_late_comes(tmp_path: Path, postgres: PostgresServer) -> None:
    both = {name: {"table": f"silver.{name}", "postgres": TO | {"table": name}} for name in ("quarantine", "late")}
    lake = SmallLake(tmp_path, both)
    bad = [{"broken_rules": ["a"], "payload": b"1", "bronze_batch": 0, "bronze_row": row, "part": 0} for row in range(3)]
    lake.write("silver.quarantine", bad)
    lake.write("silver.late", [reading(0, 7, cause="late")]).pin(3)
    for name in both:
        lake.step(name)
    lake.write("silver.late", [reading(0, 1, cause="retried", retry=0)])
    delete_rows(lake.store.tables["silver.quarantine"].location, "bronze_row", [1])
    lake.pin(3)
    assert (lake.step("quarantine"), lake.step("late")) == (sent(2), sent(1, is_complete=False))
    assert postgres.rows("select bronze_row from quarantine order by 1") == [(0,), (2,)]
    assert postgres.rows("select bronze_row, retry from late order by 1") == [(1, 0), (7, None)]


def test_after_a_replay_and_after_a_rollback_the_table_is_that_of_the_active_generation(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    first = lake.write(AGGREGATES, [*windows(0, range(5)), window(0, 3, 7.0, revision=2)]).pin(0)
    lake.step()
    built = lake.next_generation()
    second = built.write(AGGREGATES, [*windows(-1, range(2, 4), value=5.0)]).pin(0)
    assert built.step() == sent(2)
    assert_equal(postgres, built, AGGREGATES, second)
    third = built.write(AGGREGATES, [*windows(0, [4])]).pin(1)
    assert built.step() == sent(1, is_complete=False)
    assert_equal(postgres, built, AGGREGATES, third)
    lake.pin(0)
    lake.step()
    assert_equal(postgres, lake, AGGREGATES, first)
