"""`tidemark ledger`: a clean lake is clean, and whatever is done to a table by hand is named with the identity of the event."""

import os
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import damaged, discrepancies
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from tests.built import account_conf, copy_of
from tests.lakes import event
from tests.rows import at

pytestmark = pytest.mark.lakes
START = at("2026-01-05T00:00:00")
FIRST = event("oven", "temperature", 0, START)


@pytest.fixture
def made(tmp_path: Path) -> Conf:
    """A copy of the lake, to be tampered with."""
    copy_of("account", tmp_path)
    return account_conf(tmp_path)


def of(made: Conf, since: date | None = None) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    """The account's rows, and what is wrong: batch, row, part, and the words for it."""
    tables = account.open_tables(Lake(made))
    found = account.account(tables, since)
    wrong = discrepancies(tables, found, {name: source.payload_format for name, source in made.sources.items()})
    return account.by_day(found.batches), [(row["bronze_batch"], row["bronze_row"], row["part"], row["wrong"]) for row in wrong]


def table(made: Conf, name: str) -> DeltaTable:
    return DeltaTable(made.lake.local / name.replace(".", "/"))


def copied(made: Conf, name: str, where: str, to: str = "", **changes: int | str) -> None:
    """Append copies of the rows of a table to it, or to another one that has its columns."""
    rows = pa.table(QueryBuilder().register("rows", table(made, name)).execute(f"select * from rows where {where}"))
    for column, value in changes.items():
        rows = rows.set_column(rows.column_names.index(column), column, pa.array([value] * rows.num_rows))
    assert rows.num_rows == 1
    if to == "silver.late":
        rows = rows.append_column("cause", pa.array(["late"])).append_column("retry", pa.array([None], pa.int64()))
    write_deltalake(table(made, to or name), rows, mode="append")


def alarms(rows: Sequence[dict[str, Any]], source: str = "plant") -> list[int]:
    return [sum(row[name] for row in rows if row["source"] == source) for name in account.ALARMS]


def row_of(made: Conf, payload: str) -> int:
    """Place in the first bronze batch of the first event with that payload."""
    found = table(made, "bronze.events").to_pandas()
    return int(found[(found.payload == payload.encode()) & (found.bronze_batch == 0)].bronze_row.min())


def test_a_clean_lake_is_accounted_for_by_source_and_day(made: Conf) -> None:
    rows, wrong = of(made)
    counts = {row["source"]: [row[name] for name in account.COLUMNS[2:]] for row in rows}
    assert counts == {"plant": [35, 31, 2, 0, 1, 1, 0, 0, 0, 0, 0, 0], "rooms": [3, 6, *[0] * 10]}
    assert (wrong, {tuple(row) for row in rows}) == ([], {account.COLUMNS})


def test_a_lake_is_the_same_in_slices_of_any_size(made: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = of(made)
    monkeypatch.setattr(account, "ROWS_AT_ONCE", 10)
    parts = account.slices(account.open_tables(Lake(made)).by_name, None)
    assert len(parts) > 8
    assert of(made) == at_once


def test_a_deleted_reading_is_unaccounted(made: Conf) -> None:
    table(made, "silver.readings").delete("value = 7.0")
    rows, wrong = of(made)
    assert alarms(rows) == [1, 0, 0, 1]
    assert wrong == [
        (0, row_of(made, event("oven", "temperature", 7, START + timedelta(minutes=7))), 0, "in no table of silver"),
        (0, None, None, "plant: readings 30, was 31 when it was written"),
    ]


def test_a_deleted_row_of_quarantine_is_unaccounted_and_shown_with_its_payload(made: Conf) -> None:
    table(made, "silver.quarantine").delete("event_time is null")
    tables = account.open_tables(Lake(made))
    found = account.account(tables)
    (first, _) = discrepancies(tables, found, {})
    assert (first["bronze_row"], first["payload"]) == (row_of(made, "{broken"), "{broken")


@pytest.mark.parametrize("name", ["silver.late", "silver.duplicates"])
def test_a_deleted_late_row_or_duplicate_is_unaccounted(name: str, made: Conf) -> None:
    (row,) = table(made, name).to_pyarrow_table(columns=["bronze_batch", "bronze_row"]).to_pylist()
    table(made, name).delete()
    rows, wrong = of(made)
    assert alarms(rows) == [1, 0, 0, 1]
    assert wrong[0] == (row["bronze_batch"], row["bronze_row"], 0, "in no table of silver")


def test_a_reading_that_is_there_twice_is_doubled(made: Conf) -> None:
    copied(made, "silver.readings", "value = 0.0 and source = 'plant'")
    rows, wrong = of(made)
    assert alarms(rows) == [0, 1, 0, 1]
    assert wrong[0] == (0, row_of(made, FIRST), 0, "more than once: in silver.readings (2 times)")


def test_a_reading_that_is_late_as_well_is_doubled(made: Conf) -> None:
    copied(made, "silver.readings", "value = 0.0 and source = 'plant'", to="silver.late")
    rows, wrong = of(made)
    assert alarms(rows) == [0, 1, 0, 1]
    assert wrong[0] == (0, row_of(made, FIRST), 0, "more than once: in silver.readings and silver.late")


def test_a_reading_that_was_moved_to_another_table_differs_from_what_was_written(made: Conf) -> None:
    """Each identity is in one table still."""
    copied(made, "silver.readings", "value = 0.0 and source = 'plant'", to="silver.late")
    table(made, "silver.readings").delete("value = 0.0 and source = 'plant'")
    rows, wrong = of(made)
    assert alarms(rows) == [0, 0, 0, 1]
    assert wrong == [(0, None, None, "plant: readings 30, was 31 when it was written; late 1, was 0 when it was written")]


@pytest.mark.parametrize(("batch", "row"), [("0", "999"), ("99", "0"), ("null", "null")])
def test_a_reading_that_was_moved_to_an_event_that_is_not_in_bronze_is_a_stray(batch: str, row: str, made: Conf) -> None:
    updates = {"bronze_batch": f"cast({batch} as bigint)", "bronze_row": f"cast({row} as bigint)"}
    table(made, "silver.readings").update(updates, predicate="value = 0.0 and source = 'plant'")
    rows, wrong = of(made)
    assert alarms(rows) == [1, 0, 1, int(batch != "0")]  # within its batch, the counts stay as they are
    identity = [None if number == "null" else int(number) for number in (batch, row)]
    stray = (*identity, 0, "in silver.readings, but there is no such event in bronze.events")
    assert (0, row_of(made, FIRST), 0, "in no table of silver") in wrong
    assert stray in wrong


def test_a_reading_that_was_moved_to_another_event_is_doubled_there_and_unaccounted_here(made: Conf) -> None:
    second = row_of(made, event("oven", "temperature", 1, START + timedelta(minutes=1)))
    table(made, "silver.readings").update({"bronze_row": str(second)}, predicate="value = 0.0 and source = 'plant'")
    rows, wrong = of(made)
    assert alarms(rows) == [1, 1, 0, 0]
    assert set(wrong) == {
        (0, row_of(made, FIRST), 0, "in no table of silver"),
        (0, second, 0, "more than once: in silver.readings (2 times)"),
    }


def test_a_reading_under_another_source_than_its_event_is_a_stray(made: Conf) -> None:
    table(made, "silver.readings").update({"source": "'elsewhere'"}, predicate="value = 0.0 and source = 'plant'")
    rows, wrong = of(made)
    assert alarms(rows) == [0, 0, 1, 0]
    assert wrong == [(0, row_of(made, FIRST), 0, "of source 'elsewhere' in silver.readings, of 'plant' in bronze.events")]


def test_of_an_event_of_several_measurements_the_one_that_is_missing_is_named(made: Conf) -> None:
    table(made, "silver.readings").delete("source = 'rooms' and metric = 'power' and value = 2.0")
    rows, wrong = of(made)
    assert alarms(rows, "rooms") == [1, 0, 0, 1]
    assert wrong[0] == (0, row_of(made, "2,2026-01-05 00:02,2"), 1, "in no table of silver; part 0 of 2 there")


def test_a_measurement_that_its_event_does_not_hold_is_a_stray(made: Conf) -> None:
    copied(made, "silver.readings", "value = 0.0 and source = 'plant'", part=5)
    rows, wrong = of(made)
    assert alarms(rows) == [0, 0, 1, 1]
    assert wrong[0] == (0, row_of(made, FIRST), None, "2 measurements in silver (parts 0, 5), of an event that holds 1")


def test_a_bronze_file_replaced_by_one_with_other_rows_leaves_rows_astray_and_rows_unaccounted(made: Conf) -> None:
    events = table(made, "bronze.events")
    rows = events.to_pyarrow_table()
    moved = rows.set_column(rows.column_names.index("bronze_row"), "bronze_row", pc.add(rows["bronze_row"], 1))
    write_deltalake(events, moved, mode="overwrite")
    found, wrong = of(made)
    assert alarms(found)[0] > 0
    assert alarms(found)[2] > 0
    first = min(rows.filter(pc.equal(rows["bronze_batch"], 0))["bronze_row"].to_pylist())
    assert (0, first) == wrong[0][:2]


@pytest.mark.parametrize("name", ["bronze.events", "silver.quarantine"])
@pytest.mark.parametrize("length", [None, 0, 1000])
def test_a_file_that_is_gone_or_cut_is_told_with_the_rows_that_it_held(name: str, length: int | None, made: Conf) -> None:
    file = max(map(Path, table(made, name).file_uris()), key=lambda file: file.stat().st_size)
    if length is None:
        file.unlink()
    else:
        os.truncate(file, length)
    (told,) = damaged(account.open_tables(Lake(made)))
    found = "is gone" if length is None else f"has {length} bytes"
    assert told["bronze_batch"] == 0
    assert told["wrong"].startswith(f"{file} {found}")
    assert told["wrong"].endswith("rows of bronze batches 0 to 0 are missing until it is restored")


def test_an_event_that_bronze_has_twice_is_doubled(made: Conf) -> None:
    copied(made, "bronze.events", f"bronze_batch = 0 and bronze_row = {row_of(made, FIRST)}")
    rows, wrong = of(made)
    assert alarms(rows) == [0, 1, 0, 1]
    assert wrong[0] == (0, row_of(made, FIRST), None, "2 times in bronze.events")


def test_events_that_vanished_with_all_that_came_of_them_differ_from_what_was_written(made: Conf) -> None:
    for name in ("bronze.events", *(f"silver.{kind}" for kind in account.KINDS.values())):
        table(made, name).delete("bronze_batch = 1")
    assert of(made)[1] == [(1, None, None, "plant: events 0, was 1 when it was written; late 0, was 1 when it was written")]


def test_rows_that_spark_deleted_by_a_deletion_vector_are_gone(made: Conf, spark: SparkSession) -> None:
    path = table(made, "silver.readings").table_uri
    spark.sql(f"alter table delta.`{path}` set tblproperties (delta.enableDeletionVectors = true)")
    spark.sql(f"delete from delta.`{path}` where value = 7.0")
    assert any(
        "deletionVector" in line
        for line in (made.lake.local / "silver/readings/_delta_log").glob("*3.json").__next__().read_text().split("{")
    )
    assert alarms(of(made)[0]) == [1, 0, 0, 1]
