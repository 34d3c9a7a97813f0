"""`tidemark quality`: are the tables as they should be?"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from orchestration.cli.rows import format_option, show


@click.command()
@click.option("--layer", type=click.Choice(["bronze", "silver", "gold"]), help="Only tables of this layer.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("artifacts/quality.html"),
    show_default=True,
    help="The page to write.",
)
@format_option
@click.pass_obj
def command(obj: dict[str, Any], layer: str | None, report: Path, format: str) -> int:
    """Check the latest version of every table against its expectations; safe beside a running pipeline.

    \b
    Prints a line a table: how many expectations passed, failed (by severity), or were not checked for want of rows.
    The details are in the report, one page with everything inside it, and for ever in the table quality.results.
    Exit code 1: a critical expectation failed.

    \b
    Example:
      tidemark quality --layer silver --report silver.html
    """
    from rich.console import Console

    from orchestration.lake import Lake
    from orchestration.lock import sole_writer
    from orchestration.quality.check import check
    from orchestration.quality.history import append_results
    from orchestration.quality.outcome import COLUMNS, summary
    from orchestration.quality.report import failures, write_report
    from orchestration.quality.suites import packaged

    lake = Lake.open(obj["conf"])
    with sole_writer(lake.conf.lake / "quality"), Console(stderr=True).status("starting") as progress:
        run = check(lake, packaged(), datetime.now(UTC), lambda table: progress.update(f"checking {table}"), layer)
        append_results(lake, run)
    write_report(run, report)
    show(summary(run), format, COLUMNS)
    for line in (*failures(run), f"report: {report}"):
        click.echo(line, err=True)
    return 0 if run.is_passed else 1
