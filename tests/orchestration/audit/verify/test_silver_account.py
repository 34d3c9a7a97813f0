"""What must hold of silver, over rows written by hand: late rows, duplicates, and keys that are kept wrongly."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from orchestration.audit.verify.silver_account import prepare, silver_outcomes
from orchestration.audit.verify.store import DUPLICATES, QUARANTINE, READINGS, column_names, opened

Row = tuple[int, int, str, float]
"""Bronze batch, bronze row, device (the key: there is one metric and one instant), value."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with opened(tmp_path) as connection:
        for name in ("accepted", "readings", "late"):
            connection.execute(f"create table {name} ({READINGS})")
        for name in ("rejected", "quarantine"):
            connection.execute(f"create table {name} ({QUARANTINE})")
        connection.execute(f"create table duplicates ({DUPLICATES})")
        yield connection


def put(
    store: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row], kept: Sequence[tuple[int, int]] = (), retry: int | None = None
) -> None:
    for n, (batch, row, device, value) in enumerate(rows):
        cells = {"device_id": device, "metric": "m", "event_time": "2026-01-01", "value": value, "bronze_batch": batch, "bronze_row": row}
        cells |= {"part": 0} | (
            {"kept_batch": kept[n][0], "kept_row": kept[n][1], "kept_part": 0, "is_conflict": True, "retry": retry} if kept else {}
        )
        store.execute(f"insert into {name} ({', '.join(cells)}) values ({', '.join('?' * len(cells))})", list(cells.values()))


def wrong(store: duckdb.DuckDBPyConnection, first_batch: int = 0) -> list[tuple[str, str]]:
    in_scope = f"(bronze_batch >= {first_batch})"
    prepare(store, in_scope)
    return [(difference.table, difference.what) for outcome in silver_outcomes(store, in_scope) for difference in outcome.first]


def counted(store: duckdb.DuckDBPyConnection) -> list[tuple[str, float, bool]]:
    return store.execute("select device_id, value, is_late from counted order by all").fetchall()


def test_a_kept_row_a_late_one_and_duplicates_in_and_across_batches_account_for_all(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1), (0, 1, "a", 2), (1, 0, "a", 3), (1, 1, "b", 4), (2, 0, "b", 5)])
    put(store, "readings", [(0, 1, "a", 2)])  # any row of the batch
    put(store, "late", [(1, 1, "b", 4)])
    put(store, "duplicates", [(0, 0, "a", 1), (1, 0, "a", 3), (2, 0, "b", 5)], kept=[(0, 1), (0, 1), (1, 1)])
    assert wrong(store) == []
    assert counted(store) == [("a", 2, False), ("b", 4, True)]


def test_a_row_of_a_later_batch_must_not_be_kept(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1), (1, 0, "a", 2)])
    put(store, "readings", [(1, 0, "a", 2)])
    put(store, "duplicates", [(0, 0, "a", 1)], kept=[(1, 0)])
    assert wrong(store) == [("silver.readings", "not the earliest")]
    assert counted(store) == [("a", 1, False)]


def test_a_row_that_was_in_quarantine_when_another_one_of_its_key_was_kept_is_its_duplicate_however_early_it_is(
    store: duckdb.DuckDBPyConnection,
) -> None:
    put(store, "accepted", [(0, 0, "a", 1), (1, 0, "a", 2), (2, 0, "b", 3), (3, 0, "b", 4)])
    put(store, "readings", [(1, 0, "a", 2)])
    put(store, "late", [(2, 0, "b", 3)])  # from quarantine as well: the next one of its key is a duplicate as ever
    put(store, "duplicates", [(0, 0, "a", 1)], kept=[(1, 0)], retry=0)
    put(store, "duplicates", [(3, 0, "b", 4)], kept=[(2, 0)])
    assert wrong(store) == []
    assert counted(store) == [("a", 2, False), ("b", 3, True)]


def test_two_rows_of_a_key_must_not_be_kept_even_if_one_is_late(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1), (1, 0, "a", 2)])
    put(store, "readings", [(0, 0, "a", 1)])
    put(store, "late", [(1, 0, "a", 2)])
    assert wrong(store) == [("silver.readings", "more than once")]
    assert counted(store) == [("a", 1, False)]


def test_a_row_in_two_tables_and_a_row_in_none_are_told(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1), (0, 1, "b", 2), (0, 2, "b", 2)])
    put(store, "readings", [(0, 0, "a", 1), (0, 1, "b", 2)])
    put(store, "duplicates", [(0, 0, "a", 1)], kept=[(0, 0)])
    assert wrong(store) == [
        ("bronze.events", "more than once"),
        ("bronze.events", "unaccounted for"),
        ("silver.duplicates", "missing"),
        ("silver.duplicates", "surplus"),
    ]


def test_a_reading_that_bronze_does_not_give_is_surplus_and_counts_nowhere(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1)])
    put(store, "readings", [(0, 0, "a", 1), (0, 9, "ghost", 7)])
    assert wrong(store) == [("silver.readings", "surplus")]
    assert counted(store) == [("a", 1, False)]


def test_gold_counts_what_bronze_gives_and_not_what_the_table_says(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(0, 0, "a", 1)])
    put(store, "readings", [(0, 0, "a", 100)])
    assert wrong(store) == [("silver.readings", "differs")]
    assert counted(store) == [("a", 1, False)]


def test_what_was_recorded_before_the_first_batch_is_taken_as_it_is(store: duckdb.DuckDBPyConnection) -> None:
    put(store, "accepted", [(5, 0, "a", 2), (5, 1, "b", 3)])
    put(store, "readings", [(0, 0, "a", 1), (5, 1, "b", 3)])
    put(store, "late", [(1, 0, "c", 9)])
    put(store, "duplicates", [(2, 0, "a", 7), (5, 0, "a", 2)], kept=[(0, 0), (0, 0)])
    assert wrong(store, first_batch=5) == []
    assert counted(store) == [("a", 1, False), ("b", 3, False), ("c", 9, True)]


def test_the_columns_of_the_store_are_those_that_silver_declares() -> None:
    from silver import schema

    for declared, columns in ((schema.READINGS, READINGS), (schema.QUARANTINE, QUARANTINE), (schema.DUPLICATES, DUPLICATES)):
        assert sorted(column_names(columns)) == sorted(declared.names)
