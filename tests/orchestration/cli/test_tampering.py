"""Tables changed by hand, each in a copy of one small lake: `tidemark ledger` or `tidemark verify` names the rows and answers no."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration import crash
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from tests.built import BROKEN, copy_of
from tests.commands import Rows, Tidemark
from tests.lakes import event, land, recorded, rewrite, run
from tests.rows import at

pytestmark = pytest.mark.lakes
START = at("2026-01-05T00:00:00")
Ask = Callable[[str], tuple[int, Rows, str]]


class KilledError(BaseException):
    """As a kill would, past every handler."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A copy to change."""
    return Lake.open(copy_of("tampered", tmp_path) / "conf")


@pytest.fixture
def ask(lake: Lake, tidemark: Tidemark) -> Ask:
    """Exit code and rows of a command, and what it says beside them."""

    def answer(command: str) -> tuple[int, Rows, str]:
        said = tidemark("--conf", lake.conf.folder, command, "--format", "json")
        return said.code, said.rows, said.err

    return answer


def differences(rows: Rows) -> dict[str, Rows]:
    """The differing rows of each table that `verify` names."""
    return {row["table"]: row["first"] for row in rows if row["differences"]}


def with_cell(rows: pa.Table, row: int, column: str, cell: object) -> pa.Table:
    at_column = rows.schema.get_field_index(column)
    cells = rows[column].to_pylist()
    cells[row] = cell
    return rows.set_column(at_column, rows.schema.field(at_column), pa.array(cells, rows.schema.field(at_column).type))


def identity(row: dict[str, Any]) -> str:
    return " ".join(f"{name} {row[name]}" for name in ("bronze_batch", "bronze_row", "part"))


def test_an_untouched_lake_is_a_yes_of_both(ask: Ask) -> None:
    code, rows, _ = ask("verify")
    assert (code, differences(rows)) == (0, {})
    code, rows, err = ask("ledger")
    assert (code, err, [(row["readings"], row["late"], row["quarantined"]) for row in rows]) == (0, "", [(32, 1, 1)])


def test_what_a_run_left_half_done_is_no_difference(lake: Lake, ask: Ask, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def point(passed: Point) -> None:
        if passed is Point.LEDGER_BEGUN:
            raise KilledError

    late = event("oven", "temperature", 98.0, START + timedelta(minutes=16))
    land(lake.conf.folder.parent, "3.json", [late, BROKEN, event("oven", "temperature", 61, START + timedelta(minutes=55))])
    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(crash, "point", point)
        run(lake.conf, spark)
    code, rows, _ = ask("verify")
    assert (code, differences(rows)) == (0, {})


def test_a_changed_gold_value_is_told_with_what_bronze_gives(lake: Lake, ask: Ask) -> None:
    rows = recorded(lake, "gold.kitchen_aggregates")
    first = pc.index(rows["window_end"], pc.min(rows["window_end"])).as_py()
    rewrite(lake, "gold.kitchen_aggregates", with_cell(rows, first, "value", 24.6))
    code, found, _ = ask("verify")
    ((difference,),) = differences(found).values()
    assert code == 1
    assert (difference["table"], difference["in_table"], difference["from_bronze"]) == (
        "gold.kitchen_aggregates",
        "value 24.6",
        "value 24.5",
    )
    assert difference["row"] == "device_id oven, metric temperature, window_start 2026-01-05 00:00:00"


def test_a_deleted_reading_is_told_by_both_with_its_payload(lake: Lake, ask: Ask) -> None:
    rows = recorded(lake, "silver.readings")
    rewrite(lake, "silver.readings", rows.slice(1))
    gone = rows.slice(0, 1).to_pylist()[0]
    code, _, err = ask("ledger")
    assert code == 1
    assert f"{identity(gone)}: in no table of silver" in err
    assert f'"value": {gone["value"]:g}' in err
    code, found, _ = ask("verify")
    assert (code, set(differences(found))) == (1, {"bronze.events", "silver.readings"})
    assert identity(gone) in differences(found)["bronze.events"][0]["row"].replace(",", "")


def test_a_doubled_reading_is_told_by_both(lake: Lake, ask: Ask) -> None:
    doubled = recorded(lake, "silver.readings").slice(5, 1)
    write_deltalake(DeltaTable(lake.table_path("silver.readings").local), doubled, mode="append")
    row = identity(doubled.to_pylist()[0])
    code, _, err = ask("ledger")
    assert code == 1
    assert f"{row}: more than once: in silver.readings (2 times)" in err
    code, found, _ = ask("verify")
    assert code == 1
    assert row in differences(found)["bronze.events"][0]["row"].replace(",", "")


def test_a_late_row_moved_among_the_readings_is_told_by_the_batch(lake: Lake, ask: Ask) -> None:
    """Its identity is in one table still."""
    rows = recorded(lake, "silver.late")
    write_deltalake(DeltaTable(lake.table_path("silver.readings").local), rows.drop_columns(["cause", "retry"]), mode="append")
    DeltaTable(lake.table_path("silver.late").local).delete()
    code, _, err = ask("ledger")
    assert code == 1
    assert "bronze_batch 1: plant: readings 2, was 1 when it was written; late 0, was 1 when it was written" in err


def test_a_quarantined_payload_that_was_altered_is_told_with_that_of_bronze(lake: Lake, ask: Ask) -> None:
    rows = recorded(lake, "silver.quarantine")
    rewrite(lake, "silver.quarantine", with_cell(rows, 0, "payload", BROKEN.replace("7", "8").encode()))
    code, found, _ = ask("verify")
    ((difference,),) = differences(found).values()
    assert (code, difference["table"]) == (1, "silver.quarantine")
    assert (BROKEN.replace("7", "8") in difference["in_table"], BROKEN in difference["from_bronze"]) == (True, True)


def test_a_bronze_file_replaced_by_another_is_told_by_its_length_or_by_what_it_says(lake: Lake, ask: Ask) -> None:
    files = [Path(uri) for uri in DeltaTable(lake.table_path("bronze.events").local).file_uris()]
    file = max(files, key=lambda of_batch: of_batch.stat().st_size)  # that of the first batch
    length, rows = file.stat().st_size, pq.read_table(file, partitioning=None)
    forged = with_cell(rows, 0, "payload", rows["payload"][0].as_py().replace(b'"value": ', b'"value": 9'))
    replace_by(file, forged, None)
    code, _, err = ask("ledger")
    assert code == 1
    assert f"has {file.stat().st_size} bytes, its table's log says {length}: {forged.num_rows} rows of bronze batches" in err
    replace_by(file, forged, length)
    code, found, _ = ask("verify")
    assert code == 1
    assert set(differences(found)) >= {"silver.readings", "gold.kitchen_aggregates"}
    row = identity(rows.slice(0, 1).to_pylist()[0] | {"part": 0})
    assert row in differences(found)["silver.readings"][0]["row"].replace(",", "")


def replace_by(file: Path, rows: pa.Table, length: int | None) -> None:
    """A valid file of these rows, of just that many bytes: what it lacks it gets as a remark."""
    remark, smallest = 0, {"compression": "zstd", "compression_level": 19, "write_statistics": False, "store_schema": False}
    for _ in range(3):
        with pq.ParquetWriter(file, rows.schema, **smallest) as written:
            written.write_table(rows)
            written.add_key_value_metadata({"remark": "x" * remark})
        if length in {None, file.stat().st_size}:
            return
        remark += (length or 0) - file.stat().st_size
    raise AssertionError(f"{file} has {file.stat().st_size} bytes, not {length}")
