"""How soon the sql-server answers, beside a real PostgreSQL with the same rows: `make demo && make bench NAME=sql_server`.

Connect, the first answer of a connection, an aggregate, rows by COPY and by a cursor, and 20 connections at once, all by psycopg.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import psycopg
from rich.console import Console

from tests.bench.factory import TIDEMARK
from tests.bench.script import REPOSITORY, narrow_table, parser_for, progress, script, write_report
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

COLUMNS = "device_id, metric, event_time, value"
AGGREGATE = (
    "select device_id, count(*), avg(value), max(max) from gold.aggregates where metric = 'temperature' group by device_id order by 1"
)
MANY = f"select {COLUMNS} from silver.readings cross join generate_series(1, {{times}}) as copies limit {{rows}}"
AT_ONCE, ASKED_BY_EACH = 20, 10
USER, PASSWORD = "bench", "0123456789abcdef"
MEBIBYTE = 1 << 20
Connect = Callable[[], "psycopg.Connection[Any]"]


class SqlServer(ServerProcess):
    """`tidemark sql-server` over the lake of a conf."""

    def __init__(self, conf: Path, folder: Path) -> None:
        """`folder`: of its output and its users."""
        self.conf, self.folder, (self.port,) = conf, folder, free_ports(1)

    def start(self) -> None:
        """Returns once it listens."""
        users = self.folder / "users.txt"
        users.write_text(f"{USER}:{PASSWORD}\n")
        users.chmod(0o600)
        self.launch(
            [*TIDEMARK, "--conf", str(self.conf), "sql-server", "--port", str(self.port), "--users", str(users)], self.folder / "log"
        )
        until(lambda: self.listens(self.port), (self.folder / "log").read_text)

    def connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname="lake", autocommit=True)


def main() -> int:
    options = _options()
    with TemporaryDirectory() as folder, SqlServer(options.conf, Path(folder)).running() as server, _postgres(server.connect) as other:
        report = {"tidemark": _measured(server.connect, options), "PostgreSQL": _measured(other, options)}
    table = narrow_table("", *report)
    for name in report["tidemark"]:
        table.add_row(name, *(f"{numbers[name]:,}" for numbers in report.values()))
    Console().print(table)
    write_report(options, report)
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-sql-server", rounds=40, rows=10_000_000)
    parser.add_argument("--conf", type=Path, default=REPOSITORY / "conf", help="of a lake that holds something")
    return parser.parse_args()


@contextmanager
def _postgres(connect: Connect) -> Iterator[Connect]:
    """A new PostgreSQL with the rows that are asked for, in tables of the same names."""
    with PostgresServer().running() as server:
        target = psycopg.connect(server.dsn, autocommit=True)
        target.execute(
            "create schema silver; create table silver.readings(device_id text, metric text, event_time timestamptz, value float8)"
        )
        target.execute("create schema gold; create table gold.aggregates(device_id text, metric text, value float8, max float8)")
        with connect() as source:
            for table, columns in (("silver.readings", COLUMNS), ("gold.aggregates", "device_id, metric, value, max")):
                with (
                    source.cursor().copy(f"copy (select {columns} from {table}) to stdout") as rows,
                    target.cursor().copy(f"copy {table} from stdin") as written,
                ):
                    for block in rows:
                        written.write(block)
        target.execute("vacuum analyze")
        target.close()
        yield lambda: psycopg.connect(server.dsn, autocommit=True)


def _measured(connect: Connect, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds, rows a second and MiB by what was measured."""
    progress.log("connections and answers")
    report = dict[str, float]()
    report |= _spread("connect, ms", [_seconds(lambda: connect().close()) for _ in range(options.rounds)])
    report |= _spread("first answer, ms", [_seconds(lambda: _asked_once(connect)) for _ in range(options.rounds)])
    with connect() as connection:
        report |= _spread("aggregate, ms", [_seconds(lambda: connection.execute(AGGREGATE).fetchall()) for _ in range(options.rounds)])
        [(count,)] = connection.execute("select count(*) from silver.readings").fetchall()
        many = MANY.format(times=options.rows // count + 1, rows=options.rows)
        for form in ("text", "binary"):
            progress.log(f"COPY in {form}")
            seconds = _seconds(partial(_copied, connection, f"copy ({many}) to stdout (format {form})"))
            report[f"COPY in {form}, rows/s"] = round(options.rows / seconds)
        progress.log("a cursor")
        seconds, memory = _by_cursor(connection, many, options.rows)
        report |= {"cursor, rows/s": round(options.rows / seconds), "cursor, MiB of its process": memory}
    progress.log(f"{AT_ONCE} connections at once")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        asked = threads.map(lambda _: _asked_often(connect), range(AT_ONCE))
        report |= _spread(f"aggregate, {AT_ONCE} at once, ms", [second for seconds in asked for second in seconds])
    return report


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    return {f"{name}: p50": round(1000 * parts[9], 1), f"{name}: p95": round(1000 * parts[18], 1)}


def _asked_once(connect: Connect) -> None:
    with connect() as connection:
        connection.execute(AGGREGATE).fetchall()


def _asked_often(connect: Connect) -> list[float]:
    with connect() as connection:
        return [_seconds(lambda: connection.execute(AGGREGATE).fetchall()) for _ in range(ASKED_BY_EACH)]


def _copied(connection: "psycopg.Connection[Any]", statement: str) -> int:
    with connection.cursor().copy(statement) as blocks:
        return sum(map(len, blocks))


def _by_cursor(connection: "psycopg.Connection[Any]", query: str, rows: int) -> tuple[float, float]:
    """Fetch all rows, 10,000 at a time, in binary. Seconds, and the most memory of the server's process, without what it shares."""
    process, most, count = psutil.Process(connection.info.backend_pid), 0, 0
    begin = time.perf_counter()
    with connection.transaction(), connection.cursor("many", binary=True) as cursor:
        cursor.execute(query)
        while fetched := cursor.fetchmany(10_000):
            count += len(fetched)
            most = max(most, process.memory_full_info().uss) if count % 100_000 == 0 else most
    assert count == rows
    return time.perf_counter() - begin, round(most / MEBIBYTE, 1)


if __name__ == "__main__":
    script(main)
