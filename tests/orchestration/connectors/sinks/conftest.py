"""One Postgres server for all tests of this folder, and an empty database for each."""

from collections.abc import Iterator

import pytest

from tests.orchestration.connectors.sinks.postgres_server import PostgresServer, running


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """Of all tests."""
    with running() as made:
        yield made


@pytest.fixture
def postgres(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """Empty, and named by PG_DSN."""
    server.rows("drop schema public cascade")
    server.rows("create schema public")
    monkeypatch.setenv("PG_DSN", server.dsn)
    return server
