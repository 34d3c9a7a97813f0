"""Each connection of the sql-server has a process: what ends one ends no other, and none outlives the server."""

import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from orchestration.serving.postgres.activity import MAX_ACTIVE, Activity, Connection
from tests.orchestration.serving.postgres.served import Served, serving
from tests.waiting import until

ENDLESS = "select count(*) from range(1000000000000)"
BLIND = "select levenshtein(repeat('a', 100000), repeat('b', 100000))"
"""Does not look whether it should end."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A server that the test may kill."""
    with serving(tmp_path) as running:
        yield running


class Running:
    """A query in a thread, which has begun where `is_awaited`."""

    def __init__(self, connection: "psycopg.Connection[Any]", query: str, is_awaited: bool = True) -> None:
        self._connection, self._query, self._state = connection, query, ""
        process = psutil.Process(connection.info.backend_pid)
        before = process.cpu_times().user
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until(lambda: not is_awaited or process.cpu_times().user > before + 0.3)

    def _run(self) -> None:
        try:
            self._connection.execute(self._query)
        except psycopg.Error as error:
            self._state = error.sqlstate or "no connection"

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def state(self) -> str:
        """The SQLSTATE that it ended with."""
        self._thread.join()
        return self._state


def answers(connection: "psycopg.Connection[Any]") -> bool:
    return connection.execute("select 1").fetchone() == (1,)


def test_a_query_is_cancelled_and_its_connection_goes_on(server: Served) -> None:
    with server.connect() as connection:
        query = Running(connection, ENDLESS)
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall(struct.pack("!iii4s", 16, 80877102, connection.info.backend_pid, b"keys"))
            assert stranger.recv(1) == b""
        assert not query.has_ended
        connection.cancel_safe()
        assert query.state() == "57014"
        assert answers(connection)


@pytest.mark.parametrize("query", [BLIND, "select length(lpad('x', 2000000000, 'y'))"])
def test_a_query_that_never_looks_at_its_clock_ends_with_its_connection_and_no_other(server: Served, query: str) -> None:
    with server.connect() as other, server.connect() as connection:
        running = Running(connection, query)
        connection.cancel_safe()
        assert (running.state(), connection.closed, answers(other)) == ("57014", True, True)


def test_statements_beyond_those_at_once_wait_and_can_be_cancelled_while_they_do(server: Served) -> None:
    with ExitStack() as opened:
        for _ in range(MAX_ACTIVE):
            busy = server.connect()
            opened.callback(busy.close)
            busy.pgconn.send_query(b"select repeat('x', 1000) from range(1000000000)")
            select.select([busy.fileno()], [], [])  # rows come, and nobody reads them
        last = opened.enter_context(server.connect())
        waiting = Running(last, "select 1", is_awaited=False)
        while not waiting.has_ended:
            last.cancel_safe()
        assert waiting.state() == "57014"
        busy.close()
        assert answers(last)


def test_connections_beyond_the_most_are_refused_and_one_that_ends_makes_room(server: Served) -> None:
    with ExitStack() as opened:
        connections = [opened.enter_context(server.connect()) for _ in range(20)]
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            server.connect()
        connections[0].close()
        until(lambda: len(server.workers()) < 20)
        assert answers(opened.enter_context(server.connect()))


def test_a_process_that_is_killed_ends_its_connection_only(server: Served) -> None:
    with server.connect() as other, server.connect() as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        assert answers(other)
    with server.connect() as new:
        assert answers(new)


def test_no_process_outlives_a_server_that_is_killed(own: Served) -> None:
    with own.connect() as idle, own.connect() as connection:
        query, left = Running(connection, ENDLESS), own.workers()
        assert {process.pid for process in left} >= {idle.info.backend_pid, connection.info.backend_pid}
        own.kill()
        assert query.state() == "no connection"
        until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left))


def test_a_server_that_is_ended_says_so_to_its_clients(own: Served) -> None:
    with own.connect() as idle, own.connect() as connection:
        query = Running(connection, ENDLESS)
        assert own.process is not None
        own.process.terminate()
        assert own.process.wait() == 0
        assert query.state() == "57P01"
        with pytest.raises(psycopg.errors.AdminShutdown):
            idle.execute("select 1")


def test_the_process_of_a_connection_does_not_listen_and_ends_first_where_memory_is_short(server: Served) -> None:
    with server.connect() as connection:
        process = psutil.Process(connection.info.backend_pid)
        assert [kept.status for kept in process.net_connections()] == [psutil.CONN_ESTABLISHED]
        assert Path(f"/proc/{process.pid}/oom_score_adj").read_text().strip() == "1000"


def test_a_connection_sees_what_its_own_user_does_and_of_others_that_they_are_there() -> None:
    activity = Activity(2)
    if (ann := os.fork()) == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # tests before this one may have left another
        signal.alarm(60)  # however the test ends
        activity.enter(Connection(user="ann", database="plant"))
        activity.runs("select 'é'" + "x" * 2000, "chart")
        signal.pause()
    until(lambda: [row.pid for row in activity.rows()] == [ann])
    own = Connection(user="bob", database="plant")
    assert activity.enter(own)
    hidden, _ = activity.rows()
    assert (hidden.user, hidden.state, hidden.query, hidden.key) == ("ann", None, "<insufficient privilege>", b"")
    with pytest.raises(PermissionError):
        activity.send(ann, signal.SIGTERM)
    own.user = "ann"
    shown, _ = activity.rows()
    assert (shown.state, len(shown.query.encode()), shown.application_name) == ("active", 1000, "chart")
    assert (activity.send(1, signal.SIGTERM), activity.send(ann, signal.SIGTERM)) == (False, True)
    assert os.waitpid(ann, 0)[0] == ann
    activity.leave(ann)
    assert [row.pid for row in activity.rows()] == [os.getpid()]
