"""`tidemark alerts silence`, `unsilence` and `silences`: no messages about an alert for a while."""

import getpass
import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import Duration
from orchestration.rendering import format_option, show

if TYPE_CHECKING:
    from gold.alerts.spec import Hours

INSTANT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"])
SILENCES = ("id", "alert", "entity", "begins_at", "ends_at", "hours", "author", "reason", "noted_at")


@click.command()
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

    from orchestration.alerts.quality_changes import POLICIES
    from orchestration.alerts.records import SILENCES as LOG
    from orchestration.alerts.records import NotedSilence
    from orchestration.conf.load import load
    from orchestration.supervisor.problem_notices import ALERTS

    conf, now = load(obj["conf"]), datetime.now(UTC)
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
    LOG.append(conf.lake, [made])
    click.echo(f"silence {made.silence_id} holds until {ends_at:%Y-%m-%d %H:%M} UTC; `tidemark alerts unsilence` ends it", err=True)


@click.command()
@click.argument("id")
@click.pass_obj
def unsilence(obj: dict[str, Any], id: str) -> None:
    """End the silence ID now.

    \b
    Example:
      tidemark alerts unsilence 9c1e44d0
    """
    from orchestration.alerts.records import SILENCES as LOG
    from orchestration.alerts.records import silences
    from orchestration.conf.load import load

    conf, now = load(obj["conf"]), datetime.now(UTC)
    noted = {silence.silence_id: silence for silence in silences(conf.lake) if silence.ends_at > now}.get(id)
    if noted is None:
        raise click.UsageError(f"no active silence has the id {id!r}; `tidemark alerts silences` lists the ids")
    LOG.append(conf.lake, [replace(noted, ends_at=now, author=getpass.getuser(), noted_at=now)])
    click.echo(f"silence {id} is over", err=True)


@click.command()
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
    from orchestration.conf.load import load

    now, rows = datetime.now(UTC), []
    for noted in sorted(noted_silences(load(obj["conf"]).lake), key=lambda noted: noted.ends_at):
        if with_past or noted.ends_at > now:
            rows.append(vars(noted) | {"id": noted.silence_id, "hours": noted.hours and _shown(noted.hours)})
    show(rows, format, SILENCES)


def _hours(text: str | None, days: str | None, zone: str) -> "Hours | None":
    """None where it holds always."""
    from expectations.settings import problems_of_zone
    from gold.alerts.spec import WEEK, Hours

    if text is None and days is None:
        return None
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", text or "00:00-00:00")
    if match is None:
        raise click.UsageError(f"--hours {text} are no hours; write for example 22:00-06:00")
    if unknown := {*(days or "mon").split(",")} - {*WEEK}:
        raise click.UsageError(f"--days names {', '.join(sorted(unknown))}; days are {', '.join(WEEK)}")
    if problem := next((problem for problem in problems_of_zone("zone", zone) if not problem.is_warning), None):
        raise click.UsageError(f"--zone {problem.text}")
    chosen = tuple(WEEK.index(day) for day in WEEK if day in (days.split(",") if days else WEEK))
    return Hours(zone, chosen, int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4]))


def _shown(hours: "Hours") -> str:
    from gold.alerts.spec import WEEK

    begin, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (hours.begin, hours.end))
    return f"{begin}-{end} {','.join(WEEK[day] for day in hours.days)} {hours.zone}"
