"""`tidemark sql`: query the lake."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import FILE, PATH, text_of

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.serving.sql.answer import Engine
    from orchestration.serving.sql.session import Session
    from orchestration.storage.views import Plant

EXAMPLE = """Example: tidemark sql "select metric, count(*) as n from silver.readings group by metric" """


@click.command(epilog=EXAMPLE)
@click.argument("query", required=False)
@click.option("-f", "--file", type=PATH, help="Run the statements of a file.")
@click.option("--snapshot", type=int, help="Query this snapshot; ops.snapshots lists the ids. Default: the newest.")
@click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]),
    help="Query the snapshot that was the newest at this instant, UTC.",
)
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="The SQL engine. duckdb: answers at once. spark: Spark's SQL, starts a JVM first.",
)
@click.option(
    "--server", is_flag=True, help="Ask your running sql-server, whose SQL is DuckDB's with PostgreSQL's rules of division and order."
)
@click.option(
    "--format", type=click.Choice(["table", "csv", "json", "parquet"]), default="table", show_default=True, help="How to print the rows."
)
@click.option("--output", type=FILE, help="Write to this file; it appears as a whole or not at all.")
@click.pass_obj
def command(
    obj: dict[str, Any],
    *,
    query: str | None,
    file: Path | None,
    snapshot: int | None,
    at: datetime | None,
    engine: str,
    server: bool,
    format: str,
    output: Path | None,
) -> int:
    """Run a query over one snapshot of the lake. Without a query: a shell, or the statements on stdin.

    Tables are bronze.events, silver.*, gold.<group>_aggregates and gold.<group>_vectors, marts.*, ops.* and quality.*; gold.aggregates and
    gold.vectors have all groups. A table of gold shows the newest revision of each row; with the suffix _history it shows all revisions.
    gold.<group>_live has the windows that are still open. A query over marts reads the snapshot that they were built of.
    Queries only read: they cannot name files, write, or call anything but SQL functions. With --engine spark a query has your rights;
    only commands are refused.
    """
    if snapshot is not None and at is not None:
        raise click.UsageError("give --snapshot or --at, not both")
    if query is not None and file is not None:
        raise click.UsageError("give a query or --file, not both")
    if server and engine == "spark":
        raise click.UsageError("give --server or --engine spark, not both")
    text = "" if file is None else text_of(file)
    options = {"snapshot_id": snapshot, "at": at and at.replace(tzinfo=UTC), "format": format, "output": output}
    with _session(obj["conf"], "server" if server else engine, options) as session:
        if query is not None:
            session.answer(query)
            return 0
        if file is None and sys.stdin.isatty():
            from orchestration.serving.sql.shell_prompt import shell

            return shell(session)
        from orchestration.serving.sql.shell import script

        return script(session, sys.stdin if file is None else text.splitlines(keepends=True))


@contextmanager
def _session(folder: Path, engine: str, options: dict[str, Any]) -> "Iterator[Session]":
    from orchestration.conf.place import place_of
    from orchestration.serving.sql.session import Session

    plant = place_of(folder, lambda: loaded(folder).group_windows) or loaded(folder)
    with _engine(folder, plant, engine) as chosen:
        yield Session(chosen, plant, **options)


def loaded(folder: Path) -> "Conf":
    """The whole conf; ConfError if there is a mistake."""
    from orchestration.conf.load import load

    return load(folder)


def _engine(folder: Path, plant: "Plant", engine: str) -> "AbstractContextManager[Engine]":
    from orchestration.serving.sql.answer import Limits

    if engine == "spark":
        from orchestration.serving.sql.spark_engine import SparkEngine

        return SparkEngine(loaded(folder), Limits())
    if engine == "duckdb":
        from orchestration.serving.sql.duckdb_engine import DuckDbEngine

        return nullcontext(DuckDbEngine(plant, Limits()))
    from orchestration.serving.postgres.client import ServerEngine

    return nullcontext(ServerEngine(loaded(folder), Limits()))
