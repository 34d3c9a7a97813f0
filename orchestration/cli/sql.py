"""`tidemark sql`: ask the lake."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.errors import ConfError, TidemarkError

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.serving.sql.answer import Engine, Limits
    from orchestration.serving.sql.session import Session

EXAMPLE = """Example: tidemark sql "select metric, count(*) as n from silver.readings group by metric" """


@click.command(epilog=EXAMPLE)
@click.argument("query", required=False)
@click.option("-f", "--file", type=click.Path(path_type=Path), help="Answer the statements of a file.")
@click.option("--snapshot", type=int, help="Ask this snapshot; they are in ops.snapshots. Default: the newest.")
@click.option("--at", type=click.DateTime(["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]), help="Ask the newest one at this instant, UTC.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "server", "spark", "fast"]),
    default="auto",
    show_default=True,
    help="auto: the sql-server where it runs, else Spark. fast: DataFusion, without a JVM; it refuses what it would answer otherwise.",
)
@click.option(
    "--format", type=click.Choice(["table", "csv", "json", "parquet"]), default="table", show_default=True, help="How to print the rows."
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, which is there as a whole or not at all."
)
@click.pass_obj
def command(
    obj: dict[str, Any],
    *,
    query: str | None,
    file: Path | None,
    snapshot: int | None,
    at: datetime | None,
    engine: str,
    format: str,
    output: Path | None,
) -> int:
    """Answer a query over one snapshot of the lake; without a query: a shell, or the statements that come on stdin.

    Tables are bronze.events, silver.*, gold.<group>_aggregates and gold.<group>_vectors, marts.*, ops.* and quality.*. Those of gold show
    the newest revision of each row, gold.<group>_aggregates_history and ..._vectors_history all of them. A query that names marts is over
    the snapshot that they were built of. Queries only read: they cannot name files, write, or call anything but functions of SQL.
    """
    if snapshot is not None and at is not None:
        raise click.UsageError("give --snapshot or --at, not both")
    if query is not None and file is not None:
        raise click.UsageError("give a query or --file, not both")
    text = "" if file is None else read(file)
    about = {"snapshot_id": snapshot, "at": at and at.replace(tzinfo=UTC), "format": format, "output": output}
    is_shell = query is None and file is None
    with _session(obj["conf"], engine, is_shell, about) as session:
        if query is not None:
            session.answer(query)
            return 0
        from orchestration.serving.sql.shell import script, shell

        if file is not None:
            return script(session, text.splitlines(keepends=True))
        return shell(session)


def read(file: Path) -> str:
    """A file that was named on the command line; ConfError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfError(f"{file} cannot be read: {error}") from error


@contextmanager
def _session(folder: Path, engine: str, is_shell: bool, about: dict[str, Any]) -> "Iterator[Session]":
    from orchestration.query.fast.start import without_unneeded
    from orchestration.serving.sql.session import Session

    def conf() -> "Conf":
        from orchestration.conf.load import load

        return load(folder)

    server = _server(folder, engine) if engine in ("auto", "server") else None
    if server is not None or engine == "fast":
        without_unneeded()
    with nullcontext(server) if server is not None else _local(conf(), engine, is_shell) as asked:
        yield Session(asked, conf, **about)


def _server(folder: Path, engine: str) -> "Engine | None":
    """None where none runs and Spark may be asked instead."""
    from orchestration.conf.place import lake_of
    from orchestration.serving.sql.address import address_of
    from orchestration.serving.sql.client import ServerEngine

    lake = lake_of(folder)
    address = None if lake is None else address_of(lake)
    if address is None and engine == "server":
        raise TidemarkError("no sql-server of yours runs on this lake: start it with `tidemark sql-server`.")
    return None if address is None else ServerEngine(address)


def _local(conf: "Conf", engine: str, is_shell: bool) -> "AbstractContextManager[Engine]":
    from orchestration.serving.sql.answer import Limits

    if engine == "fast":
        return _fast(conf, Limits(), is_shell)
    from orchestration.serving.sql.spark_engine import SparkEngine

    return SparkEngine(conf, Limits(), conf.engine.cores)


def _fast(conf: "Conf", limits: "Limits", is_shell: bool) -> "AbstractContextManager[Engine]":
    """A shell's is in a process of its own, which can be stopped."""
    if is_shell:
        from orchestration.query.fast.process import FastProcess

        return FastProcess(conf, limits)
    from orchestration.query.fast.engine import FastEngine

    return nullcontext(FastEngine(conf, limits))
