"""Both servers in their sandboxes beside a pipeline that goes on: real clients get the rows of `Lake.sql`, and attacks come to nothing.

All tests try a few attacks; `make bi` tries many more.
"""

import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyhive import hive  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from thrift.transport.TTransport import TTransportException  # type: ignore[import-untyped]

import orchestration
from orchestration.serving.bi.sandbox import USER
from tests.orchestration.serving.bi.attacks import FEW, MANY, PROGRAMS, Host
from tests.orchestration.serving.bi.clients import FailedError, Notebook, Pyhive, Rows, by_beeline
from tests.orchestration.serving.bi.served import ROWS, SECRET, Plant, Server, are_gone

pytestmark = [pytest.mark.bubblewrap, pytest.mark.processes]
SNAPSHOTS = 6
IN_FULL = (pytest.mark.bi, pytest.mark.slow)
PAUSE = 2.0
"""Seconds between looks, in which the pipeline has the two cores of a small machine to itself."""
HEADERS = ("snapshot_id", "device_id,", "metric,")


@pytest.fixture(scope="module")
def plant(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Plant:
    made = Plant(tmp_path_factory.mktemp("bi"))
    made.ingest(spark)
    return made


@pytest.fixture(scope="module")
def servers(plant: Plant) -> Iterator[tuple[Server, Server]]:
    """The Thrift server and that of notebooks, started side by side."""
    with ThreadPoolExecutor() as threads, ExitStack() as both:
        starting = [threads.submit(Server, plant, command) for command in ("thrift-server", "connect-server")]
        thrift, connect = (both.enter_context(server.result()) for server in starting)
        yield thrift, connect


@pytest.fixture(scope="module")
def thrift(servers: tuple[Server, Server]) -> Server:
    return servers[0]


@pytest.fixture(scope="module")
def connect(servers: tuple[Server, Server]) -> Server:
    return servers[1]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Somebody on the host whom an attack would like to call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def expected(plant: Plant, spark: SparkSession, snapshot: int) -> list[Rows]:
    """What `Lake.sql` says to all queries but the first, at a snapshot."""
    lake = plant.opened(spark)
    return [[list(row) for row in lake.sql(query, snapshot).collect()] for query in ROWS[1:]]


@pytest.mark.slow
def test_clients_get_the_rows_of_one_snapshot_while_ingestion_goes_on(
    spark: SparkSession, plant: Plant, thrift: Server, connect: Server
) -> None:
    seen: list[list[Rows]] = []
    writing = threading.Thread(target=plant.ingest, args=(spark, SNAPSHOTS))
    with Pyhive(thrift) as old, Notebook(connect) as notebook:
        first = [old.rows(query) for query in ROWS]
        writing.start()
        while writing.is_alive() or {rows[0][0][0] for rows in seen[-2:]} != {SNAPSHOTS}:
            with Pyhive(thrift) as new:
                seen.append([new.rows(query) for query in ROWS])
            notebook.asked(session="new")
            seen.append([notebook.rows(query) for query in ROWS])
            writing.join(PAUSE)
        lines = by_beeline(thrift, ROWS)
        assert [old.rows(query) for query in ROWS] == first  # a session stays where it is
    answers = {rows[0][0][0]: expected(plant, spark, rows[0][0][0]) for rows in (first, *seen)}
    assert {0, SNAPSHOTS} <= set(answers)
    for [[[snapshot]], *rows] in (first, *seen):
        assert rows == answers[snapshot]
    as_text = [str(SNAPSHOTS), *(",".join(map(str, row)) for rows in answers[SNAPSHOTS] for row in rows)]
    assert [line for line in lines if not line.startswith(HEADERS)] == as_text


def tried(ask: Callable[[str], object], attacks: tuple[str, ...]) -> str:
    """All that is said to them: rows, or why there are none."""
    said = []
    for attack in attacks:
        try:
            said.append(str(ask(attack)))
        except Exception as error:
            said.append(str(error))
    return "\n".join(said)


@pytest.fixture
def host(plant: Plant, listener: socket.socket) -> Iterator[Host]:
    """Before and after, it is the same: files beside the lake and in it, a process, nobody who was called."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        before = plant.digests(), sorted(plant.folder.iterdir())
        yield Host(plant.folder, Path(orchestration.__file__).parents[1], listener.getsockname()[1], process.pid)
        assert (plant.digests(), sorted(plant.folder.iterdir())) == before
        assert process.poll() is None
        with pytest.raises(BlockingIOError):
            listener.accept()
        process.kill()


def assert_no_secret(said: str, server: Server) -> None:
    for secret in (SECRET, server.token, "root:x:", "ref: refs"):
        assert secret not in said


WHO = "select transform(1) using 'id -u' as (line string)"
"""That commands do run shows that the sandbox isolates them, and not Spark."""


@pytest.mark.parametrize("attacks", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=IN_FULL)])
def test_attacks_by_jdbc_come_to_nothing(attacks: tuple[str, ...], thrift: Server, host: Host) -> None:
    with Pyhive(thrift) as client:
        said = tried(client.rows, tuple(host.named(attack) for attack in attacks))
        assert client.rows(WHO) == [[str(USER)]]
    assert_no_secret(said, thrift)


@pytest.mark.parametrize("attacks", [pytest.param(FEW[::3], id="few"), pytest.param(FEW + MANY, id="many", marks=IN_FULL)])
def test_attacks_by_a_notebook_come_to_nothing(attacks: tuple[str, ...], connect: Server, host: Host, plant: Plant) -> None:
    with Notebook(connect) as client:
        said = tried(client.rows, tuple(host.named(attack) for attack in attacks))
        said += tried(lambda program: client.asked(program=program), tuple(host.named(program) for program in PROGRAMS))
        for format in ("delta", "parquet", "csv"):
            with pytest.raises(FailedError):
                client.asked(write=str(plant.lake / "gold" / "kitchen_aggregates"), format=format)
        assert client.rows(WHO) == [[str(USER)]]
    assert_no_secret(said, connect)
    assert f"ran as {USER}" in said


def test_after_the_attacks_a_new_session_is_answered_as_before(spark: SparkSession, plant: Plant, thrift: Server, connect: Server) -> None:
    with Pyhive(thrift) as one, Notebook(connect) as other:
        clients: tuple[Pyhive | Notebook, ...] = (one, other)
        for client in clients:
            answers = [client.rows(query) for query in ROWS]
            assert answers[1:] == expected(plant, spark, answers[0][0][0])


def test_nobody_is_let_in_with_another_word(thrift: Server, connect: Server) -> None:
    for changes in ({"password": "guessed"}, {"password": ""}, {"auth": "NOSASL"}, {"auth": "NONE"}):
        with pytest.raises((TTransportException, EOFError)):
            hive.connect(**{"host": "localhost", "port": thrift.port, "username": "anybody", "auth": "LDAP"} | changes)
    with Notebook(connect, token="guessed") as client, pytest.raises(FailedError, match="UNAUTHENTICATED"):
        client.rows("select 1")


def test_their_words_are_on_no_command_line(thrift: Server, connect: Server) -> None:
    lines = [Path(f"/proc/{process}/cmdline").read_bytes() for server in (thrift, connect) for process in server.family()]
    assert len(lines) > 6
    assert not any(thrift.token.encode() in line for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_they_end_whole(number: int, thrift: Server, connect: Server) -> None:
    server = thrift if number == signal.SIGTERM else connect
    family = server.family()
    assert len(family) >= 3
    assert server.end(number) == (0 if number == signal.SIGTERM else -number)
    assert are_gone(family)
