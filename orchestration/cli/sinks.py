"""`tidemark sinks`: how far each sink has come, and sending everything again."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from orchestration.errors import TidemarkError
from orchestration.rendering import format_option, show

if TYPE_CHECKING:
    from orchestration.conf.model import Conf


@click.group(invoke_without_command=True)
@format_option
@click.pass_context
def command(context: click.Context, format: str) -> None:
    """List the sinks of pipeline.yml, and how far each has come; safe beside a running pipeline. No sink is asked.

    \b
    snapshot          the newest snapshot that the target has, and when it was sent
    snapshots_behind  number of newer snapshots
    rows_behind       rows of the newest snapshot that the target lacks
    lag_seconds       age of the oldest snapshot that the target lacks
    dead_rows         rows that the target refused for what they hold: ops.dead_rows
    down_since        since when every attempt failed, and the reason of the first

    `tidemark run` sends after each snapshot, `tidemark run --once` at its end.

    \b
    Example:
      tidemark sinks --format json
    """
    from orchestration.conf.load import load
    from orchestration.supervisor.status import SINK_COLUMNS, sink_status

    if context.invoked_subcommand is None:
        show(sink_status(load(context.obj["conf"]), datetime.now(UTC)), format, SINK_COLUMNS)


@command.command()
@click.argument("name")
@click.pass_obj
def reset(obj: dict[str, Any], name: str) -> None:
    """Send everything again to the sink NAME, at the next step of `tidemark run`; rows that the table does not have are removed from the
    target.

    \b
    Example:
      tidemark sinks reset warehouse
    """
    from orchestration.connectors.sinks.sink_states import Request, request

    conf = _conf(obj, name)
    request(conf.lake, name, Request.RESET, datetime.now(UTC))
    click.echo(f"sink {name} gets all rows at the next step of `tidemark run`", err=True)


@command.command()
@click.argument("name")
@click.pass_obj
def resend(obj: dict[str, Any], name: str) -> None:
    """Send the rows again that the sink NAME refused for what they hold, once that is mended, at the next step of `tidemark run`.

    They are in ops.dead_rows, with the reason. What is refused again stays there.

    \b
    Example:
      tidemark sinks resend warehouse
    """
    from expectations.wording import counted
    from orchestration.connectors.sinks.dead_rows import dead_rows
    from orchestration.connectors.sinks.sink_states import Request, request

    conf = _conf(obj, name)
    if not (dead := dead_rows(conf.lake, name)):
        click.echo(f"sink {name} has refused no row", err=True)
        return
    request(conf.lake, name, Request.RESEND, datetime.now(UTC))
    click.echo(f"sink {name} gets {counted(len(dead), 'row')} again at the next step of `tidemark run`", err=True)


@command.command()
@click.argument("name")
@click.pass_obj
def schema(obj: dict[str, Any], name: str) -> None:
    """Print the Avro schema of what the sink NAME sends to Kafka with `format: avro`.

    \b
    Example:
      tidemark sinks schema kitchen > kitchen.avsc
    """
    from orchestration.connectors.sinks.kafka_messages import avro_schema
    from orchestration.jobs.sinks import newest_table

    conf = _conf(obj, name)
    pinned = newest_table(conf, name)
    if pinned is None:
        raise TidemarkError(f"{conf.sinks[name].table} is in no snapshot yet; `tidemark run --once` makes one.")
    click.echo(json.dumps(avro_schema(conf.sinks[name].table, pinned.schema), indent=2))


def _conf(obj: dict[str, Any], name: str) -> "Conf":
    from expectations.wording import hint
    from orchestration.conf.load import load

    conf = load(obj["conf"])
    if name not in conf.sinks:
        raise click.UsageError(
            f"there is no sink {name}; {hint(name, conf.sinks, 'pipeline.yml declares ' + (', '.join(conf.sinks) or 'none'))}"
        )
    return conf
