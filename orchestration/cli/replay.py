"""`tidemark replay`: build the next generation of silver and gold from bronze."""

import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import DAY
from orchestration.conf.load import read_conf

if TYPE_CHECKING:
    from orchestration.supervisor.replay_preview import ReplayPreview

NICE = 10
"""A running pipeline goes first."""


@click.command()
@click.option("--since", type=DAY, metavar="DAY", help="Apply the rules again to what was ingested from this day (UTC) on; copy the rest.")
@click.option("--group", metavar="NAME", help="Only the gold of this device group, and of those that share its stream.")
@click.option("--yes", is_flag=True, help="Build it without asking; for programs.")
@click.pass_obj
def command(obj: dict[str, Any], since: datetime | None, group: str | None, yes: bool) -> None:
    """Build the next generation of silver and gold from bronze, under today's conf, and switch to it.

    First it says what would change: for each table and group the rows before and after, and the windows that would vanish. Then it asks.
    Where it cannot ask, as there is no terminal, it changes nothing without --yes.

    It is built beside the active generation, by batch jobs, while `tidemark run` may go on; its streams then catch up, and readers
    see all of it at once. Killed at any moment, it leaves the old generation active; begin it again then. The old one is kept:
    `tidemark rollback`. Rows that came late stay late: that is recorded, and not decided anew.

    \b
    Example:
      tidemark replay --since 2026-01-05
    """
    from orchestration.engine.lake import Lake, heap_is_named
    from orchestration.engine.progress import Progress
    from orchestration.storage import generations
    from orchestration.storage.lease import sole_writer
    from orchestration.storage.sealing import refuse_damaged_records
    from orchestration.supervisor.replay import STEPS, build, finish, flows_of, foresee, plan

    os.nice(NICE)  # before the JVM is there, which inherits it
    if group is not None and since is not None:
        raise click.UsageError("give --since or --group, not both: the gold of a group is always built from all of silver")
    lake = Lake(read_conf(obj["conf"]))
    if group not in {None, *lake.conf.groups}:
        raise click.BadParameter(f"'{group}' is not a group; the groups are {', '.join(lake.conf.groups)}", param_hint="--group")
    wanted = plan(lake, group, since.date() if since else None)
    refuse_damaged_records(lake, is_everything=wanted == plan(lake, None, None))
    if not _is_agreed(foresee(lake, wanted), yes=yes):
        click.get_current_context().exit(1)
    with (
        sole_writer(lake.conf.lake / generations.FOLDER) as lease,
        heap_is_named(lake),
        Progress([*STEPS, *(flow.name for flow in flows_of(lake, wanted))]) as progress,
    ):
        lease.share(lake.spark)
        following = build(lake, wanted, progress)
        finish(following, wanted, progress)
    click.echo(f"generation {following.generation.generation} is active; `tidemark rollback` brings the one before back", err=True)


def _is_agreed(foreseen: "ReplayPreview", *, yes: bool) -> bool:
    """Say what would change, and ask unless that is answered already; a UsageError where nobody can answer."""
    from orchestration.rendering import show
    from orchestration.supervisor.replay_preview import COLUMNS

    click.echo(f"What this replay changes, up to bronze batch {foreseen.bronze_batch}:", err=True)
    show([row._asdict() for row in foreseen.tables], "table", COLUMNS)
    for sentence in foreseen.sentences():
        click.echo(sentence, err=True)
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("nothing is changed, as this is no terminal and nobody can be asked; `tidemark replay --yes` builds it")
    return click.confirm("Build this generation and switch to it?", err=True)
