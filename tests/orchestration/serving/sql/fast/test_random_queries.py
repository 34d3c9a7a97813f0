"""Queries made at random, of what the fast engine knows: it answers as Spark does, or refuses; and never where Spark ends with an error.

`make fast` asks 700 of them instead of 20, others each time.
"""

import pytest
from hypothesis import HealthCheck, event, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.fast.engine import FastEngine
from orchestration.serving.sql.refusal import RefusedError
from orchestration.storage.views import views
from tests.orchestration.serving.sql.fast.answers import assert_same
from tests.orchestration.serving.sql.fast.lake import edges
from tests.orchestration.serving.sql.fast.random_queries import made

pytestmark = pytest.mark.fast
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]


@pytest.fixture(scope="module")
def fast(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> FastEngine:
    conf = edges(tmp_path_factory.mktemp("made"))
    Lake(conf, spark).show(views(conf, None).values())
    return FastEngine(conf, Limits())


@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=SUPPRESSED)
@given(query=made)
def test_what_is_answered_is_what_spark_answers(fast: FastEngine, spark: SparkSession, query: str) -> None:
    assert_answered_alike(fast, spark, query)


@pytest.mark.slow
@settings(max_examples=700, deadline=None, suppress_health_check=SUPPRESSED)
@given(query=made)
def test_what_is_answered_is_what_spark_answers_to_700_queries(fast: FastEngine, spark: SparkSession, query: str) -> None:
    assert_answered_alike(fast, spark, query)


def assert_answered_alike(fast: FastEngine, spark: SparkSession, query: str) -> None:
    try:
        found = fast.ask(Question(query)).rows
    except RefusedError as refusal:
        event(f"refused: {str(refusal).splitlines()[0][:60]}")
        return
    try:
        expected = spark.sql(query).toArrow()
    except PySparkException as error:
        raise AssertionError(f"Spark ends with an error: {query}") from error
    event("answered")
    assert_same(found, expected, query)
