"""One server for the tests of this folder that only ask."""

from collections.abc import Iterator

import pytest

from tests.orchestration.serving.postgres.served import Served, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running server over a small lake; nobody may kill it or write to its lake."""
    with serving(tmp_path_factory.mktemp("sql-server")) as running:
        yield running
