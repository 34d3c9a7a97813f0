"""Whoever is killed, and whenever: the table of Postgres is that of the lake at some snapshot, and at the end at the newest."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from orchestration.storage.snapshot import Snapshot
from tests.orchestration.connectors.sinks.postgres_server import PASSWORD, PostgresServer
from tests.orchestration.connectors.sinks.sender import sender
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, SmallLake
from tests.orchestration.connectors.sinks.test_postgres import lake_for

pytestmark = [pytest.mark.postgres, pytest.mark.processes]
KILLS = 10


def contents(server: PostgresServer) -> list[tuple[object, ...]]:
    return server.rows("select device_id, window_end, revision, value from received order by 1, 2")


def expected(lake: SmallLake, snapshot: Snapshot) -> list[tuple[object, ...]]:
    rows = lake.expected(AGGREGATES, snapshot).values()
    return sorted((row["device_id"], row["window_end"], row["revision"], row["value"]) for row in rows)


def test_the_server_and_the_sender_are_killed_at_ten_moments_and_the_tables_are_equal(
    tmp_path: Path, server: PostgresServer, postgres: PostgresServer, chance: random.Random
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    taken: list[Snapshot] = []
    for kill in range(KILLS):
        taken.append(lake.grow(kill, chance, 4000))
        process = sender(lake.conf, "warehouse")
        time.sleep(chance.uniform(0.0, 0.5))
        if kill % 2:
            server.kill()
            process.communicate()
            server.start()
        else:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        is_made = postgres.rows("select to_regclass('received') is not null") == [(True,)]
        if is_made:
            ((position,),) = postgres.rows("select (position::json ->> 'snapshot_id')::int from tidemark_positions")
            assert contents(postgres) == expected(lake, taken[position])
    process = sender(lake.conf, "warehouse")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert contents(postgres) == expected(lake, taken[-1])


def test_two_processes_that_send_at_once_send_each_row_once(tmp_path: Path, postgres: PostgresServer) -> None:
    lake, chance = lake_for(tmp_path, AGGREGATES), random.Random(1)
    for number in range(3):
        last = lake.grow(number, chance, 4000)
        processes = [sender(lake.conf, "warehouse") for _ in range(2)]
        told = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0, 0], told
        assert contents(postgres) == expected(lake, last)


def test_the_command_line_of_a_sender_and_of_the_server_hold_no_secret(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.grow(0, random.Random(1), 4000)
    process = sender(lake.conf, "warehouse")
    lists = subprocess.run(["ps", "axww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    process.communicate()
    assert PASSWORD not in lists


def test_a_server_that_is_down_is_found_again(tmp_path: Path, server: PostgresServer, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    chance = random.Random(1)
    lake.grow(0, chance, 4000)
    lake.step()
    server.kill()
    lake.grow(1, chance, 4000)
    with pytest.raises(Exception, match="the Postgres server was not reached, or the connection broke"):
        lake.step()
    server.start()
    last = lake.grow(2, chance, 4000)
    lake.send_all()
    assert contents(postgres) == expected(lake, last)


@pytest.mark.slow
def test_a_million_rows_are_sent_and_the_speed_is_told(tmp_path: Path, postgres: PostgresServer) -> None:
    lake_for(tmp_path, AGGREGATES).send_a_million()
    assert postgres.rows("select count(*), sum(value) from received") == [(1_000_000, 10 * sum(map(float, range(100_000))))]
