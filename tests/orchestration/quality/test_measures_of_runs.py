"""Measures in a run: beside Great Expectations, with the ledger, with earlier runs, and at a snapshot."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from expectations.suite import suite
from orchestration.engine.lake import Lake
from orchestration.quality.check import Scope, check
from orchestration.quality.history import append_results, last_runs
from orchestration.quality.suites import packaged
from orchestration.storage.ops_tables import COUNTED
from orchestration.storage.snapshot import Snapshot
from tests.lakes import write
from tests.orchestration.quality.test_measures import NOW, conf_of
from tests.rows import at


def accounted(folder: Path, lost: int = 0, batches: int = 1) -> Lake:
    """Batches of ten events each, of which `lost` are in no table of silver; the ledger has passed the first."""
    lake = Lake(conf_of(folder))
    rows = [{"bronze_batch": batch, "bronze_row": row} for batch in range(batches) for row in range(10)]
    write(lake, "bronze.events", *(row | {"ingested_at": at("2026-01-15T12:00"), "source": "plant"} for row in rows))
    write(lake, "silver.readings", *(row for row in rows if row["bronze_row"] >= lost))
    counts = dict.fromkeys(COUNTED, 0) | {"bronze_batch": 0, "source": "plant", "events": 10, "readings": 10}
    write_deltalake(lake.table_path("ops.ledger").local, pa.Table.from_pylist([counts]))
    return lake


ACCOUNT = suite("account", {"table": "bronze.events", "expectations": [
    {"type": "tidemark_rows_to_be_accounted_for", "severity": "critical", "description": "Nothing is lost."},
    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "bronze_batch"}, "severity": "critical", "description": "Known."},
]})  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "batches", "told"),
    [
        (0, 1, "accounted for: 10 events of 1 bronze batch"),
        (0, 2, "accounted for: 10 events of 1 bronze batch"),  # the ledger is behind
        (3, 1, "bronze batch 0: silver.readings holds 7 rows, ops.ledger counted 10"),
    ],
)
def test_the_tables_hold_what_the_ledger_counted(tmp_path: Path, lost: int, batches: int, told: str) -> None:
    lake = accounted(tmp_path / "a lake", lost, batches)
    run = check(lake, [ACCOUNT], NOW, lambda table: None, Scope(layer="bronze"))
    (of_rows, account) = run.tables[0].results
    assert (account.outcome.observed, account.outcome.is_success) == (told, lost == 0)
    assert of_rows.outcome.is_success


def test_a_run_repeats_results_of_unchanged_rows_and_evaluates_measures_again(tmp_path: Path) -> None:
    lake = accounted(tmp_path / "lake")
    append_results(lake.conf.lake, check(lake, [ACCOUNT], NOW, lambda table: None, Scope(layer="bronze")))
    DeltaTable(lake.table_path("ops.ledger").local).update({"readings": "11"})
    scope = Scope(layer="bronze", last_runs=last_runs(lake.conf.lake))
    (table,) = check(lake, [ACCOUNT], NOW, lambda table: None, scope).tables
    assert [(each.expectation.type[:8], each.outcome.is_success) for each in table.results] == [("expect_c", True), ("tidemark", False)]


def test_a_snapshot_gets_the_results_that_it_would_have_had_then(tmp_path: Path) -> None:
    lake = accounted(tmp_path / "lake")
    (shipped,) = (each for each in packaged() if each.name == "bronze_account")
    taken = Snapshot(0, NOW, 0, 0, {"bronze.events": 0, "silver.readings": 0}, {})
    for snapshot, is_fresh in ((None, False), (taken, True)):
        run = check(lake, [shipped], NOW + timedelta(days=9), lambda table: None, Scope(layer="bronze", snapshot=snapshot))
        found = {each.expectation.type: each.outcome for each in run.tables[0].results}
        assert found["tidemark_rows_to_be_fresh"].is_success is is_fresh
        # No snapshot pins the ledger.
        assert found["tidemark_rows_to_be_accounted_for"].is_success is (None if snapshot else True)
