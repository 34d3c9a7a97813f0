"""A room whose recordings come one by one in the order of their names, which is not that of their times: days of rows are late.

`make room ROOM=folder` (`--room`) does it with the three files of the walk-through in README; else it is three short ones, two of which
overlap.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation.account import ALARMS, account, by_day, open_tables
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.load import load
from orchestration.conf.model import Conf, Device, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.quality.check import Scope, check
from orchestration.quality.outcome import Outcome
from orchestration.quality.suites import suites
from silver.spec import Origin
from tests.lakes import assert_same, latest, run, table, with_batches_of
from tests.test_readme import walk_through

FILES = ("datatest.txt", "datatest2.txt", "datatraining.txt")
COLUMNS = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio", "Occupancy")
METRICS = dict(zip(COLUMNS, ("temperature", "humidity", "light", "co2", "humidity_ratio", "occupancy"), strict=True))
ROW = ["device_id", "metric", "event_time"]


@dataclass(frozen=True)
class Room:
    """`made`: its lake after all files; `readings`: what they hold, by pandas; `is_real`: of the walk-through."""

    made: Conf
    readings: pd.DataFrame
    is_real: bool


@pytest.fixture(scope="module")
def room(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Room:
    """One device, the room; it closes its last windows when nothing comes. A file is a batch, the real ones are a run each."""
    folder = tmp_path_factory.mktemp("room")
    given: Path | None = pytestconfig.getoption("room")
    recorded = given or short_recordings(folder / "recorded")
    declared = load(walk_through(folder))
    (source,), group = declared.sources.values(), replace(declared.groups["room"], idle_close_seconds=0)
    assert isinstance(source.transport, LandingFolder)
    shape = replace(source.payload_format, device=Origin(constant="office"))
    made = replace(
        declared,
        sources={"room": Source("room", shape, LandingFolder(folder / "landing", source.transport.files, settle_seconds=0))},
        devices={"office": Device("office", ("room",))},
        groups={"room": group},
    )
    made = with_batches_of(made, 1)
    (folder / "landing").mkdir()
    for n, name in enumerate(FILES):
        landed = shutil.copy(recorded / name, folder / "landing")
        os.utime(landed, (1_700_000_000 + n, 1_700_000_000 + n))
        if given or name == FILES[-1]:
            run(made, spark)
    return Room(made, readings_of(folder / "landing"), given is not None)


def short_recordings(folder: Path) -> Path:
    """Three hours of a day, three of a week later, and four that begin before the end of the first, half a minute between their rows."""
    folder.mkdir()
    begins = pd.to_datetime(["2015-02-02 14:19:00", "2015-02-11 14:48:00", "2015-02-02 16:30:30"])
    for n, (name, begin) in enumerate(zip(FILES, begins, strict=True)):
        rows = [cells(n * 1000 + minute, begin + pd.Timedelta(minutes=minute)) for minute in range(180 + 30 * n)]
        header = ",".join(f'"{column}"' for column in ("date", *COLUMNS))  # one name fewer than the rows have values
        (folder / name).write_text("\n".join([header, *rows, ""]))
    return folder


def cells(number: int, at: pd.Timestamp) -> str:
    measured = (20 + number % 7 / 3, 25 + number % 11 / 7, number % 500, 400 + number % 13 * 1.1, 0.004 + number % 5 / 1e5, number % 2)
    return ",".join([f'"{number}"', f'"{at}"' if number % 2 else f"{at}", *map(str, measured)])


def readings_of(folder: Path) -> pd.DataFrame:
    """Without round_trip, pandas is off in the last digits of what it reads."""
    wide = pd.concat(pd.read_csv(folder / name, index_col=0, float_precision="round_trip").assign(file=name) for name in FILES)
    long = wide.rename(columns=METRICS).melt(["file", "date"], list(METRICS.values()), "metric", "value").astype({"value": "float64"})
    times = pd.to_datetime(long["date"]).dt.tz_localize("Europe/Brussels").dt.tz_convert("UTC")
    return long.assign(device_id="office", event_time=times)


def windows_of(room: Room, readings: pd.DataFrame) -> set[tuple[object, ...]]:
    """Metric and end of every window that holds a reading; no metric of the room has a slide."""
    steps = readings["metric"].map({name: pd.Timedelta(seconds=metric.window_seconds) for name, metric in room.made.metrics.items()})
    starts = (readings["event_time"] - pd.Timestamp(0, tz="UTC")) // steps * steps
    return set(zip(readings["metric"], pd.Timestamp(0, tz="UTC") + starts + steps, strict=True))


def test_the_readings_are_what_pandas_reads_and_every_window_is_emitted(room: Room) -> None:
    """That the windows hold what the readings give is up to verify."""
    readings = pd.concat([table(room.made, "silver.readings"), table(room.made, "silver.late")])
    assert_same(readings, room.readings, ROW, [*ROW, "value"])
    windows = latest(room.made, "gold.room_aggregates", ["device_id", "metric", "window_end"])
    assert rows_of(windows, ["metric", "window_end"]) == windows_of(room, room.readings)
    vectors = latest(room.made, "gold.room_vectors", ["entity", "window_end"])
    assert set(vectors["window_end"]) == {end for _, end in windows_of(room, room.readings)}


def test_days_of_rows_are_late_and_the_history_shows_the_windows_that_they_changed(room: Room) -> None:
    late, last = table(room.made, "silver.late"), room.readings["file"] == FILES[-1]
    assert rows_of(late, ROW) == rows_of(room.readings[last], ROW)
    windows, before, of_late = (windows_of(room, rows) for rows in (room.readings, room.readings[~last], room.readings[last]))
    changed = len(before & of_late)
    assert (changed > 0) != room.is_real  # the files of the walk-through do not overlap
    history = table(room.made, "gold.room_aggregates")
    assert len(history) == len(windows) + changed
    assert history.revision.value_counts().to_dict() == {0: len(before), 1: len(of_late)}  # 0 is what came in time


def test_ledger_and_verify_are_clean(room: Room) -> None:
    (day,) = by_day(account(open_tables(Lake(room.made))).batches)
    assert {alarm: day[alarm] for alarm in ALARMS} == dict.fromkeys(ALARMS, 0)
    assert day["readings"] + day["late"] == len(room.readings) == len(METRICS) * day["events"]
    report = verify(latest_snapshot(room.made), room.made)
    assert [difference for outcome in report.outcomes for difference in outcome.first] == []
    assert {outcome.table: outcome.rows for outcome in report.outcomes}["bronze.events"] == len(room.readings)


def test_the_suites_of_the_room_pass_and_a_bound_that_is_wrong_fails_by_name(room: Room, tmp_path: Path) -> None:
    assert failed(room.made) == {}
    shutil.copytree(room.made.folder, tmp_path / "conf")
    suite = tmp_path / "conf" / "expectations" / "room.yml"
    suite.write_text(suite.read_text(encoding="utf-8").replace("max_value: 30", "max_value: 20.5"), encoding="utf-8")
    (told,) = failed(replace(room.made, folder=tmp_path / "conf")).items()
    assert told[0] == "The office has 15 to 30 degrees."
    assert float(told[1].samples[0]["value"]) > 20.5


def failed(made: Conf) -> dict[str, Outcome]:
    """By description what does not hold of the suites of the conf itself."""
    chosen = [suite for suite in suites(made) if suite.name in ("room", "room_windows")]
    run = check(Lake(made), chosen, datetime.now(UTC), lambda _: None, Scope())
    results = [result for table in run.tables for result in table.results]
    assert len(results) == 5
    return {result.expectation.description: result.outcome for result in results if not result.outcome.is_success}


def rows_of(rows: pd.DataFrame, columns: Sequence[str]) -> set[tuple[object, ...]]:
    return set(rows[list(columns)].itertuples(index=False, name=None))
