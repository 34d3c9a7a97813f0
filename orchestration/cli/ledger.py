"""`tidemark ledger`: is every event accounted for?"""

from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.rows import format_option, show

if TYPE_CHECKING:
    from orchestration.account import Rows


@click.command()
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Only what was ingested on this day (UTC) and later.")
@click.option(
    "--plot", "picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Also draw it, by bronze batch."
)
@format_option
@click.pass_obj
def command(obj: dict[str, Any], since: datetime | None, picture: Path | None, format: str) -> int:
    """Account for every event, by its identity and from the tables themselves; safe beside a running pipeline.

    \b
    events       messages of a source that bronze ingested on a day
    readings, quarantined, late, duplicates
                 what became of the measurements that they hold
    unaccounted  measurements (or events without any) that are in none of the four tables
    doubled      measurements that are in more than one of them, or twice in one
    strays       rows of silver whose event is not in bronze, or comes from another source there
    altered      bronze batches that hold other counts than ops.ledger says they had
    waiting      events that the ledger has not come to yet

    \b
    Exit code 1: something is unaccounted, doubled, stray or altered, and the first ten identities are told after the table; or files of
    the tables are gone, cut or other than they were written, and then these.

    \b
    Example:
      tidemark ledger --since 2026-01-05 --plot artifacts/ledger.png
    """
    from orchestration.account import COLUMNS, by_day

    batches, wrong = taken(obj["conf"], since.date() if since else None)
    show(by_day(batches), format, COLUMNS)
    told(wrong, format)
    if picture is not None and (batches or not wrong):
        from orchestration.account_plot import plot

        click.echo(plot(batches, picture), err=True)
    return 1 if wrong else 0


def taken(conf: Path, since: date | None) -> "tuple[Rows, Rows]":
    """The account by batch, and what is wrong."""
    from rich.console import Console

    from orchestration.account import account, opened
    from orchestration.damage import damaged_files, damaged_log
    from orchestration.former_sources import shapes
    from orchestration.lake import Lake
    from orchestration.offences import damaged, offences, unlike_their_seal

    lake = Lake.open(conf)
    with Console(stderr=True).status("accounting"):
        if files := unlike_their_seal(lake, damaged_log):
            return [], files
        books = opened(lake)
        if files := damaged(books) or unlike_their_seal(lake, partial(damaged_files, since=since)):
            return [], files
        found = account(books, since)
        return found.batches, offences(books, found, shapes(lake.conf))


def told(wrong: "Rows", format: str) -> None:
    """Beside the table for people, and to stderr where stdout is for programs."""
    from orchestration.cli.rows import plain, visible
    from orchestration.offences import COLUMNS

    if wrong and format == "table":
        show(wrong, format, COLUMNS)
    elif wrong:
        for row in wrong:
            identity = " ".join(f"{name} {row[name]}" for name in COLUMNS[:3] if row[name] is not None)
            click.echo(visible(f"{identity}: {row['wrong']}  {plain(row['payload']) or ''}".rstrip()), err=True)
