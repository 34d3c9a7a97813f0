"""`tidemark alerts`: what fires, who has seen it, silences, a watch of fast alerts, and a try of the alerts of conf."""

import getpass
import re
import secrets
import signal
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.alert_problems import problems
from orchestration.cli.option_types import FILE, Duration
from orchestration.rendering import format_option, show, visible
from orchestration.utc import EPOCH

if TYPE_CHECKING:
    from gold.alerts.spec import Hours
    from orchestration.conf.model import Conf

INSTANT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"])
FIRING = ("id", "alert", "entity", "state", "severity", "since", "value", "summary", "acknowledged_by", "silenced_by")
OF_CHANGE = ("changed_at", "alert", "entity", "state", "previous_state", "severity", "value", "summary", "known_at")
HISTORY = (*OF_CHANGE, "is_past", "reason", "id")
SILENCES = ("id", "alert", "entity", "begins_at", "ends_at", "hours", "author", "reason", "noted_at")
SHORT = 12
"""Digits of an alert's id that are shown; `ack` takes them."""


@click.group(invoke_without_command=True)
@format_option
@click.pass_context
def command(context: click.Context, format: str) -> None:
    """List what fires as of the newest snapshot, since when, and who has seen it; safe beside a running pipeline.

    \b
    since            when the alert left normal, by event time
    acknowledged_by  who has said `ack`; what fires is not repeated then
    silenced_by      a silence that holds now, see `silences`

    \b
    Example:
      tidemark alerts --format json
    """
    if context.invoked_subcommand is None:
        conf = _conf(context.obj)
        show(_firing(conf, datetime.now(UTC)), format, FIRING)


command.add_command(problems)


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
@click.argument("alert")
@click.argument("entity", default="*")
@click.option("--until", type=INSTANT, metavar="ISO", help="Its end, UTC; this or --for.")
@click.option("--for", "lasting", type=Duration(), metavar="DURATION", help="How long it lasts: 90m, 2h, 1d.")
@click.option("--from", "begin", type=INSTANT, metavar="ISO", help="Its beginning, UTC.  [default: now]")
@click.option("--reason", required=True, help="Why, for others.")
@click.option("--hours", metavar="HH:MM-HH:MM", help="Only in these hours of a day, in local time of --zone; they may go past midnight.")
@click.option("--days", metavar="DAYS", help="Only days on which the hours begin: mon,tue.  [default: all]")
@click.option("--zone", default="UTC", show_default=True, help="Time zone of --hours and --days, such as Europe/Berlin.")
@click.pass_obj
def silence(obj: dict[str, Any], /, alert: str, entity: str, begin: datetime | None, reason: str, **when: Any) -> None:
    """Send no messages about ALERT for ENTITY for a while; both may have the wildcards * and ?.

    The alert is still evaluated. If it fires when the silence ends, it is sent then. A channel that was notified before the silence is
    notified when the alert ends.

    \b
    Example:
      tidemark alerts silence oven_too_hot "oven-*" --for 2h --reason "new heating element"
      tidemark alerts silence "*" --until 2026-12-31 --hours 22:00-06:00 --days sat,sun --zone Europe/Berlin --reason "no shift"
    """
    from fnmatch import fnmatchcase

    from orchestration.alerts.records import SILENCES, NotedSilence
    from orchestration.jobs.quality_notices import POLICIES
    from orchestration.supervisor.problem_notices import ALERTS

    conf, now = _conf(obj), datetime.now(UTC)
    if not any(fnmatchcase(name, alert) for name in (*conf.alerts, *POLICIES, *ALERTS)):
        raise click.UsageError(f"no alert has the name {alert!r}; alerts.yml declares {', '.join(conf.alerts) or 'none'}")
    if (when["until"] is None) == (when["lasting"] is None):
        raise click.UsageError("say when it ends, by --until or by --for")
    begins_at = begin.replace(tzinfo=UTC) if begin else now
    ends_at = when["until"].replace(tzinfo=UTC) if when["until"] else begins_at + when["lasting"]
    if ends_at <= max(begins_at, now):
        raise click.UsageError("the silence would end before it begins, or before now; choose a later --until, or a longer --for")
    hours = _hours(when["hours"], when["days"], when["zone"])
    noted = partial(NotedSilence, author=getpass.getuser(), reason=reason, noted_at=now)
    made = noted(secrets.token_hex(4), alert, entity, begins_at, ends_at, hours)
    SILENCES.append(conf.lake, [made])
    click.echo(f"silence {made.silence_id} holds until {ends_at:%Y-%m-%d %H:%M} UTC; `tidemark alerts unsilence` ends it", err=True)


@command.command()
@click.argument("id")
@click.pass_obj
def unsilence(obj: dict[str, Any], id: str) -> None:
    """End the silence ID now.

    \b
    Example:
      tidemark alerts unsilence 9c1e44d0
    """
    from orchestration.alerts.records import SILENCES, silences

    conf, now = _conf(obj), datetime.now(UTC)
    noted = {silence.silence_id: silence for silence in silences(conf.lake) if silence.ends_at > now}.get(id)
    if noted is None:
        raise click.UsageError(f"no active silence has the id {id!r}; `tidemark alerts silences` lists the ids")
    SILENCES.append(conf.lake, [replace(noted, ends_at=now, author=getpass.getuser(), noted_at=now)])
    click.echo(f"silence {id} is over", err=True)


@command.command()
@click.option("--all", "with_past", is_flag=True, help="Also those that are over.")
@format_option
@click.pass_obj
def silences(obj: dict[str, Any], with_past: bool, format: str) -> None:
    """List silences that are not over.

    \b
    Example:
      tidemark alerts silences
    """
    from orchestration.alerts.records import silences as noted_silences

    now, rows = datetime.now(UTC), []
    for noted in sorted(noted_silences(_conf(obj).lake), key=lambda noted: noted.ends_at):
        if with_past or noted.ends_at > now:
            rows.append(vars(noted) | {"id": noted.silence_id, "hours": noted.hours and _shown(noted.hours)})
    show(rows, format, SILENCES)


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
    from orchestration.connectors.channels.all import channels
    from orchestration.errors import TidemarkError
    from orchestration.jobs.notices import resend

    conf = _conf(obj)
    if (connection := channels(conf).get(channel)) is None:
        raise click.UsageError(f"there is no channel {channel!r}; alerts.yml declares {', '.join(conf.channels) or 'none'}")
    result = resend(conf, channel, connection, datetime.now(UTC))
    click.echo(f"sent {result.sent} of {result.sent + result.dead} messages", err=True)
    if result.dead:
        raise TidemarkError(f"channel {channel}: {result.dead} messages stay in ops.dead_letters: {result.down}")


@command.command()
@click.pass_obj
def watch(obj: dict[str, Any]) -> None:
    """Send alerts with `fast: true` as events arrive, from spools of `tidemark collect` and from Kafka, until Ctrl-C or SIGTERM.

    A part of `tidemark up` where conf has such alerts.

    \b
    Example:
      tidemark alerts watch
    """
    from orchestration.connectors.fast_alerts.watch import Watch

    watch = Watch(_conf(obj), lambda line: click.echo(visible(f"tidemark: {line}"), err=True))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watch.stop.set())
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


def _firing(conf: "Conf", now: datetime) -> list[dict[str, Any]]:
    """The oldest first; FIRING and alert_id."""
    from orchestration.alerts.changes import firing

    rows = [
        row | {"id": row["alert_id"][:SHORT], "since": row["begun_at"], "acknowledged_by": row["seen"] and row["seen"].author}
        for row in firing(conf.lake, conf.alerts, now)
    ]
    return sorted(rows, key=lambda row: (row["since"], row["alert"], row["entity"]))


def _hours(text: str | None, days: str | None, zone: str) -> "Hours | None":
    """None where it holds always."""
    from zoneinfo import ZoneInfo

    from gold.alerts.spec import WEEK, Hours

    if text is None and days is None:
        return None
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", text or "00:00-00:00")
    if match is None:
        raise click.UsageError(f"--hours {text} are no hours; write for example 22:00-06:00")
    if unknown := {*(days or "mon").split(",")} - {*WEEK}:
        raise click.UsageError(f"--days names {', '.join(sorted(unknown))}; days are {', '.join(WEEK)}")
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        raise click.UsageError(f"--zone {zone} is no time zone; write for example Europe/Berlin") from None
    chosen = tuple(WEEK.index(day) for day in WEEK if day in (days.split(",") if days else WEEK))
    return Hours(zone, chosen, int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4]))


def _shown(hours: "Hours") -> str:
    from gold.alerts.spec import WEEK

    begin, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (hours.begin, hours.end))
    return f"{begin}-{end} {','.join(WEEK[day] for day in hours.days)} {hours.zone}"
