"""`tidemark collect`: take events that devices push, or that a broker has."""

from typing import Any

import click

from orchestration.rendering import visible


@click.command(epilog="Example: tidemark collect")
@click.argument("names", metavar="[SOURCE]...", nargs=-1)
@click.pass_obj
def command(obj: dict[str, Any], names: tuple[str, ...]) -> None:
    """Take events for all http, tcp, mqtt and kinesis sources, or for the SOURCEs named, until Ctrl-C or SIGTERM.

    What is acknowledged is on the disk of the lake; `tidemark run` brings it to bronze, at the same time or later.
    """
    from orchestration.conf.load import load
    from orchestration.connectors.collector.collect import collect

    collect(load(obj["conf"]), names, lambda line: click.echo(visible(f"tidemark: {line}"), err=True))
