"""A continuous run: events never stop coming, and what passes its gate comes to gold."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf, GateMode, Quality
from orchestration.engine import writing
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import is_table
from orchestration.storage.snapshots import all_snapshots, find_snapshot
from orchestration.storage.source_offsets import source_offsets
from tests.lakes import conf, event, land, minutes, run_until, table
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
        return len({snapshot.bronze_batch for snapshot in all_snapshots(made.lake)}) > 1

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
    newest = newest_batch(made.lake / "checkpoints/silver.readings/offsets")
    return max((offset.bronze_batch for offset in offsets.values()), default=-1) - newest, newest


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


def test_a_run_hands_over_what_passes(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, quality=Quality(gates={"silver.readings": GateMode.HOLD}))
    times = minutes(at("12:00:00"), 60)
    land(tmp_path, "first.jsonl", [event("oven", "temperature", 20.0, time) for time in times])

    def land_again() -> bool:
        snapshot = find_snapshot(made.lake)
        if snapshot is not None and not (tmp_path / "landing" / "second.jsonl").exists():
            # In the order of time but for one row, which is late.
            lines = [event("oven", "temperature", 21.0, time) for time in (*minutes(at("13:00:00"), 60), times[5].replace(second=30))]
            land(tmp_path, "second.jsonl", lines)
        return snapshot is not None and snapshot.bronze_batch == 1

    run_until(made, spark, land_again)
    windows = table(made, "gold.kitchen_aggregates")
    assert set(windows[windows["revision"] == 1]["count"]) == {11}  # the late row has passed too
