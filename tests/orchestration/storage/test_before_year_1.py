"""A lake that took an instant before the year 1 for an event time, as earlier versions did, goes on, whoever looks into its logs."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.audit.quarantine import shown
from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import damaged
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.jobs import maintenance
from orchestration.location import Location
from orchestration.storage.commit import append_rows, create
from orchestration.storage.delta import FIRST_INSTANT, max_in_log
from orchestration.storage.retention import first_version
from orchestration.storage.tables import Table
from tests.lakes import KITCHEN, conf, event, land, minutes, run
from tests.rows import at

YEAR_0 = -62_135_600_400_000_000
"""In microseconds since 1970: what 0001-01-01T00:00:00+01:00 is in UTC."""
START = at("2026-01-05T00:00:00")
SILVER = ("bronze.events", "silver.readings", "silver.ledger")
BROKEN = '{"device":"oven","metric":"temperature","value":1,"ts":"0001-01-01T00:00:00+01:00"}'


def rows_of(path: Path) -> pa.Table:
    return pa.table(DeltaTable(path).to_pyarrow_table())


def with_time(rows: pa.Table, micros: int) -> pa.Table:
    times = pa.array([micros] * len(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
    return rows.set_column(rows.column_names.index("event_time"), "event_time", times)


def as_an_earlier_version_left_it(made: Conf) -> None:
    """The row that is broken now was late then; quarantine and readings have such a time in rows that are there for other reasons."""
    late, readings, quarantine = (made.lake / "silver" / name for name in ("late", "readings", "quarantine"))
    (row,) = (row for row in rows_of(quarantine.local).to_pylist() if row["payload"] == BROKEN.encode())
    DeltaTable(quarantine.local).delete(f"bronze_row = {row['bronze_row']}")
    append_rows(quarantine, with_time(rows_of(quarantine.local), YEAR_0), "test", 0)
    one = rows_of(readings.local).slice(0, 1)
    append_rows(readings, with_time(one, YEAR_0), "test", 0)
    known = {"bronze_row": pa.array([row["bronze_row"]]), "cause": pa.array(["late"]), "retry": pa.array([None], pa.int64())}
    as_late = with_time(one, YEAR_0).drop_columns("bronze_row")
    for name, column in known.items():
        as_late = as_late.append_column(name, column)
    append_rows(late, as_late.select(pa.schema(DeltaTable(late.local).schema().to_arrow()).names), "test", 0)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """One more run than such a lake came to: its gold has folded the row in."""
    folder = tmp_path_factory.mktemp("year0")
    found = conf(folder, groups={"kitchen": replace(KITCHEN, lateness_seconds=60)})
    land(folder, "1.json", [BROKEN, "{broken", *(event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 90)))])
    run(found, spark, SILVER)
    as_an_earlier_version_left_it(found)
    run(found, spark)
    land(folder, "2.json", [event("oven", "temperature", 1, START), event("oven", "temperature", 2, START + timedelta(hours=3)), BROKEN])
    run(found, spark)
    return found


def test_runs_go_on_and_fold_the_row_in(made: Conf) -> None:
    ends = rows_of(made.lake.local / "gold/aggregates")["window_end"].cast(pa.int64()).to_pylist()
    assert YEAR_0 < min(ends) <= YEAR_0 + 600_000_000
    assert max(ends) == (START + timedelta(minutes=90) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    quarantined = rows_of(made.lake.local / "silver/quarantine").select(["bronze_batch", "payload", "broken_rules"]).to_pylist()
    assert {"bronze_batch": 1, "payload": BROKEN.encode(), "broken_rules": ["event_time_is_valid"]} in quarantined


def test_the_account_is_taken(made: Conf) -> None:
    tables = account.open_tables(Lake(made))
    assert damaged(tables) == []
    assert sum(row["waiting"] for row in account.by_day(account.account(tables).batches)) == 0


def test_quarantine_is_shown(made: Conf) -> None:
    assert "0000-12-31T23:00:00Z" in [row["event_time"] for row in shown(Lake(made), None, None, 10)]


def test_it_is_maintained(made: Conf) -> None:
    done = {row["table"] for row in maintenance.maintain(Lake(made), datetime.now(UTC), lambda _: nullcontext())}
    assert {"silver.late", "silver.quarantine", "gold.aggregates"} <= done


def test_the_greatest_instant_of_a_log_is_one_of_python(tmp_path: Path) -> None:
    rows = pa.table({"bronze_batch": pa.array([1, 2]), "event_time": pa.array([None, None], pa.timestamp("us", "UTC"))})
    late = Table("silver.late", Location(tmp_path / "late"), "", ())
    create(late.location, rows.schema)
    append_rows(late.location, rows, "test", 0)
    assert (max_in_log(late.location, "event_time"), max_in_log(late.location, "value")) == (None, None)
    append_rows(late.location, with_time(rows, YEAR_0), "test", 1)
    assert (max_in_log(late.location, "event_time"), max_in_log(late.location, "bronze_batch")) == (FIRST_INSTANT, 2)
    assert max_in_log(late.location, "event_time", version=1) is None
    append_rows(late.location, with_time(rows.slice(0, 1), 0), "test", 2)
    assert max_in_log(late.location, "event_time") == datetime(1970, 1, 1, tzinfo=UTC)


def test_the_first_version_that_holds_a_batch_is_found_by_a_log_that_was_cut(tmp_path: Path) -> None:
    rows = pa.table({"bronze_batch": pa.array([1]), "event_time": pa.array([None], pa.timestamp("us", "UTC"))})
    create(Location(tmp_path), rows.schema)
    for version in range(2):
        append_rows(Location(tmp_path), with_time(rows, YEAR_0), "test", version)
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(2):
        (tmp_path / f"_delta_log/{version:020d}.json").unlink()
    assert first_version(Location(tmp_path), lambda greatest: greatest["event_time"].startswith("0000-12-31")) == 0
    assert first_version(Location(tmp_path), lambda greatest: greatest["bronze_batch"] > 1) == 2
