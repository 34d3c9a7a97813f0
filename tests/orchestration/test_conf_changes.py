"""A lake whose conf changes between runs, by every row of the table in conf/README.md: taken up, or refused with the conf before going on;
verify is clean after each, and a replay takes up what was refused.
"""

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from orchestration.cli.ledger import account_of, accounts_of_gold
from orchestration.conf.load import load
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.errors import ConfError
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME as AMENDMENTS
from orchestration.storage.confs import unreplayed_changes
from orchestration.storage.kept_confs import CONFS, running_conf
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.run import retry_quarantine
from tests.conf_changes import ALL, CHANGES, HELD, LAKE, ConfChange, write_plant
from tests.lakes import differences, land, minutes, replay, run, table
from tests.orchestration.supervisor.test_replay_preview import foreseen, shown
from tests.rows import at

START = at("2026-03-02T06:00:00")
TAKEN_UP = [change for change in CHANGES if change.holds not in {HELD, LAKE}]
WINDOWS = ("device_group", "device_id", "metric", "window_end", "value", "revision")


class Plant:
    """The plant of tests/conf_changes.py, and one more hour of events each time."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.conf, self.hours = folder, spark, write_plant(folder), 0

    def go_on(self) -> None:
        """Bring in an hour of every source, and run."""
        begin = START + timedelta(hours=self.hours)
        times, between = minutes(begin, 12, step=5), begin + timedelta(seconds=30)
        readings = [
            {"device": device, "ts": time.isoformat(), "metric": metric, "value": 20 + n, "line": "a"}
            for n, time in enumerate(times)
            for device, metric in (("oven", "temperature"), ("fridge", "temperature"), ("oven", "power"))
        ]
        rooms = [{"room": "hall", "ts": f"{time:%Y-%m-%d %H:%M}", "h": 40 + n, "c": 400 + n} for n, time in enumerate(times)]
        late = {"device": "oven", "ts": (begin - timedelta(hours=2, minutes=7)).isoformat(), "metric": "power", "value": 7}
        odd = [{"device": "oven", "ts": between.isoformat(), "metric": "temperature", "value": -10, "line": "b"}, {"device": "nobody"}]
        land(self.folder, f"{self.hours:02}.json", [json.dumps(row) for row in [*readings, *odd, *([late] if self.hours > 3 else [])]])
        land(self.folder, f"{self.hours:02}.json", [json.dumps(row) for row in rooms], "rooms")
        self.hours += 1
        run(load(self.conf), self.spark)

    def assert_proven(self) -> None:
        """verify finds nothing by the conf that runs, and the account of events and of gold neither."""
        made = running_conf(load(self.conf))
        assert differences(made) == []
        assert [account(self.conf, None)[-1] for account in (account_of, accounts_of_gold)] == [[], []]

    def versions(self) -> dict[str, int]:
        """The version of each table, by its folder in the lake."""
        made = load(self.conf)
        logs = sorted(made.lake.local.rglob("_delta_log"))
        return {str(log.parent.relative_to(made.lake.local)): len([*log.glob("*.json")]) for log in logs}


@pytest.fixture(scope="module")
def plant(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """After an hour of events; each test leaves it with one conf more."""
    made = Plant(tmp_path_factory.mktemp("plant"), spark)
    made.go_on()
    made.assert_proven()
    yield made


@pytest.mark.parametrize(
    "changes", [TAKEN_UP[:7], TAKEN_UP[7:13], TAKEN_UP[13:18], TAKEN_UP[18:]], ids=lambda some: f"{some[0].title} to {some[-1].title}"
)
def test_changes_are_taken_up_and_every_batch_is_judged_by_its_conf(plant: Plant, changes: list[ConfChange]) -> None:
    before = len(CONFS.rows(load(plant.conf).lake))
    for change in changes:
        change.apply(plant.conf)
    plant.go_on()
    made = load(plant.conf)
    assert len(CONFS.rows(made.lake)) == before + 1
    after_a_replay = unreplayed_changes(LakeStore(made)).values()
    for change in changes:
        assert any(change.line in line for line in after_a_replay) == (change.holds == ALL), change.title
    plant.assert_proven()


@pytest.mark.parametrize("change", [one for one in CHANGES if one.holds in {HELD, LAKE}], ids=lambda one: one.title)
def test_a_change_that_the_lake_cannot_go_on_with_is_refused_before_anything_is_touched(plant: Plant, change: ConfChange) -> None:
    texts, before = {file: file.read_text() for file in plant.conf.glob("*.yml")}, plant.versions()
    change.apply(plant.conf)
    with pytest.raises(ConfError, match="The lake cannot go on with that"):
        run(load(plant.conf), plant.spark)
    assert plant.versions() == before
    for file, text in texts.items():
        file.write_text(text)


def test_events_that_a_retry_readmits_are_judged_by_the_conf_of_its_time_whatever_comes_after(plant: Plant) -> None:
    metrics = plant.conf / "metrics.yml"
    strict = metrics.read_text()
    metrics.write_text(strict.replace("minimum: 0}", "minimum: -20}"))
    with Progress([AMENDMENTS], Console(file=io.StringIO())) as progress:
        by_source = retry_quarantine(Lake(load(plant.conf), plant.spark), Chosen("value_is_in_range", None), progress)
    assert [(row["source"], row["readmitted"] > 0, row["quarantined"]) for row in by_source] == [("plant", True, 0)]
    plant.assert_proven()
    metrics.write_text(strict)
    plant.go_on()
    plant.assert_proven()


def test_a_replay_takes_up_what_was_refused_and_gives_what_its_preview_said(plant: Plant) -> None:
    for title in ("a window", "the features of a vector", "an aggregation type that needs more of each reading"):
        next(change for change in CHANGES if change.title == title).apply(plant.conf)
    made = load(plant.conf)
    expected = {(row.device_group, row.table): row.rows_after for row in foreseen(made).tables if row.table != "silver.quarantine"}
    assert replay(made, plant.spark) == 2
    rows = shown(made)
    assert {key: rows.get(key, 0) for key in expected} == expected
    assert unreplayed_changes(LakeStore(made)) == {}
    plant.assert_proven()
    plant.go_on()
    plant.assert_proven()
    windows = table(made, "gold.kitchen_aggregates")
    of_temperature = windows[windows["metric"] == "temperature"]
    assert set(of_temperature["window_end"] - of_temperature["window_start"]) == {timedelta(minutes=5)}
