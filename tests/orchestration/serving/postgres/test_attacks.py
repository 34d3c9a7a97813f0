"""Attacks on the sql-server by each way that a text of SQL can take: nothing is told that is no row of the lake, and nothing changes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from tests.orchestration.serving.postgres.served import USERS, Served, serving
from tests.orchestration.serving.sql.attacks import ATTACKS, SECRET, aimed, files, listed, tells

DEEP = 10_000
GIANT = (
    "select " + "(" * DEEP + "1" + ")" * DEEP + " from pg_class",
    "select " + "array[" * DEEP + "1" + "]" * DEEP,
    "select " + "- " * DEEP + "1 from pg_class",
    "select 1" + "::regclass" * DEEP,
    "select 1" + " operator(pg_catalog.+) 1" * 2_000 + " from pg_class",
    "select '" + "x" * 900_000 + "' from pg_class",
    "select '{" + "{" * DEEP + "}'::text[] from pg_class",
    "copy " + "(" * DEEP + "select 1" + ")" * DEEP + " to stdout",
    "explain " * DEEP + "select 1",
    "explain (analyze) " * 3_000 + "select * from pg_class",
    "/*" * DEEP + " pg_class " + "*/" * DEEP + " select 1",
    "declare x cursor with hold for " * 1_000 + "select 1",
    "select 1;" * 10_000,
)
UNTOLD = (SECRET, *USERS.values(), ".py", "Traceback")
OWN = (*listed(Path(__file__).parent / "attacks.sql"), *GIANT)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a secret in its environment; afterwards no file of it may have changed."""
    with serving(tmp_path_factory.mktemp("attacked")) as server:
        before = _untouched(server)
        yield server
        assert _untouched(server) == before


def _untouched(server: Served) -> dict[str, str]:
    return {name: digest for name, digest in files(server.folder).items() if name != str(server.log)}


def answer_of(connection: PGconn) -> str:
    """All that is still to come for a client: rows, rows of COPY, errors, notices."""
    said = list[str]()
    while result := connection.get_result():
        said.append(result.error_message.decode("utf-8", "replace"))
        cells = (result.get_value(row, column) or b"" for row in range(result.ntuples) for column in range(result.nfields))
        said += [cell.decode("utf-8", "replace") for cell in cells]
        if result.status == ExecStatus.COPY_OUT:
            while (copied := connection.get_copy_data(0))[0] > 0:
                said.append(bytes(copied[1]).decode("utf-8", "replace"))
        elif result.status == ExecStatus.COPY_IN:
            connection.put_copy_end(b"no")
    return "\n".join(said)


def simple(frame: str) -> Callable[[PGconn, bytes], None]:
    return lambda connection, query: connection.send_query(frame.encode().replace(b"%", query.rstrip(b" ;")))


def extended(connection: PGconn, query: bytes) -> None:
    connection.send_query_params(query, None)


def parameter(connection: PGconn, query: bytes) -> None:
    asked = b"select $1::text, device_id from silver.readings where device_id = $2 or list_contains($3::text[], device_id)"
    connection.send_query_params(asked, [query, query, b"{" + query + b"}"])


WAYS = {
    "simple": simple("%"),
    "extended": extended,
    "copy": simple("copy (%) to stdout"),
    "cursor": simple("begin; declare x cursor for %; fetch all from x; rollback"),
    "explain": simple("explain (analyze) %"),
    "catalog": simple("with pg_x as (%) select pg_x.* from pg_x, pg_class"),
    "prepared": simple("prepare x as %; execute x"),
    "parameter": parameter,
}


OTHERS = [way for way in WAYS if way != "simple"]


@pytest.mark.parametrize(
    ("way", "share"),
    [
        ("simple", slice(None)),
        *(pytest.param(way, slice(start, None, len(OTHERS)), marks=pytest.mark.processes) for start, way in enumerate(OTHERS)),
        *(pytest.param(way, slice(None), marks=[pytest.mark.processes, pytest.mark.slow]) for way in OTHERS),
    ],
    ids=lambda part: part if isinstance(part, str) else "share" if part.step else "all",
)
def test_no_attack_tells_what_is_no_row_of_the_lake(attacked: Served, way: str, share: slice) -> None:
    """Each attack is tried as a query and by one other way; `make slow` tries each by every way."""
    through = list[tuple[str, str]]()
    with ExitStack() as opened:
        connection = opened.enter_context(attacked.connect()).pgconn
        for attack in (*ATTACKS, *OWN)[share]:
            query = aimed(attack, attacked.folder)
            if connection.status:  # the attack before has ended its connection
                connection = opened.enter_context(attacked.connect()).pgconn
            with suppress(UnicodeEncodeError, psycopg.OperationalError):
                connection.exec_(b"rollback; discard all; set statement_timeout = '3s'")
                WAYS[way](connection, query.encode())
                answer = answer_of(connection)
                if tells(answer, query, attacked.folder) or any(word in answer for word in UNTOLD):
                    through.append((attack[:200], answer[-500:]))
    assert through == []
    assert not any(word in attacked.log.read_text() for word in UNTOLD)
