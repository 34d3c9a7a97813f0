"""A retry of the quarantine, killed between any two of its tables: each row leaves quarantine once, and is in gold."""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.crash import VARIABLE, Point
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME as AMENDMENTS
from orchestration.supervisor.run import retry_quarantine
from tests.chaos.account import assert_as_undisturbed, tables
from tests.chaos.plants import SECONDS, Plant, events
from tests.lakes import run

pytestmark = [pytest.mark.kill, pytest.mark.processes]
KILLS = (
    (("quarantine", "retry"), Point.RETRY_NOTED),
    (("run", "--once"), Point.RETRY_READMITTED),
    (("quarantine", "retry"), Point.RETRY_REPLACED),
)
"""What is killed mends first what the kill before left."""
Kill = tuple[tuple[str, ...], Point]


def too_strict(plant: Plant, files: list[Path], spark: SparkSession) -> int:
    """Bring the files through under a conf that takes no temperature above 20 degrees, then mend it; rows in quarantine."""
    metrics = plant.folder / "conf" / "metrics.yml"
    mended = metrics.read_text()
    metrics.write_text(mended.replace("maximum: 400", "maximum: 20"))
    plant.land(files)
    run(plant.opened().conf, spark)
    metrics.write_text(mended)
    return len(tables(plant)["silver.quarantine"])


@pytest.mark.parametrize("kills", [pytest.param(KILLS[:1], id="one"), pytest.param(KILLS, id="all", marks=pytest.mark.slow)])
def test_a_retry_that_is_killed_readmits_each_row_once(kills: Sequence[Kill], spark: SparkSession, tmp_path: Path) -> None:
    files = events(tmp_path / "events", files=2, seed=1)
    plant, undisturbed = Plant(tmp_path / "disturbed"), Plant(tmp_path / "undisturbed")
    before = [too_strict(each, files, spark) for each in (plant, undisturbed)]
    for command, at in kills:
        with plant.running(*command, **{VARIABLE: str(at)}) as process:
            assert process.wait(SECONDS) == -signal.SIGKILL, plant.log_end()
    run(plant.opened().conf, spark)

    lake = undisturbed.opened()
    with Progress([AMENDMENTS]) as progress:
        retry_quarantine(Lake(lake.conf, spark), Chosen(), progress)
    assert_as_undisturbed(plant, undisturbed)
    assert before == [before[0]] * 2
    assert len(tables(plant)["silver.quarantine"]) < before[0]
