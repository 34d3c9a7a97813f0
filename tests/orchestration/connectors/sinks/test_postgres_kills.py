"""Whoever is killed, and whenever: the table of Postgres is that of the lake at some snapshot, and at the end at the newest."""

import random
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from orchestration.connectors.sinks.all import sinks
from orchestration.jobs.sinks import send
from orchestration.storage.snapshot import Snapshot
from tests.orchestration.connectors.sinks.postgres_server import PASSWORD, PostgresServer
from tests.orchestration.connectors.sinks.sender import sender
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, SmallLake, window
from tests.orchestration.connectors.sinks.test_postgres import NOW, TO

pytestmark = [pytest.mark.postgres, pytest.mark.processes]
KILLS = 10


def grow(lake: SmallLake, number: int, chance: random.Random) -> Snapshot:
    """New windows, and amendments of some earlier ones."""
    lake.write(
        AGGREGATES, [window(number, at, float(number), device=f"oven-{at % 50}") for at in range(number * 4000, number * 4000 + 4000)]
    )
    amended = chance.sample(range(number * 4000 + 4000), 50)
    lake.write(AGGREGATES, [window(number, at, chance.random(), revision=number + 1, device=f"oven-{at % 50}") for at in amended])
    return lake.pin(number)


def contents(server: PostgresServer) -> list[tuple[object, ...]]:
    return server.rows("select device_id, window_end, revision, value from received order by 1, 2")


def expected(lake: SmallLake, snapshot: Snapshot) -> list[tuple[object, ...]]:
    rows = lake.expected(AGGREGATES, snapshot).values()
    return sorted((row["device_id"], row["window_end"], row["revision"], row["value"]) for row in rows)


def test_the_server_and_the_sender_are_killed_at_ten_moments_and_the_tables_are_equal(
    tmp_path: Path, server: PostgresServer, postgres: PostgresServer, seed: int | None
) -> None:
    chosen = seed if seed is not None else random.randrange(10_000)
    print(f"seed {chosen}")
    chance, lake = random.Random(chosen), SmallLake(tmp_path, {"warehouse": {"table": AGGREGATES, "postgres": TO}})
    taken: list[Snapshot] = []
    for kill in range(KILLS):
        taken.append(grow(lake, kill, chance))
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
    lake, chance = SmallLake(tmp_path, {"warehouse": {"table": AGGREGATES, "postgres": TO}}), random.Random(1)
    for number in range(3):
        last = grow(lake, number, chance)
        processes = [sender(lake.conf, "warehouse") for _ in range(2)]
        told = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0, 0], told
        assert contents(postgres) == expected(lake, last)


def test_the_command_line_of_a_sender_and_of_the_server_hold_no_secret(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = SmallLake(tmp_path, {"warehouse": {"table": AGGREGATES, "postgres": TO}})
    grow(lake, 0, random.Random(1))
    process = sender(lake.conf, "warehouse")
    lists = subprocess.run(["ps", "axww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    process.communicate()
    assert PASSWORD not in lists


def test_a_server_that_is_down_is_found_again(tmp_path: Path, server: PostgresServer, postgres: PostgresServer) -> None:
    lake = SmallLake(tmp_path, {"warehouse": {"table": AGGREGATES, "postgres": TO}})
    chance = random.Random(1)
    grow(lake, 0, chance)
    send(lake.conf, "warehouse", sinks(lake.conf)["warehouse"], NOW)
    server.kill()
    grow(lake, 1, chance)
    with pytest.raises(Exception, match="the Postgres server was not reached, or the connection broke"):
        send(lake.conf, "warehouse", sinks(lake.conf)["warehouse"], NOW)
    server.start()
    last = grow(lake, 2, chance)
    while send(lake.conf, "warehouse", sinks(lake.conf)["warehouse"], NOW):
        pass
    assert contents(postgres) == expected(lake, last)


@pytest.mark.slow
def test_a_million_rows_are_sent_and_the_speed_is_told(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = SmallLake(tmp_path, {"warehouse": {"table": AGGREGATES, "postgres": TO}})
    for part in range(10):
        rows = [window(part, part * 2000 + at // 50, float(at), device=f"oven-{at % 50}") for at in range(100_000)]
        lake.write(AGGREGATES, rows)
    lake.pin(0)
    sent = send(lake.conf, "warehouse", sinks(lake.conf)["warehouse"], NOW)
    assert sent is not None and sent.rows == 1_000_000
    print(f"{sent.rows / sent.seconds:,.0f} rows/s")
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.execute("select count(*), sum(value) from received").fetchone() == (
            1_000_000,
            10 * sum(map(float, range(100_000))),
        )
