"""`tidemark quality` checks every table against its expectations; `tidemark quality release` releases versions that a gate holds back."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import FILE
from orchestration.rendering import format_option, show, visible

if TYPE_CHECKING:
    from orchestration.engine.lake import Lake
    from orchestration.quality.outcome import Run


@click.group(invoke_without_command=True)
@click.option("--layer", type=click.Choice(["bronze", "silver", "gold"]), help="Only tables of this layer.")
@click.option("--full", is_flag=True, help="Check all rows, not only those that are new since the last run.")
@click.option("--snapshot", type=int, help="Check all rows at the versions of this snapshot.")
@click.option("--report", type=FILE, default=Path("artifacts/quality.html"), show_default=True, help="The page to write.")
@format_option
@click.pass_context
def command(context: click.Context, /, report: Path, format: str, **options: Any) -> int:
    """Check every table against its expectations, without Spark; safe beside a running pipeline.

    \b
    Each suite checks the rows that are new since its last run, corrections of gold included; a table without new rows keeps its
    last results. Prints a line a table: how many expectations passed, failed (by severity), or were not checked because there are
    no rows. Details are in the report, a single HTML file. The tables quality.results and quality.failed_rows keep all results,
    with each failing row beside the message it came from.
    Exit code 1: a critical expectation failed, a suite or a table cannot be evaluated, or a gate is closed.

    \b
    Example:
      tidemark quality --layer silver --report silver.html
    """
    if context.invoked_subcommand is not None:
        return 0
    return _report(context.obj["conf"], options | {"report": report}, format)


@command.command()
@click.option("--version", type=int, required=True, help="Release versions up to this one.")
@click.option("--reason", required=True, help="Why; it is kept for ever.")
@click.option(
    "--table",
    type=click.Choice(["silver.readings", "silver.late"]),
    default="silver.readings",
    show_default=True,
    help="The table that is held back.",
)
@click.pass_obj
def release(obj: dict[str, Any], table: str, version: int, reason: str) -> None:
    """Release versions of a table that its gate holds back. A running pipeline reads them in its next gold cycle.

    Releasing version 12 lets every version up to 12 pass; later versions are checked again. Who released what, and why, is kept in
    quality.releases.

    \b
    Example:
      tidemark quality release --version 12 --reason "the oven was being calibrated"
    """
    from orchestration.engine.lake import Lake
    from orchestration.quality.quality_tables import release_version

    lake = Lake.open(obj["conf"])
    released = release_version(lake, table, version, reason, datetime.now(UTC))
    click.echo(visible(f"released: {released}"), err=True)


def _report(conf: Path, options: dict[str, Any], format: str) -> int:
    from rich.console import Console

    from orchestration.engine.lake import Lake
    from orchestration.quality.outcome import SUMMARY_COLUMNS, summary
    from orchestration.quality.report import failures
    from orchestration.storage.gate_state import closed_gates, describe_gates

    lake = Lake.open(conf)
    with Console(stderr=True).status("starting") as progress:
        run = _run(lake, options, lambda table: progress.update(f"checking {table}"))
    show(summary(run), format, SUMMARY_COLUMNS)
    for line in (*run.broken, *failures(run), *describe_gates(lake.conf, lake.table_path)):
        click.echo(visible(line), err=True)
    click.echo(f"report: {options['report']}", err=True)
    return 0 if run.is_passed and not any(closed_gates(lake.conf, lake.table_path)) else 1


def _run(lake: "Lake", options: dict[str, Any], notify: Callable[[str], None]) -> "Run":
    from orchestration.quality import quality_tables
    from orchestration.quality.check import Scope, check, store_run
    from orchestration.quality.history import last_runs, trends
    from orchestration.quality.outcome import Cause
    from orchestration.quality.report import write_report
    from orchestration.quality.suites import suites
    from orchestration.storage.snapshots import find_snapshot

    pins, now = None if options["snapshot"] is None else find_snapshot(lake.conf.lake, options["snapshot"]), datetime.now(UTC)
    with quality_tables.lock(lake.conf.lake):
        scope = Scope(
            Cause.SNAPSHOT if pins else Cause.ASKED, options["layer"], pins, None if options["full"] or pins else last_runs(lake.conf.lake)
        )
        run = check(lake, suites(lake.conf), now, notify, scope)
        rows = store_run(lake, run)
    write_report(run, options["report"], rows, trends(lake.conf.lake))  # without the lock: it may be slow
    return run
