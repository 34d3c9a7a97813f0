"""One Postgres server for all tests of this folder, and an empty database for each."""

import random
from collections.abc import Iterator

import pytest

from tests.orchestration.connectors.sinks.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with PostgresServer().running() as made:
        yield made


@pytest.fixture
def postgres(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """Empty, and named by PG_DSN."""
    server.rows("drop schema public cascade")
    server.rows("create schema public")
    monkeypatch.setenv("PG_DSN", server.dsn)
    return server


@pytest.fixture
def chance(seed: int | None) -> random.Random:
    """It says its seed where a test fails."""
    chosen = seed if seed is not None else random.randrange(10_000)
    print(f"seed {chosen}")
    return random.Random(chosen)
