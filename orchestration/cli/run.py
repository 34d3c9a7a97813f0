"""`tidemark run`: bring tables up to date, once or continuously."""

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from orchestration.end_signals import end_by_signals
from orchestration.rendering import plain, show, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from orchestration.conf.model import Conf
    from orchestration.flow import Flow, Intake, Job
    from orchestration.storage.held_leases import HeldLease
    from orchestration.supervisor.summary import Summary

MOST_ROWS = 50
"""The most rows of a table for people: 10,000 groups take 30 s to draw (measured)."""


@click.command(epilog="Example: tidemark run --once")
@click.option("--once", is_flag=True, help="Bring every table up to date, then end. Without it: go on until Ctrl-C or SIGTERM.")
@click.option(
    "--layer", "layers", multiple=True, type=click.Choice(["bronze", "silver", "gold"]), help="Only flows of this layer; may be repeated."
)
@click.option("--flow", "names", multiple=True, help="Only this flow, such as silver.readings or gold.kitchen; may be repeated.")
@click.option(
    "--format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format of the summary that --once prints.",
)
@click.pass_obj
def command(obj: dict[str, Any], once: bool, layers: tuple[str, ...], names: tuple[str, ...], format: str) -> int:
    """Run the flows: sources to bronze, bronze to silver, silver to gold.

    Ctrl-C and SIGTERM end the run after the current batch; the next run goes on where this one ended.
    With --once it prints at the end what became of its rows, on stdout; exit code 1: events or unreadable files came, and no reading.
    Progress goes to stderr: bars on a terminal; a line of JSON for each batch elsewhere, and with --format json.

    \b
    events     messages of a source; all other counts are measurements in these messages
    closed     windows of a group that the run closed
    amended    windows that the run computed again because of late rows
    open       windows with readings of this run (or of the newest batch, if nothing came) that are not closed yet
    """
    from rich.console import Console

    from orchestration.engine.lake import Lake, heap_is_named
    from orchestration.engine.progress import Progress
    from orchestration.flows import flows
    from orchestration.storage import generations
    from orchestration.storage.confs import conf_to_run
    from orchestration.storage.lease import sole_writer
    from orchestration.supervisor.run import run_continuously, run_once

    conf, stop, is_first, summaries = conf_to_run(obj["conf"]), threading.Event(), True, list["Summary"]()
    console = Console(stderr=True, force_terminal=False if format == "json" else None)
    with sole_writer(conf.lake) as lease, _noting(conf) as note:
        end_by_signals(stop)
        while is_first or not (once or stop.is_set()):
            is_first = False
            generations.switch(conf.lake, datetime.now(UTC))
            # Another generation may have been built under another conf.
            lake = Lake(conf_to_run(obj["conf"]))
            lake.start = partial(_start, lease, stop)
            chosen = _chosen(flows(lake), layers, names)
            try:
                with heap_is_named(lake), Progress([flow.name for flow in chosen], console, note) as progress:
                    run_once(lake, chosen, progress, stop, summaries.append) if once else run_continuously(lake, chosen, progress, stop)
            finally:
                _show(summaries, format)
    return int(any(summary.is_in_vain for summary in summaries))


def _chosen(declared: "list[Intake | Flow | Job]", layers: tuple[str, ...], names: tuple[str, ...]) -> "list[Intake | Flow | Job]":
    offered = dict.fromkeys(flow.whole for flow in declared)
    unknown = sorted(set(names) - offered.keys())
    if unknown:
        raise click.UsageError(f"there is no flow {unknown[0]}; the flows are {', '.join(offered)}")
    return [flow for flow in declared if (not layers or flow.layer in layers) and (not names or flow.whole in names)]


def _noting(conf: "Conf") -> "AbstractContextManager[Callable[[Mapping[str, Any]], None]]":
    """Return what takes the facts of each batch: the history, and an OpenTelemetry collector if conf names one."""
    from orchestration.supervisor.history import note

    of_lake = partial(note, conf.lake)
    if conf.traces is None:
        return nullcontext(of_lake)
    from orchestration.supervisor.traces import traced

    return traced(conf.traces, conf.pipeline, of_lake)


def _start(lease: "HeldLease", stop: threading.Event, session: "Callable[[], SparkSession]") -> "SparkSession":
    """Start the session, under the lease too."""
    # The JVM ignores SIGTERM, so that a signal to the whole group, as a terminal and systemd send it, reaches this process alone. This
    # process takes it meanwhile, too. And pyspark takes SIGINT for itself when its context starts, so ours come after that.
    is_starting = [True]
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN) if is_starting else None)
    spark = session()
    is_starting.clear()
    lease.share(spark)
    end_by_signals(stop)
    return spark


def _show(summaries: "Sequence[Summary]", format: str) -> None:
    for summary in summaries:
        if format == "json":
            click.echo(json.dumps(plain(asdict(summary) | {"sentences": [line for line, _ in summary.sentences()]})))
            continue
        for rows in filter(len, (summary.sources, summary.left_out, summary.quarantined, summary.windows)):
            shown = rows[:MOST_ROWS] if format == "table" else rows
            show(shown, format)
            if len(shown) < len(rows):
                click.echo(f"and {len(rows) - len(shown)} more")
        for line, colour in summary.sentences():
            click.echo(click.style(visible(line), fg=colour))
