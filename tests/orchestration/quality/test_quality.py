"""`tidemark quality` on tables: exit codes, what it keeps, and tables that are missing, empty or not as declared."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from expectations.suite import Suite, suite
from gold.alerts.spec import Alert, Signal
from gold.flows.spec import FlowSpec, Sessions
from orchestration.engine import lake as lakes
from orchestration.engine.lake import Lake
from orchestration.quality import check, quality_tables, suites, validation
from orchestration.quality.history import RESULT_SCHEMA, RESULTS
from orchestration.storage.delta import path_of, rows_of
from tests.commands import Rows, Tidemark
from tests.lakes import bare_conf, write
from tests.rows import INGESTED_AT, at

HAS_ROWS = {
    "type": "expect_table_row_count_to_be_between",
    "kwargs": {"min_value": 1},
    "severity": "critical",
    "description": "There are rows.",
}
DEVICE = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "device_id"},
    "severity": "critical",
    "description": "Every reading names its device.",
}
SMALL = suite("small", {"table": "silver.readings", "sample": ["metric"], "expectations": [HAS_ROWS, DEVICE]})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake that the command line opens too; its only group has no vector. Works in `tmp_path`."""
    opened = Lake(bare_conf(tmp_path))
    monkeypatch.setattr(lakes.Lake, "open", lambda folder: opened)
    use(monkeypatch, SMALL)
    monkeypatch.chdir(tmp_path)
    return opened


def use(monkeypatch: pytest.MonkeyPatch, *chosen: Suite) -> None:
    monkeypatch.setattr(suites, "packaged", lambda: list(chosen))


def add_readings(lake: Lake, *device_ids: str | None) -> None:
    """A version of the table; without devices an empty one."""
    columns = {"metric": "temperature", "event_time": at("11:59:00"), "value": 1.0, "ingested_at": INGESTED_AT, "bronze_batch": 0}
    write(lake, "silver.readings", *(columns | {"device_id": device_id} for device_id in device_ids))


def kept(lake: Lake) -> Rows:
    return rows_of(path_of(lake.conf.lake, RESULTS))


def test_a_run_that_passes_ends_with_0_and_one_that_does_not_with_1_and_both_are_kept(lake: Lake, tidemark: Tidemark) -> None:
    add_readings(lake, "oven")
    passed = tidemark("quality", "--layer", "silver", "--format", "json")
    names = ("table", "version", "rows", "passed", "critical")
    assert (passed.code, *(passed.rows[0][name] for name in names)) == (0, "silver.readings", 0, 1, 2, 0)

    add_readings(lake, None)
    failed = tidemark("quality", "--layer", "silver")
    assert failed.code == 1
    assert "critical: silver.readings: Every reading names its device. Found: 1 of 1 row" in failed.err

    rows = kept(lake)
    runs = [run_id for _, run_id in sorted({(row["run_at"], row["run_id"]) for row in rows})]
    told = {
        (runs.index(row["run_id"]), row["table_version"], row["expectation"], row["is_success"], row["unexpected_percent"]) for row in rows
    }
    assert told == {
        (0, 0, HAS_ROWS["type"], True, None),
        (0, 0, DEVICE["type"], True, 0.0),
        (1, 1, HAS_ROWS["type"], True, None),
        (1, 1, DEVICE["type"], False, 100.0),
    }
    (row,) = [row for row in rows if row["is_success"] is False]
    assert (row["columns"], row["severity"], row["observed"]) == (["device_id"], "critical", "1 of 1 row")
    assert json.loads(row["details"])["samples"] == [{"metric": "temperature", "device_id": "null"}]
    assert "Not passed" in Path("artifacts/quality.html").read_text(encoding="utf-8")


def test_flows_and_alerts_are_checked_kind_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark) -> None:
    flows = {"heating": FlowSpec("heating", sessions=Sessions(120, "power"))}
    alerts = {"hot": Alert("hot", Signal("reading", "temperature"), "value > 280")}
    made = Lake(bare_conf(tmp_path, flows=flows, alerts=alerts))
    monkeypatch.setattr(lakes.Lake, "open", lambda folder: made)
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, *(suite(name, {"table": f"gold.{name}", "expectations": [HAS_ROWS]}) for name in ("sessions", "alerts")))
    write(made, "gold.sessions", {"flow": "heating", "device_id": "oven"})
    write(made, "gold.alerts")
    assert tidemark("quality").code == 1
    assert [(row["table_name"], row["is_success"]) for row in kept(made)] == [("gold.sessions", True), ("gold.alerts", False)]


def test_a_warning_alone_ends_with_0(lake: Lake, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark) -> None:
    use(monkeypatch, suite("mild", {"table": "silver.readings", "expectations": [DEVICE | {"severity": "warning"}]}))
    add_readings(lake, None)
    said = tidemark("quality")
    assert (said.code, "warning: silver.readings: Every reading names its device." in said.err) == (0, True)


def test_a_missing_table_is_told_and_does_not_pass(lake: Lake, tidemark: Tidemark) -> None:
    said = tidemark("quality", "--format", "json", "--report", "page.html")
    by_name = {row["table"]: row for row in said.rows}
    assert said.code == 1
    of_silver = [f"silver.{name}" for name in ("readings", "quarantine", "late", "duplicates")]
    assert list(by_name) == ["bronze.events", *of_silver, "gold.kitchen_aggregates", "gold.kitchen_late"]
    assert {row["state"] for row in by_name.values()} == {"missing"}
    assert (by_name["silver.readings"]["critical"], by_name["silver.readings"]["not_checked"]) == (1, 1)
    assert {(row["expectation"], row["is_success"], row["table_version"]) for row in kept(lake)} == {
        (HAS_ROWS["type"], False, None),
        (DEVICE["type"], None, None),
    }
    assert "There is no such table yet" in Path("page.html").read_text(encoding="utf-8")


def test_an_empty_table_is_told_apart_and_where_nothing_was_checked_nothing_has_passed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    use(monkeypatch, suite("rows", {"table": "silver.readings", "expectations": [DEVICE]}))
    add_readings(lake)
    said = tidemark("quality", "--layer", "silver", "--format", "json")
    assert (said.code, said.rows[0]["state"], said.rows[0]["not_checked"]) == (1, "empty", 1)


def test_a_suite_whose_columns_cannot_be_computed_has_failed_as_a_whole(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    use(monkeypatch, suite("odd", {"table": "silver.readings", "columns": {"a": "colour + 1"}, "expectations": [HAS_ROWS, DEVICE]}))
    add_readings(lake, "oven")
    said = tidemark("quality", "--layer", "silver")
    assert (said.code, said.err.count("could not be evaluated")) == (1, 2)


def test_a_suite_that_throws_is_named_the_exit_code_says_it_and_the_others_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    evaluated = validation.outcomes

    def outcomes(store: Any, view: str, of_suite: Suite, *others: Any) -> Any:
        if of_suite.name == "odd":
            raise MemoryError("no room")
        return evaluated(store, view, of_suite, *others)

    monkeypatch.setattr(check, "outcomes", outcomes)
    use(monkeypatch, suite("odd", {"table": "silver.readings", "expectations": [DEVICE | {"severity": "info"}]}), SMALL)
    add_readings(lake, "oven")
    said = tidemark("quality", "--layer", "silver")
    assert (said.code, "silver.readings: suite odd cannot be evaluated: " in said.err) == (1, True)
    assert [(row["suite"], row["is_success"]) for row in kept(lake)] == [("small", True), ("small", True)]


def test_two_runs_at_once_are_refused(lake: Lake, tidemark: Tidemark) -> None:
    with quality_tables.lock(lake.conf.lake):
        said = tidemark("quality")
    assert (said.code, "writes the lake" in said.err) == (3, True)


def test_a_run_evaluates_new_rows_and_repeats_results_of_tables_without_new_rows(lake: Lake, tidemark: Tidemark) -> None:
    add_readings(lake, None, "oven")
    for _ in range(2):
        said = tidemark("quality", "--layer", "silver")
        assert (said.code, "Found: 1 of 2 rows" in said.err) == (1, True)
    add_readings(lake, "oven")
    DeltaTable(lake.tables["silver.readings"].location.local).optimize.compact()
    assert tidemark("quality", "--layer", "silver").code == 0
    said = tidemark("quality", "--layer", "silver", "--full")
    assert (said.code, "Found: 1 of 3 rows" in said.err) == (1, True)
    told = [(row["table_version"], row["since_version"]) for row in sorted(kept(lake), key=lambda row: str(row["run_id"]))]
    assert sorted(set(told), key=str) == [(0, None), (2, 0), (2, None)]


def test_where_maintenance_has_removed_new_files_all_rows_are_evaluated(lake: Lake, tidemark: Tidemark) -> None:
    add_readings(lake, None)
    assert tidemark("quality", "--layer", "silver").code == 1
    add_readings(lake, "oven")
    table = DeltaTable(lake.tables["silver.readings"].location.local)
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    said = tidemark("quality", "--layer", "silver")
    assert (said.code, "Found: 1 of 2 rows" in said.err) == (1, True)


def test_where_only_compaction_came_since_what_was_found_still_holds(lake: Lake, tidemark: Tidemark) -> None:
    for device in (None, "oven"):
        add_readings(lake, device)
    assert tidemark("quality", "--layer", "silver").code == 1
    DeltaTable(lake.tables["silver.readings"].location.local).optimize.compact()
    add_readings(lake)  # a commit without rows
    said = tidemark("quality", "--layer", "silver")
    assert (said.code, "Found: 1 of 2 rows" in said.err, "There are rows" in said.err) == (1, True, False)


def test_results_of_another_version_are_gone_on_with_whatever_it_said_of_their_columns(lake: Lake, tidemark: Tidemark) -> None:
    fewer = [pa.field(field.name, field.type, metadata={"comment": "another"}) for field in RESULT_SCHEMA if field.name != "since_version"]
    write_deltalake(path_of(lake.conf.lake, RESULTS).local, pa.schema(fewer).empty_table())
    add_readings(lake, "oven")
    assert tidemark("quality", "--layer", "silver").code == 0
    assert {row["since_version"] for row in kept(lake)} == {None}
