"""Windows that are still open, by SQL: every aggregation type, late rows, what is read, and that gold has the same when they close."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from gold.windows.spec import Group, Late
from orchestration.audit.verify.gold_windows import windows
from orchestration.audit.verify.store import opened
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import ConfError, TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.completion import SnapshotTables
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.delta import INSTANT, version_of
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, find_snapshot
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import METRICS, conf, event, land, minutes, recorded, run
from tests.planted.day import START
from tests.rows import at
from tests.window_values import ODD, TYPES, value_of

NOON = at("12:00:00")
COLUMNS = ("device_id", "metric", "window_start", "window_end", "value", "count", "min", "max", "sum", "latest")
ROWS = pa.schema(
    [
        *(("device_id", pa.string()), ("metric", pa.string()), ("event_time", INSTANT), ("value", pa.float64())),
        *(("groups", pa.list_(pa.string())), ("bronze_batch", pa.int64())),
    ]
)


def asked(made: Conf, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DuckDbEngine(made, Limits(seconds=60, rows=10_000)).ask(Question(query)).rows.to_pylist()
    return rows


def written(folder: Path, tables: dict[str, Sequence[tuple[Any, ...]]], groups: Sequence[Group], closed_until: datetime | None) -> Conf:
    """A lake with a snapshot of these rows of silver: device, metric, event time, value, groups, bronze batch."""
    made = conf(folder, metrics=TYPES | METRICS, groups={group.name: group for group in groups})
    versions = {}
    for name, rows in tables.items():
        table = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
        write_deltalake(made.lake.local / name.replace(".", "/"), table, mode="append")
        versions[name] = version_of(made.lake / name.replace(".", "/"))
    closed = {} if closed_until is None else {group.stream: closed_until for group in groups}
    SNAPSHOTS.append(made.lake, [Snapshot(0, NOON, 1, 1, versions, closed)])
    return made


def test_every_aggregation_type_is_its_definition(tmp_path: Path) -> None:
    readings = [
        (device, metric, NOON + timedelta(seconds=s), v, ["hall"], 1) for device, of in ODD.items() for metric in TYPES for s, v in of
    ]
    made = written(tmp_path, {"silver.readings": readings}, [Group("hall", tuple(TYPES), 0, "hall")], NOON)
    rows = asked(made, "from gold.hall_live")
    assert len(rows) == len(ODD) * len(TYPES)
    for row in rows:
        of, size = ODD[row["device_id"]], max(360.0, abs(row["min"]), abs(row["max"]))
        assert row["value"] == pytest.approx(value_of(TYPES[row["metric"]], of), abs=1e-9 * size), (row["metric"], of)
        assert (row["window_start"], row["count"], row["latest"]) == (NOON, len(of), of[-1][1])


def test_a_window_is_open_until_the_snapshot_closes_it_and_holds_the_prefix_alone(tmp_path: Path) -> None:
    """Of a stream that has closed none, every window is open. Rows of batch 2 came after the snapshot."""
    readings = [("oven", "max", NOON + timedelta(seconds=60 * n), float(n), ["hall", "hall", "yard"], n) for n in (-2, -1, 0, 1, 2)]
    hall, yard = Group("hall", ("max",), 0, "hall"), Group("yard", ("max", "sum"), 0, "yard")
    made = written(tmp_path, {"silver.readings": readings}, [hall], NOON)
    assert [row["value"] for row in asked(made, "from gold.hall_live order by value")] == [0.0, 1.0]
    made = replace(made, groups={"hall": hall, "yard": yard})
    every = asked(made, "select device_group, value, window_end from gold.live order by all")
    assert [(row["device_group"], row["value"]) for row in every] == [
        *(("hall", value) for value in (0.0, 1.0)),
        *(("yard", value) for value in (-2.0, -1.0, 0.0, 1.0)),
    ]
    assert every[0]["window_end"] == NOON + timedelta(seconds=60)


def test_before_1970_and_in_sliding_windows_a_reading_is_where_gold_has_it(tmp_path: Path) -> None:
    readings = [("press", "vibration", at("1969-12-31T23:59:59.999999"), 1.0, ["presses"], 0)]
    made = written(tmp_path, {"silver.readings": readings}, [Group("presses", ("vibration",), 0, "presses")], None)
    found = asked(made, "select epoch(window_start) as s, epoch(window_end) as e from gold.presses_live order by 1")
    assert [(row["s"], row["e"]) for row in found] == [(-600, 0), (-300, 300)]


def test_files_of_windows_that_are_closed_are_not_read(tmp_path: Path) -> None:
    old = [("oven", "max", NOON - timedelta(hours=n), 1.0, ["hall"], 0) for n in range(1, 5)]
    made = written(tmp_path, {"silver.readings": old}, [Group("hall", ("max",), 0, "hall")], NOON)
    (file,) = (made.lake.local / "silver" / "readings").glob("*.parquet")
    whole = file.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    file.write_bytes(b"PAR1" + bytes(len(whole) - footer - 4) + whole[-footer:])  # statistics stay, rows do not
    with pytest.raises(TidemarkError):
        asked(made, "select sum(value) from silver.readings")
    assert asked(made, "from gold.hall_live") == []


def test_a_mistake_in_conf_is_told_to_who_asks_for_open_windows_alone(tmp_path: Path) -> None:
    made = written(tmp_path, {"silver.readings": []}, [Group("hall", ("max",), 0, "hall")], None)

    def wrong() -> Any:
        raise ConfError("conf/metrics.yml:3: max.step_seconds is missing")

    engine = DuckDbEngine(replace(made.place, load=wrong), Limits())
    assert engine.ask(Question("select count(*) as n from silver.readings")).rows.to_pylist() == [{"n": 0}]
    with pytest.raises(ConfError, match=r"max\.step_seconds is missing"):
        engine.ask(Question("from gold.hall_live"))
    tables = SnapshotTables(made.place, find_snapshot(made.lake))
    assert [name for name in tables.views if name.endswith("live")] == ["gold.hall_live", "gold.live"]
    described = asked(made, "describe gold.live")
    assert [(row["column_name"], row["column_type"].lower()) for row in described] == [
        (name, kind.replace("timestamptz", "timestamp with time zone")) for name, kind in tables.columns("gold.live")
    ]


@pytest.mark.parametrize("late", Late)
def test_open_windows_are_those_of_verify_and_those_that_gold_has_when_they_close(late: Late, spark: SparkSession, tmp_path: Path) -> None:
    """A row that is late for silver comes while the hour of its power is open; it counts where late rows are folded in."""
    energy = Metric("energy", Aggregation.COUNTER_INCREASE, 3600)
    kitchen = Group("kitchen", ("temperature", "power", "energy"), 600, "kitchen", late=late)
    made = conf(tmp_path, metrics=METRICS | {"energy": energy}, groups={"kitchen": kitchen})
    times = minutes(START, 100)
    land(tmp_path, "1.json", [event("oven", of, n % 40, time) for n, time in enumerate(times) for of in kitchen.metrics])
    run(made, spark)
    hour = START + timedelta(hours=1)
    land(tmp_path, "2.json", [event("oven", "power", 1000, hour + timedelta(seconds=30)), event("oven", "energy", 7, times[-1])])
    run(made, spark)
    assert len(recorded(Lake(made), "silver.late")) == 1

    snapshot = find_snapshot(made.lake)
    assert snapshot is not None
    live = asked(made, "from gold.kitchen_live order by all")
    closed = snapshot.closed_until["kitchen"]
    assert {row["metric"] for row in live} == {*kitchen.metrics}
    assert live == [row for row in by_verify(made, kitchen, tmp_path) if row["window_end"] > closed]
    both = "select * exclude (revision, gold_batch) from gold.kitchen_aggregates union all from gold.kitchen_live"
    assert asked(made, f"from ({both}) order by all") == by_verify(made, kitchen, tmp_path)

    land(tmp_path, "3.json", [event("oven", "temperature", 1, START + timedelta(days=1))])
    run(made, spark)
    of_live = f"window_end > timestamptz '{closed}' and window_end < timestamptz '{START + timedelta(days=1)}'"
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    assert asked(made, f"select {names} from gold.kitchen_aggregates where {of_live} order by all") == live
    with pytest.raises(TidemarkError, match=r"^gold\.kitchen_live is not available in Spark"):
        Lake(made, spark).sql("select * from gold.kitchen_live")


def by_verify(made: Conf, group: Group, folder: Path) -> list[dict[str, Any]]:
    """All windows, open ones too, in the order of their columns."""
    with opened(folder) as store:
        for name in ("readings", "late"):
            store.register(name, recorded(Lake(made), f"silver.{name}").select([*ROWS.names[:5], "bronze_batch", "bronze_row", "part"]))
        counted = " union all ".join(
            f"select * replace (event_time at time zone 'UTC' as event_time), {name == 'late'} as is_late from {name}"
            for name in ("readings", "late")
        )
        store.execute(f"create or replace table counted as {counted}")
        nothing = "(select 0 as bronze_batch, 0 as bronze_row, 0 as part, null::timestamp as window_end where false)"
        windows(store, group, made.metrics, datetime(2100, 1, 1, tzinfo=UTC), set_aside=nothing if group.late is Late.KEEP_ASIDE else None)
        rows: list[dict[str, Any]] = in_utc(store).to_pylist()
    (folder / "store.duckdb").unlink()
    return rows


def in_utc(store: duckdb.DuckDBPyConnection) -> pa.Table:
    instants = ", ".join(f"{name} at time zone 'UTC' as {name}" for name in ("window_start", "window_end"))
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    return store.sql(
        f"set TimeZone = 'UTC'; select {names} from (select * replace ({instants}) from windows) order by all"
    ).to_arrow_table()
