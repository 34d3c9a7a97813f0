"""The lake that all tests of damage share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.session import HEAP_STORE
from tests.damage.damaged import Damaged, built


@pytest.fixture(scope="session")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    """With the state in the heap."""
    return built(spark, HEAP_STORE, tmp_path_factory.mktemp("damaged"))


@pytest.fixture
def damaged(whole: Damaged, monkeypatch: pytest.MonkeyPatch) -> Iterator[Damaged]:
    """As it was built; the command line opens it too."""
    whole.restore()
    whole.serve(monkeypatch)
    yield whole
