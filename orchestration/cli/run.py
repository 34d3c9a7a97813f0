"""`tidemark run`: bring tables up to date, once or continuously."""

import signal
import threading
from typing import Any

import click


@click.command(epilog="Example: tidemark run --once")
@click.option("--once", is_flag=True, help="Bring every table up to date, then end. Without it: go on until Ctrl-C or SIGTERM.")
@click.option(
    "--layer", "layers", multiple=True, type=click.Choice(["bronze", "silver", "gold"]), help="Only flows of this layer; may be repeated."
)
@click.option("--flow", "names", multiple=True, help="Only this flow, such as silver.readings or gold.kitchen; may be repeated.")
@click.pass_obj
def command(obj: dict[str, Any], once: bool, layers: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Run the flows: landing folders to bronze, bronze to silver, silver to gold.

    Ctrl-C and SIGTERM end the run after the current batch; the next run goes on where this one ended.
    """
    from orchestration.flows import flows
    from orchestration.lake import Lake
    from orchestration.lock import sole_writer
    from orchestration.progress import Progress
    from orchestration.runner import run_continuously, run_once

    lake = Lake.open(obj["conf"])
    known = {flow.name: flow for flow in flows(lake)}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise click.UsageError(f"there is no flow {unknown[0]}; the flows are {', '.join(known)}")
    chosen = [flow for flow in known.values() if (not layers or flow.layer in layers) and (not names or flow.name in names)]
    stop = threading.Event()
    with sole_writer(lake.conf.lake):
        # What a process ignores, the JVM that it starts ignores too: a signal to the whole group, as a terminal and systemd send it,
        # then reaches this process alone. And pyspark takes SIGINT for itself when its context starts, so ours come after that.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _ = lake.spark
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with Progress([flow.name for flow in chosen]) as progress:
            (run_once if once else run_continuously)(lake, chosen, progress, stop)
