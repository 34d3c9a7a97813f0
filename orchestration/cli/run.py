"""`tidemark run`: bring tables up to date, once or continuously."""

import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orchestration.engine.lake import Lake
    from orchestration.flow import Flow, Intake, Job
    from orchestration.storage.lease import Lease


@click.command(epilog="Example: tidemark run --once")
@click.option("--once", is_flag=True, help="Bring every table up to date, then end. Without it: go on until Ctrl-C or SIGTERM.")
@click.option(
    "--layer", "layers", multiple=True, type=click.Choice(["bronze", "silver", "gold"]), help="Only flows of this layer; may be repeated."
)
@click.option("--flow", "names", multiple=True, help="Only this flow, such as silver.readings or gold.kitchen; may be repeated.")
@click.pass_obj
def command(obj: dict[str, Any], once: bool, layers: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Run the flows: sources to bronze, bronze to silver, silver to gold.

    Ctrl-C and SIGTERM end the run after the current batch; the next run goes on where this one ended.
    """
    from orchestration.conf.load import load
    from orchestration.engine.lake import Lake, heap_is_named
    from orchestration.engine.progress import Progress
    from orchestration.flows import flows
    from orchestration.storage import generations
    from orchestration.storage.lease import sole_writer
    from orchestration.supervisor.run import run_continuously, run_once

    conf, stop, is_first = load(obj["conf"]), threading.Event(), True
    with sole_writer(conf.lake) as lease:
        while is_first or not (once or stop.is_set()):
            generations.switch(conf.lake, datetime.now(UTC))
            # Another generation may have been built under another conf.
            lake = Lake.open(obj["conf"])
            chosen = _chosen(flows(lake), layers, names)
            if is_first:
                _listen(lake, lease, stop)
            is_first = False
            with heap_is_named(lake), Progress([flow.name for flow in chosen]) as progress:
                (run_once if once else run_continuously)(lake, chosen, progress, stop)


def _chosen(declared: "list[Intake | Flow | Job]", layers: tuple[str, ...], names: tuple[str, ...]) -> "list[Intake | Flow | Job]":
    unknown = sorted(set(names) - {flow.name for flow in declared})
    if unknown:
        raise click.UsageError(f"there is no flow {unknown[0]}; the flows are {', '.join(flow.name for flow in declared)}")
    return [flow for flow in declared if (not layers or flow.layer in layers) and (not names or flow.name in names)]


def _listen(lake: "Lake", lease: "Lease", stop: threading.Event) -> None:
    """Start the session, under the lease too, and take signals as a wish to end."""
    # What a process ignores, the JVM that it starts ignores too: a signal to the whole group, as a terminal and systemd send it,
    # then reaches this process alone. And pyspark takes SIGINT for itself when its context starts, so ours come after that.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lease.share(lake.spark)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
