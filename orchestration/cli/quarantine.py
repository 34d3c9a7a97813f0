"""`tidemark quarantine`: what is in quarantine, and the way back out of it."""

from typing import TYPE_CHECKING, Any

import click

from orchestration.rendering import format_option, short, show

if TYPE_CHECKING:
    from orchestration.engine.lake import Lake
    from orchestration.jobs.account.retry import Chosen

rule_option = click.option("--rule", metavar="NAME", help="Only events that break this rule.")
source_option = click.option("--source", metavar="NAME", help="Only events of this source.")


@click.group()
def command() -> None:
    """List, show and retry what breaks a rule.

    \b
    Example:
      tidemark quarantine list && tidemark quarantine retry --rule value_is_in_range
    """


@command.command(name="list")
@format_option
@click.pass_obj
def list_(obj: dict[str, Any], format: str) -> None:
    """Count what is in quarantine, by rule and source; a measurement that breaks two rules counts under both. Without Spark.

    \b
    Example:
      tidemark quarantine list --format json
    """
    from orchestration.audit.quarantine import COUNTED, counted

    show(counted(_lake(obj)), format, COUNTED)


@command.command(name="show")
@rule_option
@source_option
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most so many rows, the newest first.")
@format_option
@click.pass_obj
def show_(obj: dict[str, Any], rule: str | None, source: str | None, limit: int, format: str) -> None:
    """Show rows of quarantine with their payloads, the newest first. Without Spark.

    \b
    Example:
      tidemark quarantine show --rule payload_is_readable --limit 3
    """
    from orchestration.audit.quarantine import SHOWN, shown

    rows = shown(_lake(obj), rule, source, limit)
    if format == "table":
        rows = [row | {"payload": short(row["payload"])} for row in rows]
    show(rows, format, SHOWN)


@command.command()
@rule_option
@source_option
@click.option("--dry-run", is_flag=True, help="Only say what would become of them.")
@format_option
@click.pass_obj
def retry(obj: dict[str, Any], rule: str | None, source: str | None, dry_run: bool, format: str) -> None:
    """Apply today's conf to events in quarantine, and re-admit the measurements that are good now.

    They go to silver.late, from where they are folded into gold under the next revision, or to silver.duplicates where another
    measurement has their device, metric and event time. If a run was killed within a gold batch, the next run folds them in.
    Beside a running pipeline, the pipeline does it between two gold cycles, and the command waits for that.
    A device that is in the registry now counts for its earlier events too; where it was in the registry, that stays as it was.

    \b
    events       events of the source to which the rules were applied again
    readmitted   measurements that went to silver.late
    duplicates   measurements that went to silver.duplicates
    quarantined  rows of these events that are in quarantine now
    moved        events left alone: the payload format has changed, so their measurements would get other numbers (`part`) than
                 silver holds

    \b
    Example:
      tidemark quarantine retry --rule value_is_in_range --dry-run
    """
    from orchestration.audit.quarantine import is_there
    from orchestration.flows import quarantine_retry
    from orchestration.jobs.account.retry import COLUMNS, Chosen

    lake, chosen = _lake(obj), Chosen(rule, source)
    if not is_there(lake):
        summary = []
    elif dry_run:
        with quarantine_retry(lake, chosen) as verdict:
            summary = verdict.summary
    else:
        summary = _retried(lake, chosen)
    show(summary, format, COLUMNS)


def _retried(lake: "Lake", chosen: "Chosen") -> list[dict[str, Any]]:
    """Retry in this process, or let the pipeline do it that writes the lake."""
    from orchestration.engine.progress import Progress
    from orchestration.errors import HeldError
    from orchestration.jobs.gold.amendments import NAME
    from orchestration.storage.lease import sole_writer
    from orchestration.supervisor.retry_requests import ask, takes_requests
    from orchestration.supervisor.run import retry_quarantine

    while True:
        try:
            with sole_writer(lake.conf.lake) as lease, Progress([NAME]) as progress:
                lease.share(lake.spark)
                return retry_quarantine(lake, chosen, progress)
        except HeldError:
            if not takes_requests(lake.conf.lake):
                raise
            click.echo("tidemark: asks the running pipeline, which does it between two gold cycles", err=True)
            if (summary := ask(lake.conf.lake, chosen)) is not None:
                return summary


def _lake(obj: dict[str, Any]) -> "Lake":
    from orchestration.engine.lake import Lake

    return Lake.open(obj["conf"])
