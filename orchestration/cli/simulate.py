"""`tidemark simulate`: events of made-up devices into a landing folder, and the truth about them beside it."""

from __future__ import annotations

import csv
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from expectations.wording import counted
from orchestration.cli.option_types import PATH
from orchestration.end_signals import end_by_signals
from orchestration.utc import from_iso, from_micros, to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestration.conf.model import Conf
    from orchestration.connectors.simulator.landing import Landing
    from orchestration.connectors.simulator.messages import Messages
    from orchestration.connectors.simulator.plan import Plan

DEFAULT_EVENTS = 240_000
DEFAULT_INTERVAL = 60.0
DEFAULT_FILES = 8
DEVICES_FILE, LABELS_FILE = "_devices.csv", "_labels.csv"
"""They begin with an underscore, so that whoever reads the folder as Parquet passes over them."""
SHARE = click.FloatRange(0, 1)


def _instant(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    """ISO 8601; without a zone it is UTC."""
    try:
        return from_iso(value) if value else None
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an ISO 8601 instant, such as 2026-01-05T00:00:00Z") from None


@click.command()
@click.option("--to", "folder", required=True, type=PATH, help="The landing folder; the truth goes to DIR.truth beside it.")
@click.option("--events", type=click.IntRange(min=1), help="How many lines.  [default: 240000; with --rate until Ctrl-C]")
@click.option(
    "--devices", "count", type=click.IntRange(1, 1_000_000), help="Make up N devices (sim-0001 ..).  [default: those of the conf]"
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same arguments give the same bytes.")
@click.option("--start", callback=_instant, metavar="ISO", help="First event time.  [default: 2026-01-05T00:00:00Z]")
@click.option("--interval", type=click.FloatRange(min=0.001), metavar="SECONDS", help="Between two readings of a device.  [default: 60]")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="EVENTS_PER_SECOND",
    help="Write a file every second; event times are now.",
)
@click.option("--files", type=click.IntRange(min=1), help="How many files.  [default: 8]")
@click.option(
    "--shape",
    type=click.Choice(["long", "wide", "list"]),
    default="long",
    show_default=True,
    help="long: one measurement in an event; wide, list: all metrics of a device.",
)
@click.option(
    "--order",
    type=click.Choice(["time", "shuffled"]),
    help="time: lines in order of arrival; shuffled: each line goes to a random file.  [default: time]",
)
@click.option(
    "--late",
    type=SHARE,
    default=0.005,
    show_default=True,
    help="Share of events that are sent late: later than the largest lateness of the conf.",
)
@click.option("--duplicate", type=SHARE, default=0.01, show_default=True, help="Share sent a second time.")
@click.option(
    "--malformed",
    type=SHARE,
    default=0.001,
    show_default=True,
    help="Share of broken lines: a bad number, cut short, empty, two in one line, not UTF-8.",
)
@click.option("--future", type=SHARE, default=0.00002, show_default="0.00002", help="Share dated 2099.")
@click.option("--offline", type=SHARE, default=0.002, show_default=True, help="Share of the time without network; sent afterwards.")
@click.option(
    "--faults",
    type=click.IntRange(min=0),
    help="Plant N faults, of one device each, in the second half of the time; DIR.truth/_labels.csv says which and when.  [default: 0]",
)
@click.pass_obj
def command(obj: dict[str, Any], /, folder: Path, **options: Any) -> None:
    """Write events of simulated devices into a folder: daily cycle, noise, drift, faults, and a network that delays, repeats and breaks.

    What was sent, line by line, is written to DIR.truth (Parquet). A second run adds files and never overwrites one.
    Faults are spikes, drifts, stuck values, dropouts, shifted cycles, swapped sensors, changed correlations and slow leaks.

    \b
    Example:
      tidemark simulate --to landing --events 240000
      tidemark simulate --to landing --rate 500
      tidemark simulate --to landing --events 2000000 --faults 8
    """
    from orchestration.conf.load import load
    from orchestration.connectors.simulator.landing import Landing

    for name in ("start", "interval", "files", "order", "faults") if options["rate"] else ():
        if options[name] is not None:
            raise click.UsageError(f"--{name} does not go with --rate, which writes a file every second with the events of that second")
    plan = _planned(load(obj["conf"]), options)
    landing = Landing(folder, plan)
    with _shown(plan) as (counts, progress):
        _feed(plan, landing, options, progress)
    summary = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    click.echo(f"{counted(counts.total(), 'event')} in {folder} ({summary}); the truth about each is in {landing.truth.name}", err=True)
    if plan.faults:
        _add_labels(landing.truth / LABELS_FILE, plan)
    if options["count"]:
        devices = landing.truth / DEVICES_FILE
        _write_devices(devices, plan)
        click.echo(f"the devices are made up: make them known with `tidemark devices load {devices}`", err=True)


def _planned(conf: Conf, options: dict[str, Any]) -> Plan:
    """With a rate the interval follows from it, and time begins now."""
    from orchestration.connectors.simulator import plan

    devices = plan.made_up_devices(conf, options["count"]) if options["count"] else list(conf.devices.values())
    start, interval = options["start"] or plan.DEFAULT_START, options["interval"] or DEFAULT_INTERVAL
    events = options["events"] or DEFAULT_EVENTS
    if options["rate"]:
        a_tick = len(devices) * (len(conf.metrics) if options["shape"] == "long" else 1)
        start, interval = datetime.now(UTC), a_tick / options["rate"]
        events = options["events"] or plan.WITHOUT_END
    odds = plan.Odds(**{name: options[name] for name in ("late", "duplicate", "malformed", "future", "offline")})
    shape, seed = options["shape"], options["seed"]
    faults = options["faults"] or 0
    return plan.plan(conf, devices, events=events, seed=seed, start=start, interval_seconds=interval, shape=shape, odds=odds, faults=faults)


def _feed(plan: Plan, landing: Landing, options: dict[str, Any], progress: Callable[[Messages], None]) -> None:
    from orchestration.connectors.simulator.landing import MOST_SHUFFLED_FILES, at_rate, in_order, shuffled

    files = min(options["files"] or DEFAULT_FILES, plan.events)
    if options["rate"]:
        stop = threading.Event()
        end_by_signals(stop)
        at_rate(plan, landing, stop, progress)
    elif options["order"] == "shuffled":
        if files > MOST_SHUFFLED_FILES:
            raise click.UsageError(f"--order shuffled writes all files at once, at most {MOST_SHUFFLED_FILES}; --files is {files}")
        shuffled(plan, landing, files, progress)
    else:
        in_order(plan, landing, files, progress)


@contextmanager
def _shown(plan: Plan) -> Iterator[tuple[Counter[str], Callable[[Messages], None]]]:
    """A progress bar on stderr, and the count of each kind of message so far."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from orchestration.connectors.simulator.messages import Kind
    from orchestration.connectors.simulator.plan import WITHOUT_END

    counts: Counter[str] = Counter({kind.name.lower(): 0 for kind in Kind})
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("events"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("simulate", total=None if plan.events == WITHOUT_END else plan.events)

        def advance(messages: Messages) -> None:
            for kind in Kind:
                counts[kind.name.lower()] += int((messages["kind"] == kind).sum())
            progress.advance(task, len(messages))

        yield counts, advance


def _write_devices(path: Path, plan: Plan) -> None:
    """Write the file that `tidemark devices load` reads."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["device_id", "zone", "groups"])
        writer.writerows([device.device_id, device.zone, ";".join(device.groups)] for device in plan.devices)


def _add_labels(path: Path, plan: Plan) -> None:
    """Add a row a fault: the device, the metric in which it is seen first, and the instants from which it is there and gone."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["entity", "begins_at", "ends_at", "kind", "metric"]] if is_new else [])
        for fault in plan.faults:
            device, metric = divmod(fault.series[0], len(plan.metrics))
            instants = (to_iso(from_micros(plan.measured_us(tick, device))) for tick in (fault.begin, fault.end))
            writer.writerow([plan.devices[device].device_id, *instants, fault.kind, plan.metrics[metric].name])
