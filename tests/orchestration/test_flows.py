"""The flows end to end, in small: real streams over real files, run more than once."""

import gzip
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gold.windows.spec import Group
from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.ops_tables import COUNTED
from orchestration.supervisor.summary import Summary
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import KITCHEN, PRESSES, conf, event, land, minutes, multiset, run, run_until, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
ALONE = {"kitchen": KITCHEN}
"""One stream of gold, where a second one would add time and no claim."""
UP_TO_SILVER = ("bronze.events", "silver.readings")


def test_a_late_a_duplicate_an_unreadable_and_a_future_row_leave_every_other_row_and_window_right(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = conf(tmp_path, groups=ALONE)
    first = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 31))]
    land(tmp_path, "1.json", [*first, first[3], "{broken", event("oven", "temperature", 9, at("2099-01-01T00:00:00"))])
    assert_says_what_became_of_the_first_rows(run(made, spark))
    late = event("oven", "temperature", 1000, START + timedelta(minutes=15, seconds=1))  # watermark: 00:20
    land(tmp_path, "2.json", [late, event("oven", "temperature", 40, START + timedelta(minutes=40))])
    spark.conf.set("spark.sql.shuffle.partitions", "5")  # as after a change of conf; state stays where it is
    for session in (spark, None):  # the second time nothing waits: nothing may change, and no Spark may start
        ended = run(made, session).windows
        assert [(row["closed"], row["amended"], row["open"]) for row in ended] == [(1, 1, 1) if session else (0, 0, 1)]
        assert len(table(made, "bronze.events")) == 36
        readings = table(made, "silver.readings")
        assert sorted(readings.value) == [*range(31), 40]
        quarantined = table(made, "silver.quarantine")
        assert sorted(rule for rules in quarantined.broken_rules for rule in rules) == [
            "event_time_is_not_in_the_future",
            "payload_is_readable",
        ]
        assert table(made, "silver.late").value.to_list() == [1000.0]
        (duplicate,) = table(made, "silver.duplicates").to_dict("records")
        (kept,) = readings[readings.value == 3].to_dict("records")
        assert [duplicate[f"kept_{name}"] for name in ("batch", "row", "part")] == [kept["bronze_batch"], kept["bronze_row"], kept["part"]]
        assert table(made, "ops.ledger").sort_values("bronze_batch").drop(columns=["bronze_batch", "source"]).to_numpy().tolist() == [
            [34, 31, 2, 0, 0, 1, 0],
            [2, 1, 0, 0, 1, 0, 0],
        ]
        windows = table(made, "gold.kitchen_aggregates").sort_values(["window_end", "revision"])
        # The newest reading is of 00:40 and the lateness 10 minutes: 00:30 is the last window to be closed. The late row is folded in.
        assert list(zip(windows.window_end, windows.revision, windows["sum"], windows["count"], strict=True)) == [
            (START + timedelta(minutes=10), 0, 45, 10),
            (START + timedelta(minutes=20), 0, 145, 10),
            (START + timedelta(minutes=20), 1, 1145, 11),
            (START + timedelta(minutes=30), 0, 245, 10),
        ]
        snapshots = table(made, "ops.snapshots").sort_values("snapshot_id")
        assert [list(snapshots[name]) for name in ("snapshot_id", "bronze_batch")] == [[0, 1], [0, 1]]


def assert_says_what_became_of_the_first_rows(ended: Summary) -> None:
    assert [[row[name] for name in ("source", *COUNTED)] for row in ended.sources] == [["plant", 34, 31, 2, 0, 0, 1, 0]]
    assert [(row["rule"], row["rows"], row["example"][:8]) for row in ended.quarantined] == [
        ("event_time_is_not_in_the_future", 1, '{"device'),
        ("payload_is_readable", 1, "{broken"),
    ]
    # 00:20 is the watermark. The windows up to 00:30 and 00:40 are open.
    how = "a reading of 2026-01-05T00:50:00Z or later"
    assert ended.windows == [{"group": "kitchen", "closed": 2, "amended": 0, "open": 2, "closed_by": how}]


def test_windows_of_different_steps_close_by_their_ends_and_meet_in_vectors(spark: SparkSession, tmp_path: Path) -> None:
    """The short windows do not wait for the long ones."""
    made = conf(tmp_path, groups=ALONE)
    rows = [event("oven", metric, 1, time) for time in minutes(START, 82) for metric in ("temperature", "power")]
    land(tmp_path, "1.json", rows[:90])  # up to 00:44
    run(made, spark)
    windows = table(made, "gold.kitchen_aggregates")
    assert multiset(windows, ["metric", "value"]) == {("temperature", "1.0"): 3}  # closed up to 00:30
    land(tmp_path, "2.json", rows[90:])  # up to 01:21
    run(made, spark)
    vectors = table(made, "gold.kitchen_vectors").sort_values("window_end")
    found = [
        (end.strftime("%H:%M"), list(vector), list(missing), list(filled))
        for end, vector, missing, filled in zip(vectors.window_end, vectors.vector, vectors.missing, vectors.filled, strict=True)
    ]
    assert [row[0] for row in found] == ["00:10", "00:20", "00:30", "00:40", "00:50", "01:00", "01:10"]
    assert found[4][2:] == (["power"], [])
    assert found[5] == ("01:00", [1.0, 60.0], [], [])
    assert found[6] == ("01:10", [1.0, 60.0], [], ["power"])  # filled from a window that an earlier batch or this one closed


def test_each_group_has_its_own_watermark_unless_it_shares_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    shared = {name: replace(group, stream="all") for name, group in (("kitchen", KITCHEN), ("presses", PRESSES))}
    behind = [event("press", "vibration", 1, time) for time in minutes(START, 30)]
    ahead = [event("oven", "temperature", 1, time) for time in minutes(START, 60)]
    closed = {}
    for name, groups in (("own", {"kitchen": KITCHEN, "presses": PRESSES}), ("shared", shared)):
        made = conf(tmp_path / name, groups=groups)
        land(tmp_path / name, "1.json", [*behind, *ahead])
        run(made, spark)
        closed[name] = table(made, "gold.presses_aggregates").window_end.max()
    assert closed == {"own": START + timedelta(minutes=15), "shared": START + timedelta(minutes=35)}


def test_an_idle_group_closes_its_last_windows_once_and_its_ticks_are_in_no_window(spark: SparkSession, tmp_path: Path) -> None:
    """Also where it is told to only later, on a lake with data, and told no longer."""
    land(tmp_path, "1.json", [event(device, "temperature", 1, time) for device in ("oven", "fridge") for time in minutes(START, 15)])
    run(conf(tmp_path), spark)
    for seconds in (0, 0, None):
        idle: Group = replace(KITCHEN, idle_close_seconds=seconds)
        made = conf(tmp_path, groups={"kitchen": idle, "presses": PRESSES})
        run(made, spark)
        windows = table(made, "gold.kitchen_aggregates")
        assert multiset(windows, ["device_id", "metric", "count"]) == {
            **{(device, "temperature", "10"): 1 for device in ("oven", "fridge")},
            **{(device, "temperature", "5"): 1 for device in ("oven", "fridge")},
        }
        assert len(table(made, "ops.ticks")) == 1
    assert len(table(made, "silver.readings")) == 30


def test_several_sources_of_several_shapes_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    wide = PayloadFormat("csv", Origin(file_name=r"(\w+)\.csv"), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
    sources = conf(tmp_path).sources | {"rooms": Source("rooms", wide, LandingFolder(tmp_path / "rooms", "*.csv*", settle_seconds=0))}
    made = conf(tmp_path, sources=sources)
    land(tmp_path, "odd name: ü+%20?.json", [event("oven", "temperature", 1, START)])
    land(tmp_path, "sub/fridge.csv", ["when,T,P", f"{START:%Y-%m-%d %H:%M},2,3"], "rooms")
    packed = tmp_path / "rooms" / "oven.csv.gz"
    packed.write_bytes(gzip.compress(f"P,when,T\r\n4,{START + timedelta(minutes=1):%Y-%m-%d %H:%M},5\r\n".encode()))
    os.utime(packed, (1_700_000_000, 1_700_000_000))
    land(tmp_path, "notes.txt", ["not for us"], "rooms")
    land(tmp_path, ".half.json", ["not yet"])
    run(made, spark, UP_TO_SILVER)
    assert multiset(table(made, "bronze.events"), ["source", "position"]) == {
        ("plant", "odd name: ü+%20?.json"): 1,
        ("rooms", "sub/fridge.csv"): 1,
        ("rooms", "oven.csv.gz"): 1,
    }
    assert multiset(table(made, "silver.readings"), ["source", "device_id", "metric", "value"]) == {
        ("plant", "oven", "temperature", "1.0"): 1,
        ("rooms", "fridge", "temperature", "2.0"): 1,
        ("rooms", "fridge", "power", "3.0"): 1,
        ("rooms", "oven", "temperature", "5.0"): 1,
        ("rooms", "oven", "power", "4.0"): 1,
    }


def test_a_device_registered_during_a_run_counts_from_then_on(spark: SparkSession, tmp_path: Path) -> None:
    from orchestration.storage.registry import load

    made = conf(tmp_path, groups=ALONE)
    land(tmp_path, "1.json", [event("newcomer", "temperature", 1, START)])
    fresh = tmp_path / "devices.csv"
    fresh.write_text("device_id,zone,groups\nnewcomer,hall,kitchen\n")
    landed: list[Path] = []

    def newcomer_has_a_reading() -> bool:
        if not landed and (made.lake / "silver/quarantine/_delta_log/00000000000000000001.json").exists():
            load(made.lake, fresh, datetime.now(UTC) - timedelta(seconds=10))
            landed.append(land(tmp_path, "2.json", [event("newcomer", "temperature", 2, START + timedelta(minutes=1))]))
        return bool(landed) and len(table(made, "silver.readings")) == 1

    run_until(made, spark, newcomer_has_a_reading)
    assert table(made, "silver.readings").value.to_list() == [2.0]
    assert table(made, "silver.quarantine").broken_rules.map(list).to_list() == [["device_is_known"]]


def test_a_lake_that_is_moved_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path / "here", "1.json", [event("oven", "temperature", 1, START)])
    run(conf(tmp_path / "here"), spark, UP_TO_SILVER)
    (tmp_path / "here").rename(tmp_path / "there")
    land(tmp_path / "there", "2.json", [event("oven", "temperature", value, START + timedelta(minutes=value)) for value in (0, 2)])
    made = conf(tmp_path / "there")
    run(made, spark, [*UP_TO_SILVER, "silver.ledger"])
    assert sorted(table(made, "bronze.events").bronze_batch) == [0, 1, 1]
    assert sorted(table(made, "silver.readings").value) == [1.0, 2.0]
    assert table(made, "silver.duplicates").value.to_list() == [0.0]


def test_a_flow_whose_checkpoint_is_gone_refuses_to_write_its_rows_a_second_time(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path)
    land(tmp_path, "1.json", [event("oven", "temperature", 1, START)])
    run(made, spark, UP_TO_SILVER)
    Lake(made, spark).checkpoint("silver.readings").local.rename(tmp_path / "lost")
    with pytest.raises(TidemarkError, match=r"silver.readings holds rows, but the checkpoint .* is missing.\n  Restore the checkpoint"):
        run(made, spark, UP_TO_SILVER)
