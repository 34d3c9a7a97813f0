"""`tidemark verify` over whole lakes: clean as the flows leave them, and every planted difference named."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from orchestration.audit.verify.check import Report, verify
from orchestration.audit.verify.compare import Difference
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf
from orchestration.storage.tables import LakeStore
from silver.policy import Unknown
from tests import lakes
from tests.built import built, copy_of, verify_conf
from tests.lakes import recorded
from tests.rows import at

pytestmark = pytest.mark.lakes
START = at("2026-01-05T00:00:00")


@pytest.fixture(scope="module")
def made() -> Conf:
    """The lake as it was built, to be read."""
    return verify_conf(built("verify"))


@pytest.fixture
def lake(tmp_path: Path) -> Conf:
    """A copy to plant differences in."""
    return verify_conf(copy_of("verify", tmp_path))


def test_what_the_flows_leave_is_clean_and_every_table_is_compared(made: Conf) -> None:
    report = verify(latest_snapshot(made), made)
    assert problems(report) == []
    rows = {outcome.table: outcome.rows for outcome in report.outcomes}
    assert rows["bronze.events"] == rows["silver.readings"] + 3 + 3 + 3
    assert (rows["silver.quarantine"], rows["silver.late"], rows["silver.duplicates"]) == (3, 0, 6)
    assert all(rows[f"gold.{name}"] > 10 for name in ("kitchen_aggregates", "kitchen_vectors", "presses_aggregates", "presses_vectors"))


def test_since_a_day_and_for_a_group_only_these_are_compared(made: Conf) -> None:
    report = verify(latest_snapshot(made), made, groups=["presses"], since=date(2026, 1, 5))
    assert problems(report) == []
    assert [outcome.table for outcome in report.outcomes][5:] == ["gold.presses_aggregates", "gold.presses_vectors"]
    later = verify(latest_snapshot(made), made, since=date(2100, 1, 1))
    assert {outcome.rows for outcome in later.outcomes} == {0}


def test_one_changed_gold_value_is_named_with_both_values(lake: Conf) -> None:
    rows = read(lake, "gold.kitchen_aggregates")
    changed = rows.set_column(
        rows.schema.get_field_index("value"), "value", pa.array([rows["value"][0].as_py() + 1e-4, *rows["value"][1:]])
    )
    rewrite(lake, "gold.kitchen_aggregates", changed)
    (difference,) = differing(lake, "gold.kitchen_aggregates")
    assert difference.what == "differs"
    assert rows["device_id"][0].as_py() in difference.row
    assert difference.in_table == f"value {changed['value'][0].as_py()}"
    assert difference.from_bronze is not None
    assert float(difference.from_bronze.split()[1]) == pytest.approx(rows["value"][0].as_py(), rel=1e-12)


def test_a_missing_a_doubled_and_an_invented_vector_are_named(lake: Conf) -> None:
    rows = read(lake, "gold.presses_vectors")
    invented = rows.slice(2, 1).set_column(0, "entity", pa.array(["ghost"]))
    rewrite(lake, "gold.presses_vectors", pa.concat_tables([rows.slice(1), rows.slice(1, 1), invented]))
    found = sorted((difference.what, difference.row) for difference in differing(lake, "gold.presses_vectors"))
    assert [what for what, _ in found] == ["missing", "surplus", "surplus"]
    assert "presses" in found[0][1]
    assert any("ghost" in row for _, row in found)


def test_a_deleted_reading_is_unaccounted_for_and_missing(lake: Conf) -> None:
    rows = read(lake, "silver.readings")
    rewrite(lake, "silver.readings", rows.slice(1))
    gone = f"bronze_row {rows['bronze_row'][0].as_py()}"
    report = verify(latest_snapshot(lake), lake)
    assert [(table, what) for table, what, _ in problems(report)] == [("bronze.events", "unaccounted for"), ("silver.readings", "missing")]
    assert gone in problems(report)[0][2]
    assert rows["device_id"][0].as_py() in problems(report)[1][2]


def test_a_doubled_reading_is_named_by_its_identity(lake: Conf) -> None:
    rows = read(lake, "silver.readings")
    rewrite(lake, "silver.readings", pa.concat_tables([rows, rows.slice(7, 1)]))
    report = verify(latest_snapshot(lake), lake)
    assert [(table, what) for table, what, _ in problems(report)] == [
        (name, "more than once") for name in ("bronze.events", "silver.readings")
    ]
    assert f"bronze_row {rows['bronze_row'][7].as_py()}," in problems(report)[0][2]


def test_a_reading_that_is_altered_in_any_column_is_named(lake: Conf) -> None:
    """Each column in a row of its own, by one comparison."""
    rows = read(lake, "silver.readings")
    more = {"value": 1e-9, "event_time": timedelta(microseconds=1), "part": 5, "unit": None, "zone": None, "source": None}
    for at_row, (column, change) in enumerate(more.items()):
        cells = rows[column].to_pylist()
        cells[at_row] = "other" if change is None else cells[at_row] + change
        index, field = rows.schema.get_field_index(column), rows.schema.field(column)
        rows = rows.set_column(index, field, pa.array(cells, field.type))
    rewrite(lake, "silver.readings", rows)
    found = differing(lake, "silver.readings")
    assert sorted(str(difference.in_table).split()[0] for difference in found if difference.what == "differs") == sorted(
        more.keys() - {"part"}
    )
    assert any(difference.what == "surplus" and "part 5" in difference.row for difference in found)


def test_a_later_row_kept_for_a_key_and_a_duplicate_that_names_another_are_named(lake: Conf) -> None:
    rows = read(lake, "silver.duplicates")
    wrong = rows.set_column(rows.schema.get_field_index("kept_row"), "kept_row", pa.array([999_999, *rows["kept_row"].to_pylist()[1:]]))
    rewrite(lake, "silver.duplicates", wrong)
    (difference,) = differing(lake, "silver.duplicates")
    assert (difference.what, difference.in_table) == ("differs", "kept_row 999999")


def test_a_quarantined_row_with_another_reason_or_payload_is_named(lake: Conf) -> None:
    rows = read(lake, "silver.quarantine")
    reasons = [["made_up"], *rows["broken_rules"].to_pylist()[1:]]
    payloads = [*rows["payload"].to_pylist()[:-1], b"other"]
    changed = rows.set_column(0, rows.schema.field(0), pa.array(reasons, rows.schema.field(0).type))
    rewrite(lake, "silver.quarantine", changed.set_column(1, rows.schema.field(1), pa.array(payloads, rows.schema.field(1).type)))
    cells = sorted(f"{difference.in_table}" for difference in differing(lake, "silver.quarantine"))
    assert [cell.split()[0] for cell in cells] == ["broken_rules", "payload"]


def test_a_replaced_bronze_row_shows_in_silver_and_in_gold(lake: Conf) -> None:
    rows = read(lake, "bronze.events")
    at_row = next(n for n, payload in enumerate(rows["payload"].to_pylist()) if b'"oven", "metric": "temperature"' in payload)
    payloads = rows["payload"].to_pylist()
    payloads[at_row] = payloads[at_row].replace(b'"value": 2', b'"value": 9')
    rewrite(lake, "bronze.events", rows.set_column(0, rows.schema.field(0), pa.array(payloads, rows.schema.field(0).type)))
    tables = {table for table, _, _ in problems(verify(latest_snapshot(lake), lake))}
    assert tables >= {"silver.readings", "gold.kitchen_aggregates", "gold.kitchen_vectors"}


def test_a_table_that_is_not_there_counts_as_empty(lake: Conf) -> None:
    shutil.rmtree(lake.lake.local / "silver" / "duplicates")
    report = verify(latest_snapshot(lake), lake)
    assert [(table, what) for table, what, _ in problems(report)] == [("bronze.events", "unaccounted for")] * 6 + [
        ("silver.duplicates", "missing")
    ] * 6


def test_rows_that_a_deletion_vector_took_away_are_not_read(lake: Conf, spark: SparkSession) -> None:
    path = lake.lake / "silver" / "readings"
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"delete from delta.`{path}` where device_id = 'press' and event_time = timestamp '2026-01-05 00:05:00'")
    assert any(
        "deletionVector" in line
        for file in (path / "_delta_log").glob("*.json")
        for line in file.local.read_text().splitlines()
        if '"add"' in line
    )
    report = verify(latest_snapshot(lake), lake)
    assert [(table, what) for table, what, _ in problems(report)] == [("bronze.events", "unaccounted for"), ("silver.readings", "missing")]


def test_the_command_prints_a_row_a_table_and_leaves_with_1_where_rows_differ(
    lake: Conf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from orchestration.cli import verify as command

    monkeypatch.setattr("orchestration.conf.load.load", lambda folder: lake)
    obj = {"conf": Path("conf")}
    assert command.command.main(["--format", "json"], obj=obj, standalone_mode=False) == 0
    assert {row["differences"] for row in json.loads(capsys.readouterr().out)} == {0}
    rewrite(lake, "gold.kitchen_vectors", read(lake, "gold.kitchen_vectors").slice(1))
    assert command.command.main([], obj=obj, standalone_mode=False) == 1
    captured = capsys.readouterr()
    assert "missing" in captured.out
    mended = replace(lake, policy=replace(lake.policy, unknown_device=Unknown.UNASSIGNED))
    monkeypatch.setattr("orchestration.conf.load.load", lambda folder: mended)
    assert command.command.main(["--format", "json"], obj=obj, standalone_mode=False) == 1
    captured = capsys.readouterr()
    assert {row["table"] for row in json.loads(captured.out) if row["differences"]} == {"gold.kitchen_vectors"}  # by the conf that ran
    assert "judged is by the one that the lake runs" in captured.err


def read(lake: Conf, name: str) -> pa.Table:
    return recorded(LakeStore(lake), name)


def rewrite(lake: Conf, name: str, rows: pa.Table) -> None:
    lakes.rewrite(LakeStore(lake), name, rows)


def differing(lake: Conf, name: str) -> tuple[Difference, ...]:
    """The differences of one table; others may differ too."""
    (outcome,) = (outcome for outcome in verify(latest_snapshot(lake), lake).outcomes if outcome.table == name)
    assert outcome.differences == len(outcome.first)
    return outcome.first


def problems(report: Report) -> list[tuple[str, str, str]]:
    return [(difference.table, difference.what, difference.row) for outcome in report.outcomes for difference in outcome.first]


def test_the_watermark_of_a_cut_is_an_instant_in_utc(made: Conf) -> None:
    closed = latest_snapshot(made).closed_until
    assert set(closed) == {"kitchen", "presses"}
    assert all(at.tzinfo is UTC and at > datetime(2026, 1, 5, 3, tzinfo=UTC) for at in closed.values())
