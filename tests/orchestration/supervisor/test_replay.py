"""Replay: the next generation holds what the one before held, goes on as that one would have, and takes its place at once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gold.windows.spec import Late
from orchestration.conf.model import Conf
from orchestration.engine import writing
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.errors import TidemarkError
from orchestration.jobs import ranges
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.generations import active_generation
from orchestration.storage.snapshots import all_snapshots
from orchestration.supervisor.replay import STEPS
from orchestration.supervisor.rollback import roll_back
from silver.spec import Time
from tests.lakes import KITCHEN, PRESSES, SHAPE, conf, differences, event, land, minutes, recorded, replay, run, table, with_batches_of
from tests.rows import at

START = at("2026-01-05T00:00:00")
MEASURED = "device_id, metric, event_time, value, unit, groups, source, bronze_batch, bronze_row, part"
TABLES = {
    "silver.readings": MEASURED,
    "silver.late": MEASURED,
    "silver.quarantine": "broken_rules, payload, source, bronze_batch, bronze_row, part",
    "silver.duplicates": f"{MEASURED.replace(', unit, groups', '')}, kept_batch, kept_row, kept_part",
    "gold.aggregates": "device_group, device_id, metric, window_start, window_end, value, count, min, max, sum, latest",
    "gold.kitchen_aggregates": "device_id, metric, window_start, window_end, value, count, min, max, sum, latest",
    "gold.kitchen_vectors": "entity, window_start, window_end, vector, missing, filled",
    "gold.kitchen_late": "device_id, metric, event_time, value, window_end, bronze_batch",
    "gold.presses_aggregates": "device_id, metric, window_start, window_end, value, count, min, max, sum, latest",
    "gold.presses_vectors": "entity, window_start, window_end, vector, missing, filled",
    "gold.presses_late": "device_id, metric, event_time, value, window_end, bronze_batch",
}


def all_of(made: Conf) -> Mapping[str, list[str]]:
    """Every table by its newest snapshot."""
    engine = DuckDbEngine(made, Limits())
    answers = {name: engine.ask(Question(f"select {columns} from {name}")).rows.to_pylist() for name, columns in TABLES.items()}
    return {name: sorted(map(str, rows)) for name, rows in answers.items()}


def in_process(_: pytest.MonkeyPatch) -> None:
    """As streams write few readings."""


def by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As streams write many readings."""
    monkeypatch.setattr(writing, "MANY_BYTES", 0)


def kitchen_and_press(start: datetime, count: int, value: float = 1.0) -> list[str]:
    return [event(device, metric, value + n, time) for device, metric in DEVICES for n, time in enumerate(minutes(start, count))]


DEVICES = (("oven", "temperature"), ("oven", "power"), ("fridge", "temperature"), ("press", "vibration"))
FIRST = [*kitchen_and_press(START, 100), event("oven", "power", 7, START), "{broken", event("oven", "power", 1, at("2099-01-01T00:00:00"))]
SECOND = [  # Silver's watermark is at minute 89, that of the groups at 98.
    event("oven", "temperature", 500, START + timedelta(minutes=5.5)),
    event("oven", "temperature", 300, START + timedelta(minutes=89.5)),
    event("press", "vibration", 300, START + timedelta(minutes=89.5)),
    *kitchen_and_press(START + timedelta(minutes=95), 40, 96),
]
THIRD = [event("press", "vibration", 900, START + timedelta(minutes=124.5)), *kitchen_and_press(START + timedelta(minutes=5), 3, 6)]
FILES = {"1.json": FIRST, "2.json": SECOND, "3.json": THIRD}
"""In silver's lateness and behind it, in that of the groups and behind it; doubled within it, and across it."""
AFTER = [event("oven", "temperature", 70, START + timedelta(minutes=50.5)), *kitchen_and_press(START + timedelta(minutes=130), 60, 131)]


@pytest.fixture(scope="module")
def of_three_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Gold's lateness is shorter than silver's, so some rows are late for their group alone."""
    groups = {"kitchen": replace(KITCHEN, lateness_seconds=60), "presses": replace(PRESSES, lateness_seconds=60, late=Late.KEEP_ASIDE)}
    made = conf(tmp_path_factory.mktemp("replay"), groups=groups)
    for name, lines in FILES.items():
        land(made.folder, name, lines)
        run(made, spark)
    return made


def test_a_replay_holds_the_same_rows(spark: SparkSession, of_three_files: Conf) -> None:
    made = of_three_files
    before = all_of(made)
    assert all(before.values()), {name: len(rows) for name, rows in before.items()}
    assert replay(made, spark) == 2
    assert all_of(made) == before
    assert all_snapshots(made.lake)[-1].generation == 2
    assert differences(made) == []
    with pytest.raises(TidemarkError, match="there is no other generation 9 to roll back to; there is 1"):
        roll_back(made.lake, 9)


@pytest.mark.slow
def test_a_reading_that_conf_now_gives_the_time_of_an_earlier_one_is_its_duplicate(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "ROWS_AT_ONCE", 1)
    made = with_batches_of(conf(tmp_path), 1)
    for number, time in enumerate(("11:00:00Z", "11:05:00Z", "12:00:00")):
        land(tmp_path, f"{number}.json", [json.dumps({"device": "oven", "metric": "power", "value": number, "ts": f"2026-01-05T{time}"})])
    run(made, spark)
    local = replace(SHAPE, time=Time("ts", time_zone="Europe/Berlin"))
    in_berlin = replace(made.sources["plant"], payload_format=local)
    now = replace(made, sources={"plant": in_berlin})
    assert [len(table(made, name)) for name in ("silver.readings", "silver.duplicates")] == [3, 0]
    assert replay(now, spark) == 2
    rows = {name: recorded(Lake(now), name).sort_by("value").to_pylist() for name in ("silver.readings", "silver.duplicates")}
    assert {name: [row["value"] for row in rows[name]] for name in rows} == {"silver.readings": [0.0, 1.0], "silver.duplicates": [2.0]}
    assert not differences(now)


@pytest.mark.slow
def test_after_a_replay_a_lake_goes_on_alike_and_can_be_taken_back(spark: SparkSession, of_three_files: Conf) -> None:
    """The lake is as the test before has left it, or holds its first generation alone."""
    made = of_three_files
    if active_generation(made.lake).generation == 1:
        replay(made, spark)
    before, first = all_of(made), next(pinned for pinned in reversed(all_snapshots(made.lake)) if pinned.generation == 1)
    land(made.folder, "4.json", AFTER)
    run(made, spark)
    after = all_of(made)
    assert differences(made) == []
    # The first generation has never been disturbed.
    assert roll_back(made.lake, 1).generation == 1
    assert all_of(made) == before
    assert all_snapshots(made.lake)[-1].versions == first.versions
    run(made, spark)
    assert all_of(made) == after != before
    assert differences(made) == []


@pytest.mark.slow
def test_a_replay_of_a_group_or_since_a_day_holds_the_same_rows_and_goes_on_alike(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path)
    for name in ("1.json", "2.json"):
        land(tmp_path, name, FILES[name])
        run(made, spark)
    before = all_of(made)
    assert replay(made, spark, since=date(2100, 1, 1)) == 2  # nothing is judged anew, all is copied
    assert replay(made, spark, group="kitchen") == 3
    assert all_of(made) == before
    land(tmp_path, "4.json", AFTER)
    run(made, spark)
    after = all_of(made)
    assert differences(made) == []
    assert roll_back(made.lake, 1).generation == 1
    run(made, spark)
    assert all_of(made) == after != before


@pytest.mark.slow
@pytest.mark.parametrize("engine", [in_process, by_spark])
def test_a_replay_builds_on_to_what_came_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Callable[[pytest.MonkeyPatch], None]
) -> None:
    engine(monkeypatch)
    made = conf(tmp_path)

    def come(names: Sequence[str]) -> None:
        for name in names:
            land(tmp_path, name, FILES[name])
            run(made, spark)

    come(["1.json"])
    built = all_snapshots(made.lake)[-1].bronze_batch
    ended, left = Progress.ended, [["2.json", "3.json"]]

    def ended_and_come(progress: Progress, flow: str) -> None:
        ended(progress, flow)
        if flow == STEPS[0] and left:  # the readings are built
            come(left.pop())

    monkeypatch.setattr(Progress, "ended", ended_and_come)
    assert replay(made, spark) == 2
    assert active_generation(made.lake).bronze_batch == built + 2  # by batch jobs, and not by the stream
    assert differences(made) == []
    of_replay = all_of(made)
    assert all(of_replay[name] for name in ("silver.readings", "silver.late", "silver.duplicates", "gold.kitchen_aggregates"))
    roll_back(made.lake, 1)
    assert all_of(made) == of_replay
