"""`tidemark quality`: are the tables as they should be?"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from orchestration.cli.rows import format_option, show


@click.command()
@click.option("--layer", type=click.Choice(["bronze", "silver", "gold"]), help="Only tables of this layer.")
@click.option("--full", is_flag=True, help="Judge all rows, and not only what came since the last look.")
@click.option("--snapshot", type=int, help="Judge all rows as this snapshot pins them.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("artifacts/quality.html"),
    show_default=True,
    help="The page to write.",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="JUnit XML to write too: a testcase for each expectation.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], /, report: Path, junit: Path | None, format: str, **asked: Any) -> int:
    """Check every table against its expectations, without Spark; safe beside a running pipeline.

    \b
    Each suite judges what came to a table since it last looked, corrections of gold included; where nothing came, what it found
    then still holds. Prints a line a table: how many expectations passed, failed (by severity), or were not checked for want of
    rows. The details are in the report, one page with everything inside it, and for ever in the tables quality.results and
    quality.failed_rows, where each row that fails stands beside the message it came from.
    Exit code 1: a critical expectation failed.

    \b
    Example:
      tidemark quality --layer silver --report silver.html
    """
    from rich.console import Console

    from orchestration.lake import Lake
    from orchestration.lock import sole_writer
    from orchestration.quality.check import Scope, check
    from orchestration.quality.history import looks
    from orchestration.quality.outcome import COLUMNS, Cause, summary
    from orchestration.quality.publish import Places, keep, publish
    from orchestration.quality.report import failures
    from orchestration.quality.suites import packaged
    from orchestration.snapshots import chosen

    lake = Lake.open(obj["conf"])
    pins = None if asked["snapshot"] is None else chosen(lake.conf.lake, asked["snapshot"])
    with sole_writer(lake.conf.lake / "quality"), Console(stderr=True).status("starting") as progress:
        cause = Cause.SNAPSHOT if pins else Cause.ASKED
        scope = Scope(cause, asked["layer"], pins, None if asked["full"] or pins else looks(lake.conf.lake))
        run = check(lake, packaged(), datetime.now(UTC), lambda table: progress.update(f"checking {table}"), scope)
        rows = keep(lake, run)
    publish(lake, run, rows, Places(report, junit))
    show(summary(run), format, COLUMNS)
    for line in (*failures(run), f"report: {report}"):
        click.echo(line, err=True)
    return 0 if run.is_passed else 1
