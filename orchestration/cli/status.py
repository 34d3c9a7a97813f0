"""`tidemark status`: how far each source and each flow is."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from orchestration.rendering import format_option, show, visible

if TYPE_CHECKING:
    from orchestration.conf.model import Conf


@click.command()
@click.argument("what", type=click.Choice(["parts", "sources", "flows"]), required=False)
@format_option
@click.pass_obj
def command(obj: dict[str, Any], what: str | None, format: str) -> None:
    """Say how far each source and each flow is; safe beside a running pipeline. It reads only the lake, and calls no source.

    \b
    part          a part of `tidemark up`, if that runs
    state         running; waiting to be started again; stopped until the conf changes; hangs
    restarts      how often the part was started again since `up` began
    reason        why it is in this state, or how it ended last

    \b
    state             up; down: it did not answer last time; new: not read yet; paused: by sources.yml
    down_since        since when every attempt has failed
    offset            how far bronze has read the source
    last_received_at  when the source received the newest event of the last batch
    waiting_messages  Kafka only: messages that a run last saw at the brokers and that bronze does not have
    waiting_bytes     pushed events only: bytes that bronze does not have yet
    lag_seconds       how long the oldest of these events has been waiting

    \b
    rows          rows of the table
    last_batch    the last micro-batch that was finished, and when
    watermark_at  a reading with an event time up to here is late for the flow
    behind        rows that the flow has yet to read
    lag_seconds   how long the oldest of these rows has been waiting

    Closed gates, tables that fail a gate, sources and sinks that are down, declared fields that no longer come, and settings that have
    changed are reported on the error stream, with the reason.
    A table shows all; csv and json hold the flows, unless you ask for the sources or the parts.

    \b
    Examples:
      tidemark status
      tidemark status sources --format json
    """
    from orchestration.conf.load import load

    _show(load(obj["conf"]), what, format, datetime.now(UTC))


def _show(conf: "Conf", what: str | None, format: str, now: datetime) -> None:
    from orchestration.jobs.watched_fields import missing_fields
    from orchestration.storage.changed_settings import changed_settings
    from orchestration.storage.gate_state import describe_gates
    from orchestration.storage.tables import LakeStore
    from orchestration.supervisor.service_state import parts_of
    from orchestration.supervisor.status import FLOW_COLUMNS, SOURCE_COLUMNS, describe_sinks_down, flow_status, source_status

    parts = parts_of(conf.lake)
    if what == "parts" or (what is None and format == "table" and parts):
        show(parts, format, ("part", "state", "since", "restarts", "reason"))
    if what == "parts":
        return
    sources = source_status(conf, now)
    if what == "sources" or (what is None and format == "table"):
        # A reason takes several lines of a terminal.
        show(sources, format, [name for name in SOURCE_COLUMNS if name != "reason" or format != "table"])
    if what != "sources":
        show(flow_status(conf, now), format, FLOW_COLUMNS)
    down = [f"down since {row['down_since']}: {row['reason']}" for row in sources if row["down_since"]]
    changed = (*map(str, changed_settings(LakeStore(conf))), *missing_fields(conf.lake))
    for line in (*describe_gates(conf, LakeStore(conf).table_path), *down, *describe_sinks_down(conf), *changed):
        click.echo(visible(line), err=True)
