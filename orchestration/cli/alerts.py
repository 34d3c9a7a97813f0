"""`tidemark alerts`: what fires, who has seen it, silences, a watch of fast alerts, and a try of the alerts of conf."""

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from expectations.wording import counted
from orchestration.cli.alert_problems import problems
from orchestration.cli.option_types import FILE
from orchestration.cli.silences import INSTANT, silence, silences, unsilence
from orchestration.end_signals import end_by_signals
from orchestration.rendering import format_option, show, visible
from orchestration.utc import EPOCH

if TYPE_CHECKING:
    from orchestration.conf.model import Conf

FIRING = (
    *("id", "alert", "entity", "state", "severity", "since", "known_at", "told_at", "value", "summary", "acknowledged_by", "silenced_by"),
    "is_fast",
)
OF_CHANGE = ("changed_at", "alert", "entity", "state", "previous_state", "severity", "value", "summary", "known_at")
HISTORY = (*OF_CHANGE, "is_past", "reason", "id")
SHORT = 12
"""Digits of an alert's id that are shown; `ack` takes them."""


@click.group(invoke_without_command=True)
@format_option
@click.pass_context
def command(context: click.Context, format: str) -> None:
    """List what fires, since when, and who has seen it; safe beside a running pipeline. On stderr: up to when alerts are judged.

    \b
    since            when the alert left normal, by event time
    known_at         when its state was known
    told_at          when a channel had the first message about it
    acknowledged_by  who has said `ack`; what fires is not repeated then
    silenced_by      a silence that holds now, see `silences`
    is_fast          only the watch of fast alerts has seen it yet

    \b
    Example:
      tidemark alerts --format json
    """
    if context.invoked_subcommand is None:
        conf, now = _conf(context.obj), datetime.now(UTC)
        show(_firing(conf, now), format, FIRING)
        _report_judged(conf, now)


@command.command()
@click.option("--since", type=INSTANT, metavar="ISO", help="Only changes from this instant on, UTC.  [default: all]")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many, the latest first.")
@format_option
@click.pass_obj
def history(obj: dict[str, Any], since: datetime | None, limit: int, format: str) -> None:
    """List changes of state of all alerts, the latest first.

    \b
    Example:
      tidemark alerts history --since 2026-01-05
    """
    from orchestration.alerts.changes import pinned_alerts

    pinned = pinned_alerts(_conf(obj).lake)
    rows = pinned.history(since.replace(tzinfo=UTC) if since else EPOCH, limit) if pinned else []
    show([row | {"id": row["alert_id"][:SHORT]} for row in rows], format, HISTORY)


@command.command()
@click.argument("id")
@click.option("--note", default="", help="What others should know.")
@click.pass_obj
def ack(obj: dict[str, Any], id: str, note: str) -> None:
    """Acknowledge the alert ID, as `tidemark alerts` shows it: it is not sent again, unless it gets worse.

    \b
    Example:
      tidemark alerts ack 3f2a9c --note "on my way"
    """
    from orchestration.alerts.records import ACKNOWLEDGEMENTS, Acknowledgement

    conf, now = _conf(obj), datetime.now(UTC)
    rows = [row for row in _firing(conf, now) if row["alert_id"].startswith(id)]
    if len(rows) != 1:
        raise click.UsageError(f"{len(rows) or 'no'} firing alerts have an id that begins with {id!r}; `tidemark alerts` lists the ids")
    ACKNOWLEDGEMENTS.append(conf.lake, [Acknowledgement(rows[0]["alert_id"], getpass.getuser(), now, note)])
    click.echo(f"{rows[0]['alert']} of {rows[0]['entity']} is acknowledged", err=True)


@command.command()
@click.argument("channel")
@click.pass_obj
def resend(obj: dict[str, Any], channel: str) -> None:
    """Send messages again that CHANNEL refused or that failed too often, from ops.dead_letters, once its reason is gone.

    A message has the id that it had, and is sent again only until the channel takes it. Safe beside a running pipeline.

    \b
    Example:
      tidemark alerts resend shift
    """
    from orchestration.alerts.delivery import resend
    from orchestration.connectors.channels.all import channels
    from orchestration.errors import TidemarkError

    conf = _conf(obj)
    if (connection := channels(conf).get(channel)) is None:
        raise click.UsageError(f"there is no channel {channel!r}; alerts.yml declares {', '.join(conf.channels) or 'none'}")
    result = resend(conf, channel, connection, datetime.now(UTC))
    click.echo(f"sent {result.sent} of {counted(result.sent + result.dead, 'message')}", err=True)
    if result.dead:
        raise TidemarkError(f"channel {channel}: {counted(result.dead, 'message')} left in ops.dead_letters: {result.down}")


@command.command()
@click.pass_obj
def watch(obj: dict[str, Any]) -> None:
    """Send alerts with `fast: true` as events arrive, from spools of `tidemark collect` and from Kafka, until Ctrl-C or SIGTERM.

    A part of `tidemark up` where conf has such alerts.

    \b
    Example:
      tidemark alerts watch
    """
    from orchestration.alerts.watch import Watch

    watch = Watch(_conf(obj), lambda line: click.echo(visible(f"tidemark: {line}"), err=True))
    end_by_signals(watch.stop)
    watch.run()


@command.command()
@click.argument("name")
@click.option("--since", type=INSTANT, metavar="ISO", help="Only from this instant on, UTC.  [default: all that there is]")
@click.option("--png", type=FILE, help="Also draw it: values, where the condition is true, and when the alert fired.")
@format_option
@click.pass_obj
def test(obj: dict[str, Any], name: str, since: datetime | None, png: Path | None, format: str) -> None:
    """Show what the alert NAME would have done over the newest snapshot, how often and how long it fired; nothing is written or sent.

    \b
    Example:
      tidemark alerts test oven_too_hot --since 2026-01-05T06:00 --png oven_too_hot.png
    """
    conf = _conf(obj)
    if name not in conf.alerts:
        declared = f"the alerts are {', '.join(conf.alerts)}" if conf.alerts else f"{conf.folder / 'alerts.yml'} declares none"
        raise click.UsageError(f"there is no alert {name!r}; {declared}")

    from orchestration.serving.alerts import COLUMNS, tried

    trial = tried(conf, conf.alerts[name], since.replace(tzinfo=UTC) if since else EPOCH)
    show(trial.changes.select(COLUMNS).to_pylist(), format, COLUMNS)
    click.echo(trial.summary(), err=True)
    if png is not None:
        from orchestration.serving.plots.alerts import plot

        click.echo(plot(conf, trial, png), err=True)


def _conf(obj: dict[str, Any]) -> "Conf":
    from orchestration.conf.load import load

    return load(obj["conf"])


def _report_judged(conf: "Conf", now: datetime) -> None:
    from orchestration.alerts.firing import judged_up_to

    if conf.alerts:
        judged = judged_up_to(conf, now)
        click.echo(f"judged up to {judged:%Y-%m-%dT%H:%M:%SZ}" if judged else "not judged yet: `tidemark run` judges alerts", err=True)


def _firing(conf: "Conf", now: datetime) -> list[dict[str, Any]]:
    """The oldest first; FIRING and alert_id."""
    from orchestration.alerts.firing import firing

    rows = [
        row | {"id": row["alert_id"][:SHORT], "since": row["begun_at"], "acknowledged_by": row["seen"] and row["seen"].author}
        for row in firing(conf, now)
    ]
    return sorted(rows, key=lambda row: (row["since"], row["alert"], row["entity"]))


for _one in (silence, unsilence, silences, problems):
    command.add_command(_one)
