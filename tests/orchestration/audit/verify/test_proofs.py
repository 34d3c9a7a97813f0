"""A second `verify` computes what is new or changed since the first one, and finds there whatever a verify of everything finds."""

import struct
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from orchestration.audit.verify.check import Report, verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.audit.verify.proofs import last_proof, proof_of
from orchestration.conf.model import Conf
from orchestration.jobs.gold import amendments
from orchestration.location import Location
from orchestration.storage import table_changes
from orchestration.storage.commit import FULL_BYTES, commit, compact, file_shape
from orchestration.storage.commit import _files as files_in
from orchestration.storage.data_files import write_file
from orchestration.storage.delta import files_of, open_table
from orchestration.storage.duckdb_view import sized_files
from orchestration.storage.ops_tables import PROOFS
from orchestration.storage.row_digest import INFO, row_digest
from orchestration.storage.tables import LakeStore
from tests.built import copy_of, verify_conf
from tests.lakes import event, land, recorded, rewrite, run
from tests.rows import at

pytestmark = pytest.mark.lakes
START = at("2026-01-05T00:00:00")
LATE = event("oven", "temperature", 77.0, START + timedelta(minutes=10, seconds=1))
NEW = [event("oven", "temperature", 20 + n % 5, START + timedelta(minutes=240 + n)) for n in range(40)]
TABLES = ("silver.readings", "gold.aggregates")


def proved(made: Conf) -> Report:
    """The report of `tidemark verify`, which is written down."""
    began, state = datetime.now(UTC), latest_snapshot(made)
    report = verify(state, made, before=last_proof(state, made))
    differences = sum(outcome.differences for outcome in report.outcomes)
    PROOFS.append(made.lake, [proof_of(state, made, began, (report.events, 0, differences))])
    return report


def compared(report: Report) -> dict[str, int]:
    return {outcome.table: outcome.rows for outcome in report.outcomes if outcome.rows}


def wrong(report: Report) -> set[tuple[str, str]]:
    return {(difference.table, difference.what) for outcome in report.outcomes for difference in outcome.first}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conf:
    """A copy that is proved. Its files are as old as those of a lake that is: else a second counts as the time of the proof."""
    monkeypatch.setattr("orchestration.storage.seals.CLOCK_LAG", timedelta(0))
    made = verify_conf(copy_of("verify", tmp_path))
    first = proved(made)
    assert (wrong(first), first.events) == (set(), event_count(made))
    return made


def event_count(made: Conf) -> int:
    return len(recorded(LakeStore(made), "bronze.events"))


def path_of(made: Conf, name: str) -> Location:
    return LakeStore(made).table_path(name)


def test_what_is_proved_is_not_computed_again(lake: Conf) -> None:
    second = proved(lake)
    assert (wrong(second), second.events, compared(second)) == (set(), 0, {})


def test_new_rows_alone_are_computed_with_the_windows_that_they_change(lake: Conf, spark: SparkSession) -> None:
    land(lake.folder, "3.json", [*NEW, LATE, NEW[3], event("oven", "temperature", 21.0, START), "broken"])
    run(lake, spark)
    third = proved(lake)
    assert (wrong(third), third.events) == (set(), len(NEW) + 4)
    rows, whole = compared(third), compared(verify(latest_snapshot(lake), lake))
    assert (rows["silver.late"], rows["silver.duplicates"], rows["silver.quarantine"]) == (1, 2, 1)
    assert "gold.presses_aggregates" not in rows or rows["gold.presses_aggregates"] < whole["gold.presses_aggregates"]
    assert (wrong(fourth := proved(lake)), fourth.events, compared(fourth)) == (set(), 0, {})
    other = replace(lake, policy=replace(lake.policy, max_future_seconds=301))
    land(lake.folder, "4.json", [event("oven", "temperature", 22.0, START + timedelta(minutes=281))])
    run(other, spark)
    assert (wrong(fifth := proved(other)), fifth.events) == (set(), 1)
    assert compared(fifth)["gold.presses_aggregates"] == whole["gold.presses_aggregates"]  # all of gold, as the conf is another


def test_a_late_row_that_changed_no_window_is_found(lake: Conf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amendments, "_may_be_late", lambda *_: False)
    land(lake.folder, "3.json", [*NEW, LATE])
    run(lake, spark)
    assert wrong(proved(lake)) == {("gold.kitchen_aggregates", "differs"), ("gold.kitchen_vectors", "differs")}
    assert wrong(proved(lake)) == {("gold.kitchen_aggregates", "differs"), ("gold.kitchen_vectors", "differs")}  # until it is right


def changed(rows: pa.Table) -> pa.Table:
    """Rows of which the first one has another value."""
    value = rows["value"].to_pylist()
    return rows.set_column(rows.schema.get_field_index("value"), rows.schema.field("value"), pa.array([value[0] + 1, *value[1:]]))


def on_the_disk(made: Conf, name: str) -> None:
    """A number in the bytes of an old file, which keeps its name and its length."""
    path = path_of(made, name)
    file = path.local / files_of(open_table(path))[0]
    content, values = file.read_bytes(), pq.read_table(file, partitioning=None)["value"].to_pylist()
    for value in values:
        file.write_bytes(content.replace(struct.pack("<d", value), struct.pack("<d", value + 1)))
        if pq.read_table(file, partitioning=None)["value"].to_pylist() != values:
            return


def by_a_commit(made: Conf, name: str) -> None:
    rewrite(LakeStore(made), name, changed(recorded(LakeStore(made), name)))


def by_a_compaction(made: Conf, name: str) -> None:
    """A commit that says that it only moves rows, and has the digest that it should have."""
    path = path_of(made, name)
    table, shape = open_table(path), file_shape(path)
    file = write_file(shape, iter([changed(table.to_pyarrow_table())]))
    assert file is not None
    commit(path, [file], removed=files_in(path), info={INFO: row_digest(sized_files(path, table), shape.columns)}, is_rearranged=True)


@pytest.mark.parametrize("change", [on_the_disk, by_a_commit, by_a_compaction])
@pytest.mark.parametrize(("name", "shown"), [("silver.readings", "silver.readings"), ("gold.aggregates", "gold.")])
def test_an_old_row_that_is_changed_is_found(lake: Conf, change: Callable[[Conf, str], None], name: str, shown: str) -> None:
    change(lake, name)
    found = wrong(proved(lake))
    assert any(table.startswith(shown) and what == "differs" for table, what in found), found
    assert found == wrong(verify(latest_snapshot(lake), lake))


def test_rows_that_a_compaction_moved_stay_proved(lake: Conf) -> None:
    for name in ("silver.readings", "silver.duplicates", "gold.aggregates", "gold.vectors"):
        compact(path_of(lake, name), FULL_BYTES)
    assert (wrong(second := proved(lake)), second.events, compared(second)) == (set(), 0, {})


def test_a_row_that_is_gone_from_or_twice_in_an_old_batch_is_found(lake: Conf) -> None:
    rows = recorded(LakeStore(lake), "silver.readings")
    rewrite(LakeStore(lake), "silver.readings", rows.slice(1))
    assert ("bronze.events", "unaccounted for") in wrong(proved(lake))
    rewrite(LakeStore(lake), "silver.readings", pa.concat_tables([rows, rows.slice(7, 1)]))
    assert ("bronze.events", "more than once") in wrong(proved(lake))


def test_a_log_that_does_not_go_back_to_the_proof_and_another_evaluator_prove_anew(lake: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(lake, "bronze.events")
    versions = open_table(path).version()
    assert table_changes.changes(path, versions, versions, datetime.now(UTC)) == []
    (path.local / "_delta_log" / f"{0:020d}.json").unlink()
    assert table_changes.changes(path, 0, versions, datetime.now(UTC)) == [table_changes.UNKNOWN]
    monkeypatch.setattr("orchestration.audit.verify.proofs.evaluator", lambda: "another version")
    assert last_proof(latest_snapshot(lake), lake) is None
