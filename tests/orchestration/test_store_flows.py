"""A whole lake in an object store has the rows of one on a disk, and every command answers."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME as AMENDMENTS
from orchestration.storage.generations import FOLDER
from orchestration.storage.lease import sole_writer
from orchestration.supervisor.run import retry_quarantine
from tests.chaos import far_side
from tests.chaos.account import assert_as_undisturbed
from tests.chaos.plants import Plant, events
from tests.chaos.test_retry_kills import too_strict
from tests.commands import Tidemark
from tests.lakes import replay
from tests.object_store import Store

COMMANDS = (
    ("status",),
    ("sql", "select count(*) from silver.readings"),
    ("sql", "select * from gold.kitchen_vectors"),
    ("quality",),
    ("maintain",),
    ("ledger",),
    ("verify",),
)


def brought_up(plant: Plant, files: list[Path], spark: SparkSession) -> None:
    """Run all files with a sink and a rule that is too strict, and apply the rules again."""
    plant.add_sink()
    with sole_writer(plant.opened().conf.lake), Progress([AMENDMENTS]) as progress:
        assert too_strict(plant, files, spark) > 0
        retry_quarantine(Lake(plant.opened().conf, spark), Chosen(), progress)


def test_a_lake_in_a_store_has_the_rows_of_one_on_a_disk_and_every_command_answers(
    spark: SparkSession, store: Store, tmp_path: Path, tidemark: Tidemark, request: pytest.FixtureRequest
) -> None:
    files = events(tmp_path / "events", files=2, seed=1)
    on_disk, in_store = Plant(tmp_path / "disk"), Plant(tmp_path / "store", store=store)
    brought_up(on_disk, files, spark)
    request.getfixturevalue("monkeypatch").setenv("XDG_STATE_HOME", str(tmp_path / "store" / "state"))
    spark_in_store = request.getfixturevalue("spark_in_store")
    brought_up(in_store, files, spark_in_store)
    assert_as_undisturbed(in_store, on_disk)
    assert far_side.wrong(in_store.opened().conf) == []
    with sole_writer(in_store.opened().conf.lake / FOLDER):
        assert replay(in_store.opened().conf, spark_in_store) == 2
    said = {words: tidemark("--conf", in_store.folder / "conf", *words) for words in COMMANDS}
    assert {words: answer.err for words, answer in said.items() if answer.code} == {}
    assert in_store.exit_code("dbt", "build") == 0, in_store.log_end()
    assert [*(in_store.folder / "lake").iterdir()] == []
