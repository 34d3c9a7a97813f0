"""The way back out of quarantine: what a mended conf makes good is re-admitted, once, and every promise holds before, during and after."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import discrepancies
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import pinned_snapshot
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.flows import quarantine_retry
from orchestration.jobs.account import retry
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME as AMENDMENTS
from orchestration.jobs.gold.snapshots import take_snapshot
from orchestration.location import Location
from orchestration.storage.confs import take_up
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import all_snapshots
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.run import retry_quarantine
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import KITCHEN, METRICS, conf, copy_tree, differences, event, land, latest, minutes, multiset, replay, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
LIST = PayloadFormat("json", Origin(field="g"), Time("each.t"), metric=Origin(field="each.m"), value=Origin("each.v"), each="readings")
WRONG_LIST = replace(LIST, device=Origin(constant="oven"), each="g.readings")
"""A list inside of an object: what has a text there is unreadable."""
CHANGED = ("silver.quarantine", "silver.late", "silver.duplicates", "ops.ledger")


def at_minute(minute: float) -> Any:
    return START + timedelta(minutes=minute)


def listed(device: str, *values: tuple[float, float]) -> str:
    """An event of the source `gateway`: a list of temperatures, each of a minute."""
    readings = [{"m": "temperature", "v": value, "t": at_minute(minute).isoformat()} for minute, value in values]
    return json.dumps({"g": device, "readings": readings})


@pytest.fixture(scope="module")
def mended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """The mended conf of a lake that ran under one too strict (nothing above 100 degrees) and with a source whose shape was wrong."""
    folder = tmp_path_factory.mktemp("mended")
    plain = conf(folder)
    gateway = Source("gateway", LIST, LandingFolder(folder / "gateway", settle_seconds=0.0))
    mended = replace(plain, sources=plain.sources | {"gateway": gateway})
    strict = METRICS | {"temperature": replace(METRICS["temperature"], maximum=100.0)}
    broken = replace(mended, metrics=strict, sources=mended.sources | {"gateway": replace(gateway, payload_format=WRONG_LIST)})
    lines = [event("oven", "temperature", minute, time) for minute, time in enumerate(minutes(START, 31))]
    hot = [event("oven", "temperature", 500, at_minute(minute)) for minute in (5.5, 29.5)]  # behind the watermark, and ahead of it
    land(folder, "1.json", [*lines, *hot, event("oven", "temperature", 700, at_minute(7)), "{broken"])  # at 7, it is a duplicate
    land(folder, "1.json", [listed("oven", (1.5, 1000), (2.5, 2)), listed("ghost", (1.5, 1)), listed("oven", (1.5, 1000))], "gateway")
    run(broken, spark)
    take_up(LakeStore(mended), START)  # as the command does
    return mended


def copied(made: Conf, folder: Path) -> Conf:
    """The same lake elsewhere; bronze cannot go on there, since it knows files by their paths."""
    copy_tree(made.lake.local, folder / "lake")
    return replace(made, lake=Location(folder / "lake"))


class KilledError(BaseException):
    """As a kill would, past every handler."""


@contextmanager
def killed_before(step: int) -> Iterator[None]:
    """Inside, a retry ends before it writes the table of that number: late, duplicates, quarantine, ops.ledger."""
    steps = iter(range(4))

    def or_killed(write: Callable[..., Any]) -> Callable[..., Any]:
        def write_or_die(*arguments: Any) -> Any:
            if next(steps) == step:
                raise KilledError
            return write(*arguments)

        return write_or_die

    with pytest.MonkeyPatch.context() as patch:
        for name in ("append_once", "_replace", "append_rows"):
            patch.setattr(retry, name, or_killed(getattr(retry, name)))
        with pytest.raises(KilledError):
            yield


def accounted(made: Conf) -> tuple[list[Any], list[Any]]:
    """What `tidemark ledger` counts, and what it finds wrong."""
    tables = account.open_tables(Lake(made))
    found = account.account(tables)
    return account.by_day(found.batches), discrepancies(tables, found, {})


def wrong(made: Conf) -> list[Any]:
    """What `tidemark ledger` and `tidemark verify` find."""
    return [*accounted(made)[1], *differences(made)]


def wrong_in(made: Conf, snapshot: Snapshot) -> list[Any]:
    """What `tidemark verify` finds in a snapshot."""
    return [difference for outcome in verify(pinned_snapshot(made, snapshot), made).outcomes for difference in outcome.first]


def temperature(made: Conf, minute: int) -> list[float]:
    """Of the newest revision of the window that begins there: revision, count, sum."""
    windows = latest(made, "gold.kitchen_aggregates", ["device_id", "metric", "window_end"])
    (row,) = windows[windows.window_start == at_minute(minute)].to_dict("records")
    return [row["revision"], row["count"], row["sum"]]


def test_only_events_of_the_rule_and_source_that_were_asked_for_are_looked_at_again(mended: Conf, spark: SparkSession) -> None:
    before, lake = [table(mended, name) for name in CHANGED], Lake(mended, spark).interpreted()
    with quarantine_retry(lake, Chosen("value_is_in_range", "plant")) as foreseen:
        expected = {"source": "plant", "events": 3, "readmitted": 2, "duplicates": 1, "quarantined": 0, "moved": 0}
        assert foreseen.summary == [expected]
    with quarantine_retry(lake, Chosen("value_is_in_range", "gateway")) as foreseen:
        assert (foreseen.summary, foreseen.is_change) == ([], False)
    with quarantine_retry(lake, Chosen(source="nobody's")) as foreseen:
        assert (foreseen.summary, foreseen.is_change) == ([], False)
    assert all(map(pd.DataFrame.equals, before, (table(mended, name) for name in CHANGED)))


@pytest.fixture(scope="module")
def killed(mended: Conf, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Conf]:
    """Copies of the lake with a retry that was killed before it changed any table; the first is finished since. So is it in the lake."""
    lake = Lake(mended, spark).interpreted()
    with quarantine_retry(lake, Chosen()) as verdict, killed_before(0):
        retry.carry_out(lake, verdict)
    told = {row["source"]: [row[name] for name in retry.COLUMNS[1:]] for row in verdict.summary}
    assert told == {"gateway": [3, 2, 1, 1, 0], "plant": [4, 2, 1, 1, 0]}
    copies = [copied(mended, tmp_path_factory.mktemp("killed")) for _ in range(5)]
    retry.finish(Lake(copies[0], spark))
    return copies


@pytest.mark.parametrize("step", range(1, 4))
def test_a_retry_that_is_killed_between_two_tables_is_finished_by_the_next_writer_whatever_became_of_conf(
    step: int, killed: list[Conf], spark: SparkSession
) -> None:
    """And until then the ledger gives the account of before it."""
    undisturbed, made = killed[0], killed[step]
    before = accounted(made)
    with killed_before(step):
        retry.finish(Lake(made, spark))
    assert accounted(made) == before
    retry.finish(Lake(replace(made, sources={}, metrics={}), spark))
    assert accounted(made) != before
    for name in CHANGED:
        found, expected = table(made, name), table(undisturbed, name)
        assert multiset(found, found.columns.to_list()) == multiset(expected, expected.columns.to_list())


def test_a_replay_pins_no_quarantine_that_a_killed_retry_left(killed: list[Conf], spark: SparkSession) -> None:
    """What is re-admitted is late already; the group that is built anew has folded it in."""
    made = replace(killed[4], groups={"kitchen": KITCHEN})
    with killed_before(2):
        retry.finish(Lake(made, spark))
    before = all_snapshots(made.lake)
    replay(made, spark, "kitchen")
    assert all_snapshots(made.lake) == before
    retry.finish(Lake(made, spark))
    pinned = take_snapshot(Lake(made), START)
    assert pinned is not None
    assert pinned.generation == 2
    assert wrong(made) == []


@pytest.fixture(scope="module")
def readmitted(mended: Conf, killed: list[Conf], spark: SparkSession) -> Conf:
    """The lake after a second retry, which finishes the first and finds nothing more to do."""
    assert killed
    assert wrong(mended) == []
    with Progress([AMENDMENTS], Console(file=io.StringIO())) as progress:
        told = retry_quarantine(Lake(mended, spark), Chosen(), progress)
    assert [[row[name] for name in retry.COLUMNS] for row in told] == [["gateway", 1, 0, 0, 1, 0], ["plant", 1, 0, 0, 1, 0]]
    return mended


def test_what_is_good_now_leaves_quarantine_once_and_is_folded_into_gold(readmitted: Conf, spark: SparkSession) -> None:
    assert sorted(table(readmitted, "silver.late").groupby("cause").value.apply(sorted)["retried"]) == [2, 500, 500, 1000]
    assert sorted(map(tuple, table(readmitted, "silver.quarantine").broken_rules)) == [("device_is_known",), ("payload_is_readable",)]
    assert sorted(table(readmitted, "silver.duplicates").value) == [700, 1000]
    assert temperature(readmitted, 0) == [1, 13, 45 + 500 + 1000 + 2]
    assert wrong(readmitted) == []


def test_a_snapshot_of_before_gives_the_old_answer_and_the_newest_the_new_one(readmitted: Conf, spark: SparkSession) -> None:
    counts = "select (select count(*) from silver.quarantine) as quarantined, (select count(*) from silver.late) as late, sum(count) as n"
    of_snapshot = [tuple(Lake(readmitted, spark).sql(f"{counts} from gold.kitchen_aggregates", snapshot=n).collect()[0]) for n in (0, 1)]
    assert of_snapshot == [(7, 0, 20), (2, 4, 23)]


def test_a_reading_that_comes_later_with_the_key_of_a_readmitted_row_is_its_duplicate(readmitted: Conf, spark: SparkSession) -> None:
    """The one at 29.5 is ahead of the watermark, so the stream takes its key for a new one."""
    land(readmitted.folder, "2.json", [event("oven", "temperature", 1, at_minute(minute)) for minute in (5.5, 29.5, 29.6, 60)])
    run(readmitted, spark)
    of_batch = [table(readmitted, f"silver.{name}").query("bronze_batch == 1") for name in ("readings", "late", "duplicates")]
    assert [sorted(rows.value) for rows in of_batch] == [[1, 1], [], [1, 1]]
    assert temperature(readmitted, 20) == [1, 12, sum(range(20, 30)) + 500 + 1]
    assert wrong(readmitted) == []


@pytest.fixture(scope="module")
def renamed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """A lake that did not know the oven for a while, as it was renamed by mistake, and knows it again."""
    made = conf(tmp_path_factory.mktemp("renamed"))
    devices = {name: device for name, device in made.devices.items() if name != "oven"}
    mistaken = replace(made, devices=devices | {"oven-1": replace(made.devices["oven"], device_id="oven-1")})
    values = {"oven": (1, 2), "oven-1": (3,)}
    for number, now in enumerate((made, mistaken, made)):
        lines = [event(name, "temperature", value, at_minute(number + value / 4)) for name in values for value in values[name]]
        land(made.folder, f"{number}.json", lines)
        run(now, spark)
    return made


def test_a_device_that_was_unknown_by_mistake_is_mended_by_declaring_it_and_a_retry(renamed: Conf, spark: SparkSession) -> None:
    assert sorted(table(renamed, "silver.quarantine").device_id) == ["oven", "oven", "oven-1", "oven-1"]
    assert wrong(renamed) == [], "nothing is corrected before it is asked for"
    lake = Lake(renamed, spark).interpreted()
    with quarantine_retry(lake, Chosen(source="nobody's")) as foreseen:
        assert not foreseen.is_change
    with quarantine_retry(lake, Chosen("device_is_known")) as verdict, killed_before(1):
        retry.carry_out(lake, verdict)
    assert [[row[name] for name in retry.COLUMNS] for row in verdict.summary] == [["plant", 4, 2, 0, 2, 0]]
    snapshot = all_snapshots(renamed.lake)[-1]
    assert wrong_in(renamed, snapshot) == [], "the registry is corrected, and nothing is readmitted"
    with Progress([AMENDMENTS], Console(file=io.StringIO())) as progress:
        told = retry_quarantine(Lake(renamed, spark), Chosen("device_is_known"), progress)
    assert [[row[name] for name in retry.COLUMNS] for row in told] == [["plant", 2, 0, 0, 2, 0]]
    assert [wrong_in(renamed, pinned) for pinned in (snapshot, all_snapshots(renamed.lake)[-1])] == [[], []]
    assert sorted(table(renamed, "silver.quarantine").device_id) == ["oven-1", "oven-1"], "nobody has declared it again"
    assert sorted(table(renamed, "silver.late").value) == [1, 2]
    assert wrong(renamed) == []


@pytest.mark.slow
def test_a_replay_makes_readings_of_what_a_retry_readmitted_and_gold_stays(readmitted: Conf, spark: SparkSession) -> None:
    windows = "select device_id, metric, window_start, count, sum from gold.kitchen_aggregates order by all"
    before = Lake(readmitted, spark).sql(windows).collect()
    replay(readmitted, spark)
    rebuilt = Lake(readmitted, spark)
    assert rebuilt.sql("select count(*) from silver.late where cause = 'retried'").collect()[0][0] == 0
    assert rebuilt.sql("select count(*) from silver.readings where value in (500, 1000)").collect()[0][0] == 3
    assert rebuilt.sql(windows).collect() == before
    assert wrong(readmitted) == []
