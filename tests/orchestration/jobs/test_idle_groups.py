"""A stream is ticked once its readings have stopped coming, and once only."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from orchestration.jobs.gold.idle_groups import tick_if_idle
from orchestration.storage.commit import append_rows
from orchestration.storage.ops_tables import TICKS
from orchestration.storage.tables import LakeStore
from tests.lakes import KITCHEN, PRESSES, conf
from tests.rows import at

NOON, MINUTE = at("2026-01-05T12:00:00"), timedelta(minutes=1)
INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("groups", pa.list_(pa.string())), ("metric", pa.string()), ("event_time", INSTANT), ("ingested_at", INSTANT)])


def came(lake: LakeStore, group: str, metric: str, event_time: datetime, ingested_at: datetime) -> None:
    rows = [{"groups": [group], "metric": metric, "event_time": event_time, "ingested_at": ingested_at}]
    append_rows(lake.table_path("silver.readings"), pa.Table.from_pylist(rows, COLUMNS))


def test_a_stream_is_ticked_once_when_none_of_its_readings_has_come_for_as_long_as_it_waits(tmp_path: Path) -> None:
    idle = replace(KITCHEN, idle_close_seconds=60)
    lake = LakeStore(conf(tmp_path, groups={"kitchen": idle, "presses": PRESSES}))
    came(lake, "kitchen", "temperature", NOON - MINUTE, NOON)
    came(lake, "kitchen", "temperature", NOON - 9 * MINUTE, NOON)
    came(lake, "presses", "vibration", NOON, NOON + 2 * MINUTE)  # of another stream
    ticked = [tick_if_idle(lake, "kitchen", [idle], NOON + seconds * MINUTE / 60) for seconds in (59, 121, 122)]
    came(lake, "kitchen", "power", NOON + 3 * MINUTE, NOON + 4 * MINUTE)
    ticked += [tick_if_idle(lake, "kitchen", [idle], NOON + minutes * MINUTE) for minutes in (4.5, 6, 7)]
    assert ticked == [False, True, False, False, True, False]
    behind = timedelta(hours=1) + 10 * MINUTE  # the longest window, and the lateness
    assert [tick.event_time for tick in TICKS.rows(lake.conf.lake)] == [NOON - MINUTE + behind, NOON + 3 * MINUTE + behind]
