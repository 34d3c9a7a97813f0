"""Twelve defects are planted into the data of a simulated plant, and each is named by the report; clean data raise no alarm."""

import html
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from orchestration.engine.lake import Lake
from orchestration.quality.check import Scope, check
from orchestration.quality.kinds import KINDS, is_measure
from orchestration.quality.outcome import Run
from orchestration.quality.report import rendered
from orchestration.quality.suites import packaged
from tests.orchestration.quality.field import DAYS, START, made, simulated
from tests.sample import all_of

pytestmark = pytest.mark.defects
FIRST_SEED = 1
SEEDS = range(FIRST_SEED, FIRST_SEED + 20)
FIRST_RUN = 8.1
"""Days after the start: there is a week of reference, and the day after it."""
SUITES = [suite for suite in packaged() if all(map(is_measure, suite.expectations))]


def day(number: float) -> str:
    return f"timestamp '{START + timedelta(days=number):%Y-%m-%d %H:%M:%S}'"


SHARE, DRIFT, STUCK = "tidemark_share_to_be_usual", "tidemark_distribution_to_be_steady", "tidemark_sensors_to_vary"
CLOCK, SILENT, FEATURES = "tidemark_clocks_to_be_steady", "tidemark_devices_to_be_heard", "tidemark_features_to_be_usual"
LAST = f"event_time >= {day(DAYS - 1)}"


@dataclass(frozen=True)
class Defect:
    """SQL that plants it into `sent`, or `after` it into what silver made of that; what the report says, and which kinds fail."""

    said: tuple[str, ...]
    kinds: tuple[str, ...]
    plant: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


DEFECTS = {
    "nulls": Defect(
        ("of device fridge-01 in quarantine by rule value_is_a_number",),
        (SHARE,),
        (f"update sent set value = null where device_id = 'fridge-01' and metric = 'humidity' and {LAST} and hash(event_time) % 10 = 0",),
    ),
    "unit change": Defect(
        ("temperature of device fridge-02 has drifted: its unit looks changed, to degF without being converted",),
        (DRIFT,),
        (f"update sent set value = value * 1.8 + 32 where device_id = 'fridge-02' and metric = 'temperature' and {LAST}",),
    ),
    "stuck sensor": Defect(
        ("humidity of device oven-01 is stuck: 47.3 in all",),
        (STUCK,),
        (f"update sent set value = 47.3 where device_id = 'oven-01' and metric = 'humidity' and {LAST}",),
    ),
    "shifted clock": Defect(
        ("the clock of device oven-04 has shifted",),
        (CLOCK,),
        (f"update sent set event_time = event_time - interval 5 minute where device_id = 'oven-04' and {LAST}",),
    ),
    "duplicate flood": Defect(
        ("of device oven-02 twice",),
        (SHARE,),
        (f"insert into sent select s.* from sent s, range(3) where device_id = 'oven-02' and event_time >= {day(DAYS - 0.25)}",),
    ),
    "missing device": Defect(
        ("device fridge-04 is missing: nothing for 1",),
        (SILENT,),
        (f"delete from sent where device_id = 'fridge-04' and event_time >= {day(DAYS - 0.5)}",),
    ),
    "missing group": Defect(
        ("group press_line (4 devices) is missing",),
        (SILENT, "tidemark_row_count_to_be_as_a_week_before", "tidemark_windows_to_be_new", FEATURES),
        (f"delete from sent where (device_id like 'press-%' or device_id like 'pump-%') and event_time >= {day(DAYS - 0.5)}",),
    ),
    "slow drift": Defect(
        ("temperature of device oven-03 has drifted: it drifts slowly",),
        (DRIFT,),
        (
            f"update sent set value = value + 40 * date_diff('minute', {day(FIRST_RUN)}, event_time) / 2736"
            f" where device_id = 'oven-03' and metric = 'temperature' and event_time >= {day(FIRST_RUN)}",
        ),
    ),
    "truncated day": Defect(
        ("all readings: the day is truncated",),
        ("tidemark_days_to_be_whole",),
        (f"delete from sent where event_time >= {day(7.6)} and event_time < {day(8)}",),
    ),
    "wrong enrichment": Defect(
        ("wrong enrichment: step_seconds of metric power", "is 60, conf says 3600"),
        ("tidemark_readings_to_be_enriched_as_declared",),
        after=(f"update evaluated set step_seconds = 60 where metric = 'power' and {LAST}",),
    ),
    "out-of-range burst": Defect(
        ("of device oven-02 in quarantine by rule value_is_in_range",),
        (SHARE,),
        (
            f"update sent set value = 3276.7 where device_id = 'oven-02' and metric = 'temperature'"
            f" and event_time between {day(DAYS - 0.5)} and {day(DAYS - 0.4)}",
        ),
    ),
    "swapped metrics": Defect(
        ("temperature of device fridge-03 has drifted: it looks swapped with humidity",),
        (DRIFT,),
        (
            "update sent set metric = if(metric = 'humidity', 'temperature', 'humidity')"
            f" where device_id = 'fridge-03' and metric in ('humidity', 'temperature') and {LAST}",
        ),
    ),
}


def run_quality(lake: Lake, at: float) -> Run:
    """What all measures say of it so many days after the start."""
    return check(lake, SUITES, START + timedelta(days=at, minutes=10), lambda table: None, Scope())


def alarms(run: Run) -> list[tuple[str, str]]:
    """Kind and what was found, of all that failed."""
    return [(result.expectation.type, result.outcome.observed) for table in run.tables for result in table.failed]


@dataclass(frozen=True)
class Plant:
    """What one seed sent, its lake at the time of the first run, and the results of that run."""

    store: duckdb.DuckDBPyConnection
    before: Lake
    found: Run

    def after(self, folder: Path, *defects: Defect) -> Run:
        """Results of a run at the end, with the reference that the first run pinned."""
        shutil.copytree(self.before.conf.lake.local / "quality", folder / "quality")
        plants, afters = ([sql for defect in defects for sql in getattr(defect, kind)] for kind in ("plant", "after"))
        return run_quality(made(self.store, folder, plants, afters), DAYS)


@contextmanager
def first_run(seed: int, folder: Path) -> Iterator[Plant]:
    with simulated(seed) as store:
        before = made(store, folder, until=FIRST_RUN)
        yield Plant(store, before, run_quality(before, FIRST_RUN))


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    with first_run(FIRST_SEED, tmp_path_factory.mktemp("before")) as found:
        yield found


@pytest.fixture(scope="module")
def page(plant: Plant, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a lake with all twelve."""
    return html.unescape(rendered(plant.after(tmp_path_factory.mktemp("all"), *DEFECTS.values())))


@pytest.mark.parametrize("name", DEFECTS)
def test_of_twelve_defects_at_once_each_is_named_by_the_report(page: str, name: str) -> None:
    assert [words for words in DEFECTS[name].said if words not in page] == []


@pytest.mark.parametrize("name", all_of(DEFECTS, ["slow drift"]))
def test_a_defect_alone_is_named_and_nothing_else_is(plant: Plant, tmp_path: Path, name: str) -> None:
    defect = DEFECTS[name]
    found = alarms(plant.after(tmp_path, defect))
    text = " | ".join(observed for _, observed in found)
    assert [words for words in defect.said if words not in text] == []
    assert {kind for kind, _ in found} == set(defect.kinds), text


@pytest.mark.parametrize("seed", all_of(SEEDS, SEEDS[:2]))
def test_clean_data_raise_no_alarm(plant: Plant, tmp_path: Path, seed: int) -> None:
    with nullcontext(plant) if seed == FIRST_SEED else first_run(seed, tmp_path / "before") as found:
        run = found.after(tmp_path / "after")
    assert (alarms(found.found), alarms(run)) == ([], [])
    evaluated = {result.expectation.type for table in run.tables for result in table.results if result.outcome.is_success}
    assert evaluated == set(KINDS) - {"tidemark_alarms_to_be_as_planned"}  # nothing judges the vectors of this plant
