"""`tidemark status`: how far each flow is."""

from datetime import UTC, datetime
from typing import Any

import click

from orchestration.rendering import format_option, show, visible


@click.command()
@format_option
@click.pass_obj
def command(obj: dict[str, Any], format: str) -> None:
    """Say how far each flow is; safe and fast beside a running pipeline.

    \b
    rows          rows of the table
    last_batch    the last micro-batch that was finished, and when
    watermark_at  readings up to here are late for the flow
    behind        rows of its source that the flow has not read yet
    lag_seconds   how long the oldest of these has been waiting

    Closed gates, tables that fail a gate, and sinks that are down are reported on the error stream.

    \b
    Example:
      tidemark status --format json
    """
    from orchestration.conf.load import load
    from orchestration.storage.gate_state import describe_gates
    from orchestration.supervisor.sink_status import describe_down
    from orchestration.supervisor.status import COLUMNS, path_of, status

    conf = load(obj["conf"])
    show(status(conf, datetime.now(UTC)), format, COLUMNS)
    for line in (*describe_gates(conf, lambda name: path_of(conf, name)), *describe_down(conf)):
        click.echo(visible(line), err=True)
