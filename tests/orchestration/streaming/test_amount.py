"""Small micro-batches are written without Spark, and hold what Spark would have written."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.streaming import amount
from silver.spec import PayloadFormat
from tests.lakes import SHAPE, conf, event, land, minutes, multiset, run, table

START = datetime(2026, 1, 5, tzinfo=UTC)
OF_THE_RUN = ["ingested_at", "ingested_on"]


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conf]:
    """The same files, with a late, a double, an unreadable and a future row, in two batches: as configured, and all by Spark."""
    made = {}
    for name, length in (("small", 16_777_216), ("none", 0)):
        folder = tmp_path_factory.mktemp(name)
        made[name] = conf(folder)
        first = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 60))]
        land(folder, "1.json", [*first, first[3], "{broken", event("oven", "temperature", 9, datetime(2099, 1, 1, tzinfo=UTC))])
        with patch.object(amount, "SMALL_BATCH_BYTES", length):
            run(made[name], spark)
        land(
            folder,
            "2.json",
            [
                event("oven", "temperature", 1000, START + timedelta(seconds=30)),
                *(event("oven", "power", n, START.replace(hour=2)) for n in (1, 2)),
            ],
        )
        with patch.object(amount, "SMALL_BATCH_BYTES", length):
            run(made[name], spark)
    return made


def test_small_batches_are_written_without_spark_and_with_0_none_is(lakes: dict[str, Conf]) -> None:
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
    ("most", "shape", "is_little"),
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
    most: int, shape: PayloadFormat, is_little: bool, lakes: dict[str, Conf], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(lakes["small"], sources={"plant": replace(lakes["small"].sources["plant"], payload_format=shape)})
    monkeypatch.setattr(amount, "MOST_READINGS", most)
    assert amount.is_little_read(Lake(made), "silver.readings", "bronze.events", 0) == is_little


def _writers(made: Conf, name: str) -> list[str]:
    """Of commits that brought rows."""
    history = DeltaTable(made.lake.joinpath(*name.split("."))).history()
    found = [commit.get("engineInfo", "") for commit in history if commit["operation"] == "WRITE"]
    assert len(found) == 2
    return found
