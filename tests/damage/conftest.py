"""The lake that all tests of damage share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.built import copy_of
from tests.damage.damaged import Damaged, opened


@pytest.fixture(scope="session")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    """With the state in the heap."""
    return opened(copy_of("damage", tmp_path_factory.mktemp("damaged")), spark)


@pytest.fixture
def damaged(whole: Damaged, monkeypatch: pytest.MonkeyPatch) -> Iterator[Damaged]:
    """As it was built; the command line opens it too."""
    whole.restore()
    whole.serve(monkeypatch)
    yield whole
