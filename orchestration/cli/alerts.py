"""`tidemark alerts`: try the alerts of conf, and watch the fast ones."""

import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from orchestration.cli.option_types import FILE
from orchestration.rendering import format_option, show, visible
from orchestration.utc import EPOCH

INSTANT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"])


@click.group()
def command() -> None:
    """Try the alerts of alerts.yml, and tell of fast ones where events arrive.

    \b
    Example:
      tidemark alerts test oven_too_hot
    """


@command.command()
@click.pass_obj
def watch(obj: dict[str, Any]) -> None:
    """Tell of alerts with `fast: true` as events arrive, from spools of `tidemark collect` and from Kafka, until Ctrl-C or SIGTERM.

    A part of `tidemark up` where conf has such alerts.

    \b
    Example:
      tidemark alerts watch
    """
    from orchestration.conf.load import load
    from orchestration.connectors.fast_alerts.watch import Watch

    watch = Watch(load(obj["conf"]), lambda line: click.echo(visible(f"tidemark: {line}"), err=True))
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
    """What the alert NAME would have done over the newest snapshot: its changes of state, and how often and how long it fired.

    Nothing is written and nobody is told. Late readings are left out, as they are when alerts are judged.

    \b
    Example:
      tidemark alerts test oven_too_hot --since 2026-01-05T06:00 --png oven_too_hot.png
    """
    from orchestration.conf.load import load

    conf = load(obj["conf"])
    if name not in conf.alerts:
        known = f"the alerts are {', '.join(conf.alerts)}" if conf.alerts else f"{conf.folder / 'alerts.yml'} declares none"
        raise click.UsageError(f"there is no alert {name!r}; {known}")

    from orchestration.serving.alerts import COLUMNS, tried

    trial = tried(conf, conf.alerts[name], since.replace(tzinfo=UTC) if since else EPOCH)
    show(trial.changes.select(COLUMNS).to_pylist(), format, COLUMNS)
    click.echo(trial.summary(), err=True)
    if png is not None:
        from orchestration.serving.plots.alerts import plot

        click.echo(plot(conf, trial, png), err=True)
