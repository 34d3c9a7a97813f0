"""Silver against the simulator's truth, gold against the second evaluator.

The same input in several orders, as 1, 2 and 7 bronze batches, in one run and in three.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from gold.windows.spec import Group, Vector
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Device
from orchestration.connectors.simulator.landing import Landing, in_order
from orchestration.connectors.simulator.plan import DEFAULT_START, Odds, plan
from silver.aggregation import Aggregation
from silver.metric import Metric
from silver.policy import Policy
from tests.lakes import assert_same, conf, run, table, with_batches_of

KEY = ["device_id", "metric", "event_time"]
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


DEFAULT = "late, disordered, duplicates, 2 batches"


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=[] if name == DEFAULT else [pytest.mark.slow]) for name, case in CASES.items()]
)
def test_silver_is_the_truth_and_gold_is_what_verify_computes(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    declared = plant(tmp_path, case)
    truth = simulated(declared, case)
    # A batch takes files up to so many bytes, and at least one.
    first_batch = sum((tmp_path / "all" / name).stat().st_size for name in case.batches[0])
    made = with_batches_of(declared, first_batch)
    for names in case.files:
        for name in names:
            (tmp_path / "all" / name).rename(tmp_path / "landing" / name)
        run(made, spark)
    assert batches_of(table(made, "bronze.events")) == list(map(sorted, case.batches))
    assert_silver_is_the_truth(made, case, truth)
    assert_gold_follows_its_watermark(made, case)
    report = verify(latest_snapshot(made), made)
    assert [difference for outcome in report.outcomes for difference in outcome.first] == []
    assert all(outcome.rows > 0 for outcome in report.outcomes if outcome.table.startswith("gold."))


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
    return pd.read_parquet(f"{landing}.truth")


def batches_of(events: pd.DataFrame) -> list[list[str]]:
    """The files of each bronze batch."""
    return [sorted(set(rows.position)) for _, rows in events.groupby("bronze_batch")]


def late_keys(case: Case, readings: pd.DataFrame) -> set[tuple[object, ...]]:
    """Of the valid lines, keys that silver's watermark turns away: no batch brings them in time.

    A batch is judged by the newest event time of all batches before it, minus the lateness: Spark sets the watermark when a batch begins,
    so rows of one batch never make each other late, and the first batch loses nothing. A row exactly at the watermark is late. That holds
    under the product's setting `spark.sql.streaming.statefulOperator.allowMultiple=false`, also over restarts.
    """
    lateness = pd.Timedelta(seconds=case.lateness_seconds)
    batches = [readings[readings["file"].isin(files)] for files in case.batches]
    newest = [rows["event_time"].max() - lateness for rows in batches]
    watermarks = [max(newest[:n], default=pd.Timestamp(0, tz="UTC")) for n in range(len(batches))]
    in_time = [rows[rows["event_time"] > watermark] for rows, watermark in zip(batches, watermarks, strict=True)]
    return keys(readings) - keys(pd.concat(in_time))


def assert_silver_is_the_truth(made: Conf, case: Case, truth: pd.DataFrame) -> None:
    """Late is what the watermark turns away, and nothing else; what cannot be a reading is in quarantine."""
    readings, late = table(made, "silver.readings"), table(made, "silver.late")
    is_valid = truth["kind"].isin(["good", "late", "duplicate"])
    valid = truth[is_valid].sort_values(["file", "line", "part"]).drop_duplicates(KEY)
    expected_late = late_keys(case, truth[is_valid])
    assert_same(pd.concat([readings, late]), valid, KEY, [*KEY, "value", "unit"])
    assert keys(late) == expected_late
    assert bool(expected_late) == case.loses
    assert len(table(made, "silver.duplicates")) == is_valid.sum() - len(valid)
    assert len(table(made, "silver.quarantine")) == (~is_valid).sum()
    assert (~is_valid).any() == (case.odds is DIRTY)


def assert_gold_follows_its_watermark(made: Conf, case: Case) -> None:
    """Windows are emitted up to the watermark of the stream; those that a later reading belongs to have a second revision."""
    readings = pd.concat([table(made, "silver.readings"), table(made, "silver.late")])
    for group in made.groups.values():
        of_stream = [other for other in made.groups.values() if other.stream == group.stream]
        newest = pd.concat([rows_of_group(readings, other) for other in of_stream])["event_time"].max()
        watermark = newest - pd.Timedelta(seconds=max(other.lateness_seconds for other in of_stream))
        history = table(made, f"gold.{group.name}_aggregates")
        assert history["window_end"].max() == newest_closed(made, rows_of_group(readings, group), watermark)
        assert bool((history.revision > 0).any()) == case.loses
        assert len(table(made, f"gold.{group.name}_late")) == 0 or len(case.runs) > 1


def rows_of_group(readings: pd.DataFrame, group: Group) -> pd.DataFrame:
    is_member = readings["groups"].map(lambda groups: group.name in groups)
    return readings[is_member & readings["metric"].isin(group.metrics)]


def newest_closed(made: Conf, readings: pd.DataFrame, watermark: pd.Timestamp) -> pd.Timestamp:
    """The latest end at or before the watermark of a window that holds one of the readings."""
    ends = []
    for name, rows in readings.groupby("metric"):
        metric = made.metrics[str(name)]
        slide = pd.Timedelta(seconds=metric.slide_seconds or metric.window_seconds)
        ends += [rows["event_time"].dt.floor(slide) + slide * n for n in range(1, pd.Timedelta(seconds=metric.window_seconds) // slide + 1)]
    of_all = pd.concat(ends)
    newest: pd.Timestamp = of_all[of_all <= watermark].max()
    return newest


def keys(readings: pd.DataFrame) -> set[tuple[object, ...]]:
    return set(readings[KEY].itertuples(index=False, name=None))
