"""Windows that a micro-batch closed: a few are written without Spark, and the tables are those of many."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gold.spec import Group, Vector
from orchestration.conf.model import Conf, Device
from orchestration.jobs import amended_few, amendments
from orchestration.streaming import few_windows, windows
from tests.lakes import conf, event, land, run
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


def brought_in(folder: Path, spark: SparkSession) -> Conf:
    """Three batches: `power` in windows of an hour, in the second hour none of it but a row for the first, which is late."""
    devices = {name: Device(name, groups) for name, groups in DEVICES.items()}
    made = conf(folder, groups={group.name: group for group in GROUPS}, devices=devices)
    power = {12: ("12:05", 19.0), 13: ("12:15", 100.0), 14: ("14:05", 21.0)}
    for hour, (minute, value) in power.items():
        times = [at(f"{hour}:{each:02}") for each in range(0, 60, 10)]
        of_ovens = [event(name, "temperature", hour + 0.5, time) for name in ("oven", "grill") for time in times]
        land(folder, f"{hour}.jsonl", [*of_ovens, *(event(name, "power", value, at(minute)) for name in ("oven", "fridge"))])
        run(made, spark)
    return made


def content(made: Conf) -> dict[str, list[str]]:
    """Rows of gold, without the order of files."""
    tables = [f"{group.name}_{kind}" for group in GROUPS for kind in ("aggregates", "vectors")]
    return {name: sorted(map(str, DeltaTable(made.lake / "gold" / name).to_pyarrow_table().to_pylist())) for name in tables}


@pytest.fixture(scope="module")
def few(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is written without Spark."""
    return content(brought_in(tmp_path_factory.mktemp("few"), spark))


def test_windows_of_each_kind_are_there(few: dict[str, list[str]]) -> None:
    assert few["counted_vectors"] == []
    assert any("'revision': 1" in row for row in few["ovens_vectors"])
    assert all(few[name] for name in few if name != "counted_vectors")


@pytest.mark.parametrize(
    "bounds",
    [
        (few_windows.Bounds(0, 0, 0), "MOST_NAME_BYTES", -1),
        (replace(few_windows.LARGE, name_bytes=0), "MOST_NAME_BYTES", 0),
        (replace(few_windows.LARGE, more_bytes=0), "MOST_BYTES", 0),
    ],
    ids=["windows", "names of devices", "vectors"],
)
def test_windows_written_without_spark_are_those_that_spark_writes_also_where_they_are_amended(
    bounds: tuple[few_windows.Bounds, str, int],
    few: dict[str, list[str]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_closed, of_amended, most = bounds
    by_spark = [counted(monkeypatch, module, name) for module, name in ((windows, "_append"), (amendments, "_append_amended"))]
    monkeypatch.setattr(few_windows, "SMALL", of_closed)
    monkeypatch.setattr(few_windows, "LARGE", of_closed)
    monkeypatch.setattr(amended_few, of_amended, most)
    made = brought_in(tmp_path, spark)
    assert few == content(made)
    assert all(by_spark)
    history = DeltaTable(made.lake / "gold" / "ovens_vectors").history()
    assert all("Spark" in commit["engineInfo"] for commit in history if commit["operation"] == "WRITE")


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[int]:
    """A list that grows with each call of a function."""
    calls: list[int] = []
    called: Callable[..., Any] = getattr(module, name)

    def counting(*given: Any) -> Any:
        calls.append(len(given))
        return called(*given)

    monkeypatch.setattr(module, name, counting)
    return calls


def test_streams_that_need_more_than_a_little_memory_take_turns(
    few: dict[str, list[str]], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_spark, turn = counted(monkeypatch, windows, "_append"), MagicMock()
    monkeypatch.setattr(few_windows, "SMALL", replace(few_windows.SMALL, more_bytes=0))
    monkeypatch.setattr(few_windows, "_LARGE", turn)
    assert few == content(brought_in(tmp_path, spark))
    assert turn.__enter__.called
    assert by_spark == []


def test_a_vector_is_filled_from_the_newest_revision_of_a_window_of_an_earlier_batch(spark: SparkSession, tmp_path: Path) -> None:
    made = brought_in(tmp_path, spark)
    rows = DeltaTable(made.lake / "gold" / "ovens_vectors").to_pyarrow_table().to_pylist()
    found = {(row["entity"], row["window_end"], row["revision"]): (row["vector"], row["filled"]) for row in rows}
    assert found["oven", at("13:10"), 0] == ([13.5, 19.0], ["power"])
    assert found["oven", at("13:10"), 1] == ([13.5, 119.0], ["power"])
    assert found["oven", at("14:10"), 0] == ([14.5, 119.0], ["power"])
