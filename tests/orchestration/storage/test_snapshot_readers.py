"""Readers beside a run that writes, compacts and removes: each sees one snapshot, and an earlier one stays what it was until it expires."""

import os
import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation.account import WRONG, account, open_tables
from orchestration.audit.reconciliation.gold_account import gold_account, gold_discrepancies, open_gold_tables
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Device, Maintenance
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import all_snapshots, find_snapshot
from orchestration.supervisor.status import flow_status
from tests.lakes import DEVICES, KITCHEN, conf, copy_tree, event, land, recorded, run, run_until, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
pytestmark = [pytest.mark.snapshots, pytest.mark.slow]

FILES, READS = 6, 200
MINUTES = 30
RETAIN_SECONDS = 20.0
IDENTITY = ["bronze_batch", "bronze_row"]
ENFORCED = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
KEY = ["device_id", "metric", "window_end"]


@dataclass
class Seen:
    """What the readers saw. `answers` by snapshot, of the first read of it."""

    reads: int = 0
    again: int = 0
    torn: list[str] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    by_spark: list[tuple[Any, ...]] = field(default_factory=list)


def lines(number: int) -> list[str]:
    """Half an hour of the oven, with a broken line, a row that comes twice and, but for the first file, one that comes late."""
    times = [START + timedelta(minutes=MINUTES * number + minute) for minute in range(MINUTES)]
    rows = [event("oven", "temperature", number, time) for time in times]
    late = [event("oven", "temperature", 1000, times[0] - timedelta(minutes=25, seconds=number))] if number else []
    return [*rows, rows[3], "{broken", *late]


def rows_of(made: Conf, snapshot: Snapshot, name: str) -> pd.DataFrame:
    """A table of a snapshot, without Spark."""
    rows = pd.DataFrame(recorded(Lake(made), name, snapshot.versions).to_pandas())
    return rows[rows.bronze_batch <= snapshot.bronze_batch] if "bronze_batch" in rows else rows


def answer(made: Conf, snapshot: Snapshot) -> dict[str, Any]:
    """Of a snapshot what belongs together: identities of events and measurements; windows as gold counts them and as silver gives them."""
    silver = {kind: rows_of(made, snapshot, f"silver.{kind}") for kind in ("readings", "quarantine", "late", "duplicates")}
    events = rows_of(made, snapshot, "bronze.events")
    identities = pd.concat([rows[IDENTITY] for rows in silver.values()])
    good = pd.concat([silver["readings"], silver["late"]])
    ends = good.event_time.dt.floor("600s") + pd.Timedelta(seconds=600)
    windows = ends[ends <= snapshot.closed_until["kitchen"]].value_counts()
    history = rows_of(made, snapshot, "gold.kitchen_aggregates").sort_values("revision").drop_duplicates(KEY, keep="last")
    vectors = rows_of(made, snapshot, "gold.kitchen_vectors")
    return {
        "events": sorted(map(tuple, events[IDENTITY].to_numpy().tolist())),
        "measurements": sorted(map(tuple, identities.to_numpy().tolist())),
        "windows of silver": windows.sort_index().to_dict(),
        "windows of gold": history.set_index("window_end")["count"].sort_index().to_dict(),
        "ends of vectors": sorted(set(vectors.window_end)),
        "batches": sorted(set(events.bronze_batch)),
    }


def whatever_is_torn(found: dict[str, Any], snapshot: Snapshot) -> list[str]:
    """Empty for a consistent snapshot."""
    pairs = {
        "events": found["measurements"],
        "windows of silver": found["windows of gold"],
        "ends of vectors": list(found["windows of gold"]),
        "batches": list(range(snapshot.bronze_batch + 1)),
    }
    return [f"{snapshot.snapshot_id}: {name}: {found[name]} is not {other}" for name, other in pairs.items() if found[name] != other]


def far_from_expiry(known: list[Snapshot]) -> list[Snapshot]:
    """A reader on a busy machine gets to the end of them."""
    young = datetime.now(UTC) - timedelta(seconds=RETAIN_SECONDS / 2)
    return [known[-1], *(each for each, following in pairwise(known) if following.at > young)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """The oven is in a group that the conf does not have yet, too."""
    devices = {name: Device(name, (*groups, "hall") if name == "oven" else groups) for name, groups in DEVICES.items()}
    often = Maintenance(0.5)
    object.__setattr__(often, "retain_seconds", RETAIN_SECONDS)  # an hour is the least that conf takes
    return conf(tmp_path_factory.mktemp("snapshots"), devices=devices, maintenance=often)


@pytest.fixture(scope="module")
def seen(spark: SparkSession, made: Conf) -> Seen:
    """A run that is maintained twice a second, with snapshots that expire after seconds, and readers beside it."""
    found, chance = Seen(), random.Random(1)
    landed: list[Path] = []

    def read(snapshot: Snapshot) -> None:
        found.reads += 1
        answered = answer(made, snapshot)
        found.torn += whatever_is_torn(answered, snapshot)
        if found.reads % 10 == 0:
            tables = open_gold_tables(Lake(made), snapshot)
            found.torn += [str(wrong) for wrong in gold_discrepancies(tables)] if tables else ["no gold"]
        if snapshot.snapshot_id in found.answers:
            found.again += 1
            if answered != found.answers[snapshot.snapshot_id]:
                found.torn.append(f"{snapshot.snapshot_id} is not what it was")
        found.answers[snapshot.snapshot_id] = answered

    def is_done() -> bool:
        pinned = all_snapshots(made.lake)
        if len(landed) < FILES and (not landed or (pinned and pinned[-1].bronze_batch == len(landed) - 1)):
            landed.append(land(made.folder, f"{len(landed):02d}.json", lines(len(landed))))
            if pinned:
                found.by_spark.append(tuple(Lake(made, spark).sql(COUNTS).collect()[0]))
        for _ in range(5 if pinned else 0):
            read(all_snapshots(made.lake)[-1])
            read(chance.choice(far_from_expiry(all_snapshots(made.lake))))
        return len(landed) == FILES and pinned[-1].bronze_batch == FILES - 1 and found.reads >= READS

    run_until(made, spark, is_done)
    return found


COUNTS = """
  select (select count(*) from bronze.events) - (select count(*) from silver.readings) - (select count(*) from silver.quarantine)
      - (select count(*) from silver.late) - (select count(*) from silver.duplicates) as rest,
    (select count(*) from (select device_id, window_end as ends_at from gold.kitchen_aggregates) full join gold.kitchen_vectors as v
      on v.entity = device_id and v.window_end = ends_at where device_id is null or v.entity is null) as alone
"""


def test_no_reader_of_several_tables_sees_a_torn_cut_while_they_are_written_compacted_and_cleaned(seen: Seen) -> None:
    assert seen.torn == []
    assert seen.reads >= READS
    assert seen.again > 10
    assert len(seen.answers) >= FILES
    assert len(seen.by_spark) == FILES - 1
    assert set(seen.by_spark) == {(0, 0)}


def test_a_cut_put_together_from_two_snapshots_would_be_seen(seen: Seen, made: Conf) -> None:
    first, last = seen.answers[min(seen.answers)], seen.answers[max(seen.answers)]
    newest = all_snapshots(made.lake)[-1]
    assert whatever_is_torn(last, newest) == []
    for name in ("events", "measurements", "windows of silver", "windows of gold", "ends of vectors", "batches"):
        assert whatever_is_torn({**last, name: first[name]}, newest) != [], name


def test_after_it_everything_is_accounted_for_and_equal_to_what_bronze_gives(seen: Seen, made: Conf) -> None:
    done = table(made, "ops.maintenance").groupby("table")[["compacted", "removed"]].sum()
    for name in ("bronze.events", "silver.readings", "gold.aggregates", "ops.snapshots"):
        assert (done.loc[name] > 0).all(), (name, done)
    lake = Lake(made)
    assert [row[wrong] for row in account(open_tables(lake)).batches for wrong in WRONG] == [0] * FILES * len(WRONG)
    newest = find_snapshot(made.lake)
    assert newest is not None
    tables = open_gold_tables(lake, newest)
    assert tables is not None
    assert gold_discrepancies(tables) == []
    assert [row["late"] for row in gold_account(lake, tables)] == [FILES - 1]
    assert verify(latest_snapshot(made), made).is_clean
    lines_of_status = flow_status(made, datetime.now(UTC))
    assert {line["behind"] for line in lines_of_status} == {0, None}
    assert lines_of_status[0]["rows"] == FILES * (MINUTES + 3) - 1


def test_a_new_group_begins_on_tables_that_were_compacted_and_cleaned(spark: SparkSession, seen: Seen, made: Conf) -> None:
    """The oven alone has sent anything, and its group of before has the same windows."""
    groups = {**made.groups, "hall": replace(KITCHEN, name="hall", stream="hall", metrics=("temperature",), vector=None)}
    with_hall = replace(made, groups=groups)
    run(with_hall, spark)
    windows = {
        group: sorted(
            table(with_hall, f"gold.{group}_aggregates")
            .sort_values("revision")
            .drop_duplicates(KEY, keep="last")[[*KEY, "count", "value"]]
            .itertuples(index=False, name=None)
        )
        for group in ("kitchen", "hall")
    }
    assert windows["hall"] == windows["kitchen"]
    assert len(windows["hall"]) > FILES
    assert verify(latest_snapshot(with_hall), with_hall).is_clean


def test_the_newest_snapshot_of_a_lake_at_rest_is_answered_after_more_than_a_week(
    spark: SparkSession, seen: Seen, made: Conf, tmp_path: Path
) -> None:
    """Spark would refuse: to Delta a version older than a week is one whose files may be gone."""
    old = replace(made, lake=Location(tmp_path / "lake"))
    copy_tree(made.lake.local, old.lake.local)
    for entry in old.lake.local.rglob("_delta_log/*.json"):
        os.utime(entry, (time.time() - 9 * 86_400,) * 2)
    # The newest version is answered at any age.
    readings = DeltaTable(old.lake.local / "silver/readings")
    write_deltalake(readings, pa.schema(readings.schema().to_arrow()).empty_table(), mode="append")
    assert tuple(Lake(old, spark).sql(COUNTS).collect()[0]) == (0, 0)
    as_delta_has_it = spark.newSession()
    as_delta_has_it.conf.set(ENFORCED, "true")
    pinned = as_delta_has_it.read.option("versionAsOf", all_snapshots(old.lake)[-1].versions["silver.readings"])
    with pytest.raises(AnalysisException, match="BEYOND_DELETED_FILE_RETENTION"):
        pinned.format("delta").load(str(old.lake / "silver/readings"))
