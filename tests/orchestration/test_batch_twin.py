"""Silver and gold against the batch twin: the same input in several orders, cut into 1, 2 and 7 bronze batches, in one run and in three."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from gold.spec import Group, Vector
from orchestration.conf.model import Conf, Device
from orchestration.connectors.simulator.feed import in_order
from orchestration.connectors.simulator.landing import Landing, truth_folder
from orchestration.connectors.simulator.plan import DEFAULT_START, Odds, plan
from silver.spec import Aggregation, Metric, Policy
from tests import twin
from tests.lakes import assert_same, conf, latest, run, table

FILES = 7
EVENTS = 2800
"""Of four devices with nine metrics, one a minute: a file is 11 minutes long."""
CLEAN = Odds(late=0, duplicate=0, malformed=0, future=0, offline=0)
RESENT = replace(CLEAN, duplicate=0.1)
DIRTY = Odds(late=0.05, duplicate=0.05, malformed=0.02, future=0.002, offline=0.02)
METRICS = (
    Metric("temperature", Aggregation.AVERAGE, 600),
    Metric("humidity", Aggregation.MEDIAN, 600),
    Metric("power", Aggregation.SUM, 1800),
    Metric("door", Aggregation.LATEST, 300),
    Metric("vibration", Aggregation.MAX, 600, slide_seconds=300),
    Metric("pressure", Aggregation.STDDEV, 1200, slide_seconds=600),
    Metric("cycles", Aggregation.COUNT, 900),
    Metric("speed", Aggregation.MIN, 900, slide_seconds=300),
    Metric("torque", Aggregation.FIRST, 60),
)
GROUPS = (
    Group(
        "kitchen",
        ("temperature", "humidity", "power", "door"),
        600,
        "kitchen",
        Vector("device", ("power", "temperature", "humidity", "door"), 1800),
    ),
    Group(
        "presses",
        ("vibration", "pressure", "cycles"),
        600,
        "halls",
        Vector("group", ("press.vibration", "pump.pressure", "press.cycles", "pump.vibration"), 600),
    ),
    Group("site", ("speed", "torque", "vibration"), 900, "halls", Vector("device", ("torque", "speed"))),
)
DEVICES = {"oven": ("kitchen",), "fridge": ("kitchen", "site"), "press": ("presses", "site"), "pump": ("presses",)}


Batches = tuple[tuple[int, ...], ...]
"""Numbers of the files of each bronze batch, in the order of their times."""


@dataclass(frozen=True)
class Case:
    """`runs`: the bronze batches of each run. `lateness_seconds` is that of silver; `loses`: its watermark turns readings away."""

    odds: Odds
    runs: tuple[Batches, ...]
    lateness_seconds: int = 600
    loses: bool = False

    @property
    def files(self) -> list[list[str]]:
        """The files of each run."""
        return [[_name(number) for batch in batches for number in batch] for batches in self.runs]

    @property
    def batches(self) -> list[list[str]]:
        """The files of each bronze batch."""
        return [[_name(number) for number in batch] for batches in self.runs for batch in batches]


def _name(number: int) -> str:
    return f"events-{number:06d}.jsonl"


def one_by_one(*files: int) -> Batches:
    return tuple((file,) for file in files)


CASES = {
    "clean, in order, 7 batches": Case(CLEAN, (one_by_one(1, 2, 3, 4, 5, 6, 7),)),
    "disordered within the lateness, duplicates, 2 batches": Case(RESENT, (((1, 2, 3, 5), (4, 6, 7)),), 1500),
    "late, disordered, duplicates, 1 batch": Case(DIRTY, (((1, 4, 2, 6, 3, 5, 7),),)),
    "late, disordered, duplicates, 2 batches": Case(DIRTY, (((1, 4, 2, 6), (3, 5, 7)),), loses=True),
    "late, disordered, duplicates, 7 batches": Case(DIRTY, (one_by_one(1, 4, 2, 6, 3, 5, 7),), loses=True),
    "late, disordered, duplicates, 3 runs": Case(DIRTY, (((1, 4, 2),), ((6, 3),), ((5, 7),)), 2400, loses=True),
}


SLOW = {"clean, in order, 7 batches", "late, disordered, duplicates, 2 batches", "late, disordered, duplicates, 7 batches"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=[pytest.mark.slow] if name in SLOW else []) for name, case in CASES.items()]
)
def test_silver_and_gold_equal_the_batch_twin(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    declared = plant(tmp_path, case)
    truth = simulated(declared, case)
    # A batch takes files up to so many bytes, and at least one.
    first_batch = sum((tmp_path / "all" / name).stat().st_size for name in case.batches[0])
    made = replace(declared, engine=replace(declared.engine, max_batch_bytes=first_batch))
    for names in case.files:
        for name in names:
            (tmp_path / "all" / name).rename(tmp_path / "landing" / name)
        run(made, spark)
    assert batches_of(table(made, "bronze.events")) == list(map(sorted, case.batches))
    assert_silver_equals_the_twin(made, case, truth)
    for stream in ("kitchen", "halls"):
        assert_gold_equals_the_twin(made, stream, accepted_by_run(case, truth), truth)


def plant(folder: Path, case: Case) -> Conf:
    """Every aggregation type; tumbling, sliding and mixed steps; a stream of one group and one of two, with a lateness each."""
    return conf(
        folder,
        policy=Policy(case.lateness_seconds, max_future_seconds=300, max_payload_bytes=10_000),
        metrics={metric.name: metric for metric in METRICS},
        groups={group.name: group for group in GROUPS},
        devices={name: Device(name, members) for name, members in DEVICES.items()},
    )


def simulated(made: Conf, case: Case) -> pd.DataFrame:
    """The truth about the files in `all`, whose times are in the order in which they land."""
    landing = made.folder / "all"
    odds_of = plan(
        made, list(made.devices.values()), events=EVENTS, seed=7, start=DEFAULT_START, interval_seconds=60, shape="long", odds=case.odds
    )
    in_order(odds_of, Landing(landing, odds_of), FILES, lambda _: None)
    (made.folder / "landing").mkdir()
    for n, name in enumerate(name for names in case.files for name in names):
        os.utime(landing / name, (1_700_000_000 + n, 1_700_000_000 + n))
    return pd.read_parquet(truth_folder(landing))


def batches_of(events: pd.DataFrame) -> list[list[str]]:
    """The files of each bronze batch."""
    return [sorted(set(rows.position)) for _, rows in events.groupby("bronze_batch")]


def assert_silver_equals_the_twin(made: Conf, case: Case, truth: pd.DataFrame) -> None:
    """Missing is what the watermark turned away, and nothing else; what cannot be a reading is in quarantine."""
    found = table(made, "silver.readings")
    expected = twin.readings(truth, case.batches, made.policy.lateness_seconds)
    assert_same(found, expected, twin.KEY, twin.READING)
    turned_away = keys(twin.readings(truth)) - keys(expected)
    assert keys(twin.readings(truth)) - keys(found) == turned_away
    assert bool(turned_away) == case.loses
    assert keys(table(made, "silver.late")) == turned_away
    assert len(table(made, "silver.late")) == len(turned_away)
    valid = truth[truth["kind"].isin(twin.VALID_KINDS)]
    assert len(table(made, "silver.duplicates")) == len(valid) - len(found) - len(turned_away)
    broken = truth[~truth["kind"].isin(twin.VALID_KINDS)]
    assert len(table(made, "silver.quarantine")) == len(broken)
    assert bool(len(broken)) == (case.odds is DIRTY)


def accepted_by_run(case: Case, truth: pd.DataFrame) -> list[pd.DataFrame]:
    """The readings that each run adds; gold takes them in one batch."""
    runs: list[pd.DataFrame] = []
    landed: set[str] = set()
    for files in case.files:
        landed.update(files)
        so_far = twin.readings(truth, [batch for batch in case.batches if landed.issuperset(batch)], case.lateness_seconds)
        runs.append(so_far.iloc[sum(map(len, runs)) :])
    return runs


def assert_gold_equals_the_twin(made: Conf, stream: str, runs: Sequence[pd.DataFrame], truth: pd.DataFrame) -> None:
    """Every closed window and vector of the stream's groups, and no open one; what came late is folded in."""
    groups = [group for group in made.groups.values() if group.stream == stream]
    lateness = max(group.lateness_seconds for group in groups)
    of_stream = [pd.concat([twin.of_group(rows, made.devices, group) for group in groups]).drop_duplicates(twin.KEY) for rows in runs]
    judged = twin.with_watermarks(of_stream, lateness)
    watermark = twin.watermark(judged, lateness)
    everything = twin.readings(truth)
    for group in groups:
        in_time = twin.closed(twin.aggregates(twin.of_group(judged, made.devices, group), made.metrics, group), watermark)
        windows = twin.aggregates(twin.of_group(everything, made.devices, group), made.metrics, group)
        closed = twin.closed(windows, watermark)
        assert 0 < len(closed) < len(windows)
        assert_same(latest(made, f"gold.{group.name}_aggregates", twin.WINDOW), closed, twin.WINDOW, twin.AGGREGATES)
        vectors = twin.vectors(closed, made.metrics, group)
        vectors["vector"] = vectors["vector"].map(lambda values: np.array(values, dtype=float))  # a null is NaN, as pandas reads it
        assert_same(latest(made, f"gold.{group.name}_vectors", twin.VECTORS[:3]), vectors, twin.VECTORS[:3], twin.VECTORS)
        history = table(made, f"gold.{group.name}_aggregates")
        assert bool((history.revision > 0).any()) == (closed["count"].sum() > in_time["count"].sum())
        assert len(table(made, f"gold.{group.name}_late")) == 0 or len(runs) > 1


def keys(readings: pd.DataFrame) -> set[tuple[object, ...]]:
    return set(readings[twin.KEY].itertuples(index=False, name=None))
