"""A continuous run to which events never stop coming."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine import writing
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import is_table
from orchestration.storage.snapshots import all_snapshots
from orchestration.storage.source_offsets import source_offsets
from tests.lakes import conf, event, land, run_until
from tests.rows import at


class Landing:
    """Where a file comes each time that it is looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()

    def grow(self) -> None:
        number = next(self._numbers)
        land(self._folder, f"{number:04d}.jsonl", [event("oven", "temperature", 20.0, at(f"12:{number // 60 % 60:02d}:{number % 60:02d}"))])


def test_snapshots_are_pinned_while_events_keep_coming(spark: SparkSession, tmp_path: Path) -> None:
    made, landing = conf(tmp_path), Landing(tmp_path)

    def is_pinned_again() -> bool:
        landing.grow()
        return len({each.bronze_batch for each in all_snapshots(made.lake)}) > 1

    run_until(made, spark, is_pinned_again)


@pytest.fixture
def slow_silver(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = writing.readings

    def slow(*batch: Any) -> None:
        time.sleep(1.5)
        quick(*batch)

    monkeypatch.setattr(writing, "readings", slow)


def batches_ahead(made: Conf) -> tuple[int, int]:
    """How many batches bronze is ahead of silver, and how many silver has begun."""
    events = made.lake / "bronze/events"
    offsets = source_offsets(events) if is_table(events) else {}
    begun = newest_batch(made.lake / "checkpoints/silver.readings/offsets")
    return max((known.bronze_batch for known in offsets.values()), default=-1) - begun, begun


@pytest.mark.usefixtures("slow_silver")
def test_while_silver_is_behind_files_are_claimed_and_come_to_bronze_together_later(spark: SparkSession, tmp_path: Path) -> None:
    made, landing, ahead, claimed = conf(tmp_path), Landing(tmp_path), [], []

    def is_long_enough() -> bool:
        landing.grow()
        batches, begun = batches_ahead(made)
        ahead.append(batches)
        claimed.append(len(list((made.lake.local / "intake/plant").glob("*"))) - begun - batches)
        return begun >= 6

    run_until(made, spark, is_long_enough)
    assert max(ahead) <= 2
    assert max(claimed) > 3
