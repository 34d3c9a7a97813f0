"""Small micro-batches are written without Spark, and hold what Spark would have written."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine import writing
from orchestration.engine.lake import Lake
from silver.spec import PayloadFormat
from tests.lakes import SHAPE, conf, event, land, minutes, multiset, run, table

START = datetime(2026, 1, 5, tzinfo=UTC)
OF_THE_RUN = ["ingested_at", "ingested_on"]


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conf]:
    """The same files, with a late, a double, an unreadable and a future row, in two batches: as ever, and readings by Spark."""
    made = {}
    for name, most in (("small", writing.MAX_SMALL_BYTES), ("none", 0)):
        made[name] = brought_in(tmp_path_factory.mktemp(name), spark, most)
    return made


def brought_in(folder: Path, spark: SparkSession, most: int) -> Conf:
    """What has more bytes than these is not small."""
    made = conf(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "MAX_SMALL_BYTES", most)
        first = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 60))]
        land(folder, "1.json", [*first, first[3], "{broken", event("oven", "temperature", 9, datetime(2099, 1, 1, tzinfo=UTC))])
        run(made, spark)
        land(
            folder,
            "2.json",
            [
                event("oven", "temperature", 1000, START + timedelta(seconds=30)),
                *(event("oven", "power", n, START.replace(hour=2)) for n in (1, 2)),
            ],
        )
        run(made, spark)
    return made


def test_small_batches_are_written_without_spark_and_others_by_it(lakes: dict[str, Conf]) -> None:
    assert not any("Spark" in writer for writer in _writers(lakes["small"], "silver.readings"))
    assert all("Spark" in writer for writer in _writers(lakes["none"], "silver.readings"))


def test_rows_do_not_depend_on_who_wrote_them(lakes: dict[str, Conf]) -> None:
    for name in (
        "bronze.events",
        "silver.readings",
        "silver.quarantine",
        "silver.late",
        "silver.duplicates",
        "gold.kitchen_aggregates",
        "gold.kitchen_vectors",
    ):
        small, none = (table(made, name) for made in lakes.values())
        shared = [column for column in small.columns if column not in {*OF_THE_RUN, "position", "received_at"}]
        assert len(small) > 0, name
        assert multiset(small, shared) == multiset(none, shared), name


@pytest.mark.parametrize(
    ("most", "shape", "is_small"),
    [
        (66, SHAPE, True),
        (62, SHAPE, False),
        (132, replace(SHAPE, metrics={"temperature": "t", "power": "p"}), True),
        (125, replace(SHAPE, metrics={"temperature": "t", "power": "p"}), False),
        (1_000_000, replace(SHAPE, each="list"), True),
        (800, replace(SHAPE, each="list"), False),  # 63 events of 75 bytes could hold more
    ],
)
def test_a_batch_that_may_hold_many_readings_is_not_small(
    most: int, shape: PayloadFormat, is_small: bool, lakes: dict[str, Conf], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(lakes["small"], sources={"plant": replace(lakes["small"].sources["plant"], payload_format=shape)})
    monkeypatch.setattr(writing, "MAX_READINGS", most)
    assert writing.is_small(Lake(made), "silver.readings", "bronze.events", 0) == is_small


def _writers(made: Conf, name: str) -> list[str]:
    """Of commits that brought rows."""
    history = DeltaTable(made.lake.local.joinpath(*name.split("."))).history()
    found = [commit.get("engineInfo", "") for commit in history if commit["operation"] == "WRITE"]
    assert len(found) == 2
    return found
