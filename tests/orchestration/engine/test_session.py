"""What a session is started with, and Arrow tables as its rows."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Engine
from orchestration.conf.spark_options import problems_of_settings
from orchestration.engine.session import from_arrow, settings_of

JARS = [Path("a.jar"), Path("b.jar")]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that spark-submit started."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")


def test_a_session_runs_on_this_machine_unless_conf_names_a_master_and_executors_then_get_the_jars() -> None:
    here, there = settings_of(Engine(cores=3), JARS), settings_of(Engine(cores=3, master="yarn"), JARS)
    assert (here["spark.master"], "spark.jars" in here) == ("local[3]", False)
    assert (there["spark.master"], there["spark.jars"]) == ("yarn", "a.jar,b.jar")


def test_under_spark_submit_its_master_and_its_jars_stay_unless_conf_names_a_master(submitted: None) -> None:
    assert {"spark.master", "spark.jars"}.isdisjoint(settings_of(Engine(), JARS))
    assert settings_of(Engine(master="yarn"), JARS)["spark.master"] == "yarn"


def test_a_conf_may_set_nothing_that_a_session_is_started_with() -> None:
    ours = settings_of(Engine(master="yarn", settings={"spark.executor.memory": "4g"}), JARS)
    refused = {problem.path[-1] for problem in problems_of_settings(ours)}
    assert refused == ours.keys() - {"spark.executor.memory"}


def test_a_conf_names_secrets_of_kubernetes_and_holds_none() -> None:
    named = (
        "executor.secretKeyRef.AWS_SECRET_ACCESS_KEY",
        "executor.secrets.keys",
        "container.image.pullSecrets",
        "authenticate.caCertFile",
    )
    held = ("authenticate.oauthToken", "executor.secret", "driver.secretKeyRef.KEY")
    settings = {f"spark.kubernetes.{name}": "tidemark:key" for name in (*named, *held)}
    assert [problem.path[-1] for problem in problems_of_settings(settings)] == [f"spark.kubernetes.{name}" for name in held]


def test_rows_behind_an_empty_piece_of_an_arrow_table_are_not_lost(spark: SparkSession) -> None:
    rows = pa.table({"n": [1, 2, 3]})
    pieces = pa.concat_tables([rows, rows.slice(0, 0), rows])
    assert sorted(row.n for row in from_arrow(spark, pieces).collect()) == [1, 1, 2, 2, 3, 3]
