"""Lanes end to end: sources hours apart, and ahead of their time, in one lake; nothing of one lane makes another late."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from orchestration import flows
from orchestration.audit.reconciliation.discrepancies import twice
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.lanes import lanes_of
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.status import flow_status
from silver.policy import FormerConfig, SilverConfig
from silver.readings import LoadReferenceData, accepted
from silver.schema import KEYS
from tests.lakes import KITCHEN, SHAPE, conf, differences, event, land, latest, minutes, replay, run, run_until, table, with_batches_of
from tests.rows import at
from tests.sample import all_of

NOON, HOUR = at("2026-01-05T12:00:00"), timedelta(hours=1)
BEHIND = {"site_a": None, "site_b": 21_600, "site_c": 43_200}
"""By source, its own lateness."""
DEVICE = {"site_a": "oven", "site_b": "fridge", "site_c": "press"}


def sites(folder: Path, lateness: dict[str, int | None] | None = None) -> Conf:
    """A conf with a source a site, each with a folder of its own."""
    declared = {
        name: Source(name, SHAPE, LandingFolder(folder / name, settle_seconds=0.0), lateness_seconds=seconds)
        for name, seconds in (BEHIND if lateness is None else lateness).items()
    }
    return replace(conf(folder, groups={"kitchen": KITCHEN}), sources=declared)


def send(folder: Path, site: str, number: int, begin: datetime, count: int = 10) -> None:
    """A file of readings a minute apart."""
    rows = [event(DEVICE[site], "temperature", 20.0 + n, instant) for n, instant in enumerate(minutes(begin, count))]
    land(folder, f"{number}.json", rows, site)


def send_all(folder: Path, number: int) -> None:
    """The next ten minutes of three sites, six hours apart."""
    for hours, site in zip((0, 6, 12), DEVICE, strict=True):
        send(folder, site, number, NOON - hours * HOUR + timedelta(minutes=10 * number))


def assert_is_right(made: Conf, readings: int) -> None:
    assert len(table(made, "silver.readings")) == readings
    for name in ("late", "quarantine", "duplicates"):
        assert len(table(made, f"silver.{name}")) == 0
    assert differences(made) == []


@pytest.fixture(scope="module")
def three(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Three sites six hours apart, after two runs, the first of two batches."""
    made = with_batches_of(sites(folder := tmp_path_factory.mktemp("three")), 1)
    for numbers in ((0, 1), (2,)):
        for number in numbers:
            send_all(folder, number)
        run(made, spark)
    return made


def test_of_three_sources_six_hours_apart_nothing_is_late(three: Conf) -> None:
    assert_is_right(three, readings=90)
    sources = table(three, "silver.readings").groupby("bronze_batch").source.nunique()
    assert list(sources) == [3, 3, 3]


def test_each_lane_is_a_query_with_a_watermark_of_its_own(three: Conf) -> None:
    lines = {line["flow"]: line["watermark_at"] for line in flow_status(three, NOON + HOUR) if line["table"] == "silver.readings"}
    newest = NOON + timedelta(minutes=29)
    assert lines == {
        "silver.readings": newest - timedelta(minutes=10),
        "silver.readings@site_b": newest - 12 * HOUR,
        "silver.readings@site_c": newest - 24 * HOUR,
    }


def test_lanes_are_written_down_with_the_checkpoint(three: Conf) -> None:
    written = json.loads((three.lake.local / "checkpoints/silver.readings/lanes.json").read_text())
    assert [(lane["name"], lane["bounds"]["lateness_seconds"], lane["first"]) for lane in written["every"]] == [
        ("site_b", 21_600, 0),
        ("site_c", 43_200, 0),
    ]


def test_a_source_that_is_found_to_be_behind_gets_a_lane_and_is_late_no_more(spark: SparkSession, tmp_path: Path) -> None:
    """And what it sends again is a duplicate of what it sent before: the new query knows the keys of old."""
    before, after = sites(tmp_path, {"site_a": None, "site_b": None}), sites(tmp_path, {"site_a": None, "site_b": 21_600})
    send(tmp_path, "site_b", 0, NOON - 6 * HOUR)
    send(tmp_path, "site_a", 0, NOON)
    send(tmp_path, "site_b", 1, NOON - 6 * HOUR + timedelta(minutes=10))
    run(with_batches_of(before, 1), spark)
    assert (len(table(before, "silver.readings")), len(table(before, "silver.late"))) == (20, 10)
    send(tmp_path, "site_b", 2, NOON - 6 * HOUR, 30)  # all of it once more, and ten that are new
    run(after, spark)
    assert [len(table(after, f"silver.{name}")) for name in ("readings", "late", "duplicates")] == [30, 10, 20]
    assert differences(after) == []
    assert replay(after, spark) == 2
    send(tmp_path, "site_b", 3, NOON - 6 * HOUR + timedelta(minutes=25), 10)
    run(after, spark)
    assert [len(table(after, f"silver.{name}")) for name in ("readings", "late", "duplicates")] == [35, 10, 25]
    assert differences(after) == []
    send(tmp_path, "site_a", 4, NOON + timedelta(minutes=10))
    run(before, spark)
    assert lanes_of(LakeStore(before)).flows == ["silver.readings"]
    assert differences(before) == []


def test_lanes_go_on_side_by_side_while_a_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    made, number = sites(tmp_path), iter(range(1_000))

    def is_through() -> bool:
        send_all(tmp_path, next(number))
        return newest_batch(LakeStore(made).checkpoint("silver.readings") / "commits") > 3

    run_until(made, spark, is_through)
    run(made, spark)
    assert_is_right(made, readings=30 * next(number))


@pytest.mark.parametrize("lost", all_of(["silver.readings", "silver.readings@site_b"], sample=["silver.readings@site_b"]))
def test_a_lane_that_a_kill_left_behind_repeats_its_batch_and_writes_nothing_twice(spark: SparkSession, tmp_path: Path, lost: str) -> None:
    """As after a kill between the notes of two checkpoints: the rows of all are in the table."""
    made = with_batches_of(sites(tmp_path, {"site_a": None, "site_b": 21_600}), 1)
    for number in range(2):
        for site, hours in (("site_a", 0), ("site_b", 6)):
            send(tmp_path, site, number, NOON - hours * HOUR + timedelta(minutes=10 * number))
    run(made, spark)
    checkpoint = Lake(made, spark).checkpoint(lost).local
    newest = newest_batch(LakeStore(made).checkpoint(lost) / "commits")
    for file in (f"commits/{newest}", f"commits/.{newest}.crc"):
        (checkpoint / file).unlink(missing_ok=True)
    checkpoint.with_name(f"{checkpoint.name}.seal").unlink()
    for site, hours in (("site_a", 0), ("site_b", 6)):
        send(tmp_path, site, 2, NOON - hours * HOUR + timedelta(minutes=20))
    run(made, spark)
    assert_is_right(made, readings=60)


def test_a_checkpoint_of_a_version_that_knew_no_lanes_goes_on(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_before(
        events: DataFrame, load: LoadReferenceData, config: SilverConfig, lateness_seconds: int, former: Sequence[FormerConfig]
    ) -> DataFrame:
        return accepted(events, load, config, former).withWatermark("event_time", f"{lateness_seconds} seconds").dropDuplicates(KEYS)

    made = conf(tmp_path, groups={"kitchen": KITCHEN})
    with monkeypatch.context() as patched:
        patched.setattr(flows, "readings", as_before)
        land(tmp_path, "0.json", [event("oven", "temperature", 1.0, instant) for instant in minutes(NOON, 30)])
        run(made, spark)
    rows = [event("oven", "temperature", 2.0, instant) for instant in minutes(NOON + timedelta(minutes=25), 10)]
    land(tmp_path, "1.json", [*rows, event("oven", "temperature", 2.0, NOON + timedelta(seconds=1))])
    run(made, spark)
    assert [len(table(made, f"silver.{name}")) for name in ("readings", "late", "duplicates")] == [35, 1, 5]
    assert differences(made) == []


def test_an_archive_from_before_1970_is_no_later_than_one_from_after(spark: SparkSession, tmp_path: Path) -> None:
    made = with_batches_of(conf(tmp_path, groups={"kitchen": KITCHEN}), 1)
    made = replace(made, policy=replace(made.policy, max_age_seconds=100_000_000_000))
    instants = [at(f"{year}-07-01T12:00:00") for year in (1955, 1969, 1975)]
    for number, instant in enumerate(instants):
        rows = [event("oven", "temperature", n, begin) for n, begin in enumerate([*minutes(instant, 20), instant])]
        land(tmp_path, f"{number}.json", rows)
    run(made, spark)
    assert [len(table(made, f"silver.{name}")) for name in ("readings", "late", "duplicates")] == [60, 0, 3]
    land(tmp_path, "3.json", [event("oven", "temperature", 50.0, at("1955-07-01T13:00:00"))])
    run(made, spark)
    assert len(table(made, "silver.late")) == 1
    windows = latest(made, "gold.kitchen_aggregates", ["device_id", "metric", "window_start"])
    assert {at(f"{year}-07-01T12:10:00") for year in (1955, 1969)} <= {*windows.window_start}
    assert differences(made) == []


def test_a_device_that_sends_by_two_lanes_is_named_by_the_ledger_and_by_verify(spark: SparkSession, tmp_path: Path) -> None:
    made = sites(tmp_path, {"site_a": None, "site_b": 21_600})
    for site in ("site_a", "site_b"):
        land(tmp_path, "0.json", [event("oven", "temperature", 20.0, NOON), event("oven", site, 1.0, NOON)], site)
    run(made, spark)
    (wrong,) = twice(Lake(made, spark))
    assert "temperature of oven at 2026-01-05T12:00:00Z is 2 times in silver.readings: sources site_a and site_b" in wrong["wrong"]
    assert [difference.what for difference in differences(made)][:1] == ["more than once"]
    one = sites(tmp_path, dict.fromkeys(("site_a", "site_b")))
    assert replay(one, spark) == 2
    assert (twice(Lake(one, spark)), differences(one)) == ([], [])
