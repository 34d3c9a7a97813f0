"""Few rows of a micro-batch are handed to the process, which writes one file; many are written by the tasks that have them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine import writing
from orchestration.location import Location
from orchestration.storage.delta import added, version_of
from tests.lakes import KITCHEN, conf, event, land, minutes, multiset, run, table, with_batches_of

START = datetime(2026, 1, 5, tzinfo=UTC)
OF_THE_RUN = ["ingested_at", "ingested_on"]


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conf]:
    """The same files, with a late, a double, an unreadable and a future row, in two batches: as ever, by tasks and by Spark."""
    made = {}
    for name, few, many in (("small", writing.FEW_BYTES, writing.MANY_BYTES), ("none", -1, writing.MANY_BYTES), ("spark", 0, -1)):
        made[name] = brought_in(tmp_path_factory.mktemp(name), spark, few, many)
    return made


def brought_in(folder: Path, spark: SparkSession, few: int, many: int) -> Conf:
    """A task that has more bytes than `few` writes them, Spark batches of more bytes than `many`."""
    made = with_batches_of(conf(folder, groups={"kitchen": KITCHEN}), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "FEW_BYTES", few)
        patch.setattr(writing, "MANY_BYTES", many)
        first = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 60))]
        land(folder, "1.json", [*first, first[3], "{broken", event("oven", "temperature", 9, datetime(2099, 1, 1, tzinfo=UTC))])
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


def test_few_rows_of_all_tasks_become_one_file_and_many_one_of_each_task(lakes: dict[str, Conf]) -> None:
    assert _files(lakes["small"], "silver.readings") == [1, 1]
    assert [sum(_files(lakes[name], "silver.readings")) > 2 for name in ("none", "spark")] == [True] * 2
    assert [*lakes["spark"].lake.local.glob("silver/readings/.writing*")] == []


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
        small, *others = (table(made, name) for made in lakes.values())
        shared = [column for column in small.columns if column not in {*OF_THE_RUN, "position", "received_at"}]
        assert len(small) > 0, name
        assert [multiset(other, shared) for other in others] == [multiset(small, shared)] * 2, name


def _files(made: Conf, name: str) -> list[int]:
    """Of each commit that brought rows, how many files it added."""
    path = Location(made.lake.local.joinpath(*name.split(".")))
    return [count for version in range(version_of(path) + 1) if (count := len(added(path, version)))]
