"""Windows that a micro-batch closed, and those that late rows change: gold has the same rows, however they are cut into pieces."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from gold.windows import vectors
from gold.windows.spec import Group, Vector
from orchestration.conf.model import Conf, Device
from orchestration.engine import windows
from orchestration.engine.windows import Limits, Piece, in_pieces, read
from orchestration.location import Location
from orchestration.storage.tables import LakeStore, Table
from tests.lakes import conf, copied, event, land, recorded, run
from tests.rows import at

METRICS = ("temperature", "power")
FILLED = Vector("device", METRICS, 7200)
GROUPS = (
    Group("ovens", METRICS, 600, "plant", FILLED),
    Group("fridges", METRICS, 600, "plant", FILLED),
    Group("hot", ("temperature",), 600, "plant", Vector("group", ("oven.temperature", "grill.temperature"), 1800)),
    Group("counted", METRICS, 600, "plant"),
)
DEVICES = {"oven": ("ovens", "hot", "counted"), "grill": ("ovens", "hot"), "fridge": ("fridges", "counted")}


def declared(folder: Path) -> Conf:
    devices = {name: Device(name, groups) for name, groups in DEVICES.items()}
    return conf(folder, groups={group.name: group for group in GROUPS}, devices=devices)


def brought_in(made: Conf, spark: SparkSession, hours: Iterable[int]) -> Conf:
    """A batch an hour: `power` in windows of an hour, in the second hour none of it but a row for the first, which is late."""
    power = {12: ("12:05", 19.0), 13: ("12:15", 100.0), 14: ("14:05", 21.0)}
    for hour in hours:
        minute, value = power[hour]
        times = [at(f"{hour}:{minute:02}") for minute in range(0, 60, 10)]
        of_ovens = [event(name, "temperature", hour + 0.5, time) for name in ("oven", "grill") for time in times]
        land(made.folder, f"{hour}.jsonl", [*of_ovens, *(event(name, "power", value, at(minute)) for name in ("oven", "fridge"))])
        run(made, spark)
    return made


def content(made: Conf) -> dict[str, list[str]]:
    """Rows of gold, without the order of files."""
    tables = [f"{group.name}_{kind}" for group in GROUPS for kind in ("aggregates", "vectors")]
    return {name: sorted(map(str, recorded(LakeStore(made), f"gold.{name}").to_pylist())) for name in tables}


@pytest.fixture(scope="module")
def after_an_hour(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """No window is closed yet."""
    return brought_in(declared(tmp_path_factory.mktemp("first")), spark, [12])


@pytest.fixture(scope="module")
def in_one_piece(after_an_hour: Conf, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return brought_in(copied(after_an_hour, tmp_path_factory.mktemp("whole")), spark, [13, 14])


def test_windows_of_each_kind_are_there(in_one_piece: Conf) -> None:
    rows = content(in_one_piece)
    assert rows["counted_vectors"] == []
    assert any("'revision': 1" in row for row in rows["ovens_vectors"])
    assert all(rows[name] for name in rows if name != "counted_vectors")


@pytest.mark.parametrize(
    "limits", [pytest.param(Limits(rows=8), id="windows"), pytest.param(Limits(bytes=1000), id="bytes", marks=pytest.mark.slow)]
)
def test_pieces_hold_the_same_rows_as_the_whole(
    limits: Limits, after_an_hour: Conf, in_one_piece: Conf, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "LIMITS", limits)
        patch.setattr(vectors.in_blocks, "__defaults__", (1,))
        made = brought_in(copied(after_an_hour, tmp_path), spark, [13, 14])
    assert content(in_one_piece) == content(made)
    for kind in ("aggregates", "vectors"):  # one commit a batch, and two amendments
        files, of_whole = (DeltaTable(of.lake.local / "gold" / kind).file_uris() for of in (made, in_one_piece))
        assert len(files) == len(of_whole) == 4


def test_a_vector_is_filled_from_the_newest_revision_of_a_window_of_an_earlier_batch(in_one_piece: Conf) -> None:
    rows = recorded(LakeStore(in_one_piece), "gold.ovens_vectors").to_pylist()
    vector_of = {(row["entity"], row["window_end"], row["revision"]): (row["vector"], row["filled"]) for row in rows}
    assert vector_of["oven", at("13:10"), 0] == ([13.5, 19.0], ["power"])
    assert vector_of["oven", at("13:10"), 1] == ([13.5, 119.0], ["power"])
    assert vector_of["oven", at("14:10"), 0] == ([14.5, 119.0], ["power"])


FIRST, LAST = (int(at(time).timestamp()) for time in ("12:00", "12:50"))
ROWS = pa.Table.from_pylist(
    [
        {"device_group": "kitchen", "device_id": f"dévice {d}", "window_end": at("12:00") + timedelta(minutes=10 * n), "value": d + n}
        for d in range(40)
        for n in range(6)
    ],
    pa.schema(
        [("device_group", pa.string()), ("device_id", pa.string()), ("window_end", pa.timestamp("us", "UTC")), ("value", pa.int64())]
    ),
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table("gold.aggregates", Location(tmp_path / "table"), "", ())
    write_deltalake(made.location.local, ROWS)
    return made


def values(tables: list[pa.Table]) -> list[str]:
    return sorted(str(row) for rows in tables for row in rows.to_pylist())


@pytest.mark.parametrize("entity", ["device_id", "device_group"])
def test_pieces_that_fit_hold_every_row_once_and_alike_in_spark(
    entity: str, table: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "LIMITS", Limits(rows=50))
    cut = [*in_pieces(Piece(FIRST, LAST, entity), lambda piece, limits: read(table, piece.predicate(), limits))]
    assert len(cut) > 4
    assert all(len(rows) <= 50 for _, rows in cut)
    assert values([rows for _, rows in cut]) == values([ROWS])
    in_spark = spark.createDataFrame(ROWS)
    for piece, rows in cut:
        assert values([in_spark.where(piece.predicate(instant="timestamp_micros")).toArrow()]) == values([rows])
        assert values([piece.of(ROWS)]) == values([rows])


def test_one_end_of_one_entity_is_taken_as_it_is_however_large(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LIMITS", Limits(rows=1))
    cut = [*in_pieces(Piece(FIRST, LAST, "device_group"), lambda piece, limits: read(table, piece.predicate(), limits))]
    assert {len(rows) for _, rows in cut} == {0, 40}
    assert values([rows for _, rows in cut]) == values([ROWS])


def test_rows_of_some_values_only(table: Table) -> None:
    rows = read(table, "value >= 3", None, {"device_id": ["dévice 1", "dévice 9"]})
    assert rows is not None
    assert sorted(rows["value"].to_pylist()) == [3, 4, 5, 6, 9, 10, 11, 12, 13, 14]


def test_a_table_with_deletion_vectors_is_read(table: Table, spark: SparkSession) -> None:
    spark.sql(f"alter table delta.`{table.location}` set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"delete from delta.`{table.location}` where value >= 3 and value < 40")
    rows = read(table, "true", None)
    assert rows is not None
    assert sorted(rows["value"].to_pylist()) == sorted(value for value in ROWS["value"].to_pylist() if value < 3 or value >= 40)
