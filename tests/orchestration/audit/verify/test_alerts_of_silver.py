"""Verify's own alerts over the silver of a planted lake are those that the job wrote, however it went; without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from gold.alerts.spec import Alert, Hours, NoData, Signal
from orchestration.audit.verify.alerts import alert_outcomes
from orchestration.audit.verify.compare import Outcome
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.audit.verify.silver_account import COUNTED
from orchestration.audit.verify.store import READINGS, column_names, listed, opened, plain
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.exact_alerts import tick_if_due
from orchestration.storage import registry
from tests.lakes import recorded, rewrite
from tests.orchestration.jobs.test_alert_slices import FEW, HOT, SILENT, declared, follow, now, readings

ALERTS = (
    HOT,
    FEW,
    replace(SILENT, name="silent", no_data=NoData(60, "resolve", 2)),
    replace(SILENT, name="expected", signal=Signal("reading", "temperature", "kitchen"), expected="devices.yml"),
    Alert("jump", Signal("reading", "temperature"), "abs(change) > 50 and seconds < 20", for_times=2, keep_firing_seconds=30),
    Alert("ordered", Signal("reading", "temperature"), "change > 0", "change < 0", wait_seconds=40),
    Alert("none", Signal("count", every_seconds=60), "readings = 0", expected="devices.yml", wait_seconds=20),
    Alert("by_group", Signal("count", every_seconds=120, by="group"), "readings < 100"),
    replace(FEW, name="hours", hours=Hours("Europe/Berlin", tuple(range(7)), 60, 70)),
)


def lived(folder: Path, ends: Sequence[int]) -> Lake:
    """Seven batches with late ones, ticks, and a device that leaves; a run looks behind batches of `ends`."""
    lake, chance = declared(folder, *ALERTS), np.random.default_rng(5)
    registry.sync(lake.conf.lake, lake.conf.devices, now(0))
    for batch in range(7):
        values = chance.choice([200.0, 270.0, 290.0], 200)
        begin = batch * 100 + (300 if batch > 4 else 0)
        readings(lake, values, 2, batch, since=begin, wall=begin + 130)
        if batch % 3 == 2:
            readings(lake, values[::-1], 3, batch, since=begin - 250, table="silver.late", wall=begin + 130)
        if batch == 3:
            registry.sync(lake.conf.lake, {name: one for name, one in lake.conf.devices.items() if name != "oven"}, now(begin + 140))
        if batch in ends:
            follow(lake, batch)
            for second in (60, 100, 150) if batch in {4, 6} else ():
                if tick_if_due(lake, now(begin + 130 + second)):
                    follow(lake, batch)
    return lake


def outcomes(lake: Lake, folder: Path, closed: Mapping[str, datetime] | None = None) -> Iterator[Outcome]:
    """`closed`: up to where the windows of streams are, where there are any."""
    with opened(folder) as store:
        for name in ("readings", "late"):
            store.register("arriving", plain(recorded(lake, f"silver.{name}")))
            store.execute(f"create table {name} as select {listed(column_names(READINGS))} from arriving")
        store.execute("create table accepted as from readings union all from late")
        both = (
            f"select {listed(COUNTED)}, {is_late} as is_late from {name}" for name, is_late in (("readings", "false"), ("late", "true"))
        )
        store.execute(f"create table counted as {' union all '.join(both)}")
        snapshot = latest_snapshot(lake.conf)
        snapshot = replace(snapshot, bronze_batch=6, closed_until={**snapshot.closed_until, **(closed or {})})
        yield from alert_outcomes(store, snapshot, lake.conf, lambda _: None)


@pytest.mark.parametrize("ends", [[4, 6], [0, 1, 2, 3, 4, 5, 6]])
def test_the_second_evaluator_finds_the_rows_that_the_job_wrote(ends: list[int], tmp_path: Path) -> None:
    lake = lived(tmp_path, ends)
    (tmp_path / "store").mkdir()
    judged = {outcome.table: outcome for outcome in outcomes(lake, tmp_path / "store")}
    assert {name: (outcome.differences, outcome.first) for name, outcome in judged.items()} == dict.fromkeys(judged, (0, ()))
    assert {name for name, outcome in judged.items() if not outcome.rows} == set()
    rows = recorded(lake, "gold.alerts")
    assert {*rows["reason"].to_pylist()} == {None, "retired"}
    rewrite(lake, "gold.alerts", rows[1:])
    (tmp_path / "again").mkdir()
    assert sum(outcome.differences for outcome in outcomes(lake, tmp_path / "again")) == 1
