"""`tidemark status`: what is wrong, and how far each source and each flow is."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from orchestration.rendering import format_option, show, visible
from orchestration.utc import to_iso

COLUMNS = ("severity", "subject", "sentence", "since", "command")


@click.command()
@click.argument("what", type=click.Choice(["problems", "parts", "sources", "flows"]), required=False)
@format_option
@click.pass_obj
def command(obj: dict[str, Any], what: str | None, format: str) -> int:
    """Say what is wrong, and how far each source and each flow is; safe beside a running pipeline. It reads only the lake, and calls no
    source. Exit code 1: something critical is wrong, or the conf has mistakes; then all is said by the one that `up` has taken up.

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
    last_batch    the last micro-batch that was finished, and when Spark began it or Tidemark committed it
    watermark_at  a reading with an event time up to here is late for the flow
    behind        rows that the flow has yet to read
    lag_seconds   how long the oldest of these rows has been waiting

    What is wrong, or that nothing is and up to when that is known, stands on the error stream; `status problems` has it as rows.
    A table shows all; csv and json hold the flows, unless you ask for the problems, the parts or the sources.

    \b
    Examples:
      tidemark status
      tidemark status sources --format json
    """
    from orchestration.storage.delta import each_table_opened_once

    with each_table_opened_once():
        return 0 if _show(obj["conf"], what, format, datetime.now(UTC)) else 1


def _show(folder: Path, what: str | None, format: str, now: datetime) -> bool:
    """Say it; return whether nothing critical is wrong, and the conf has no mistakes."""
    from orchestration.storage.confs import conf_or_last
    from orchestration.supervisor.health import Severity, known_until, problems
    from orchestration.supervisor.service_state import parts_of
    from orchestration.supervisor.status import FLOW_COLUMNS, SOURCE_COLUMNS, read_status

    conf, mistakes = conf_or_last(folder)
    status, parts = read_status(conf, now), parts_of(conf.lake)
    wrong = problems(conf, now, status)
    if what == "problems":
        show([asdict(problem) for problem in wrong], format, COLUMNS)
    if what == "parts" or (what is None and format == "table" and parts):
        show(parts, format, ("part", "state", "since", "restarts", "reason"))
    if what == "sources" or (what is None and format == "table"):
        # A reason takes several lines of a terminal.
        show(status.sources, format, [name for name in SOURCE_COLUMNS if name != "reason" or format != "table"])
    if what == "flows" or what is None:
        show(status.flows, format, FLOW_COLUMNS)
    for problem in wrong:
        since, fix = f" (since {to_iso(problem.since)})" if problem.since else "", f"\n  {problem.command}" if problem.command else ""
        click.echo(visible(f"{problem.severity}: {problem.sentence}{since}") + fix, err=True)
    until = known_until(conf)
    up_to = f"known up to {to_iso(until)}" if until else "no run has looked at what comes yet"
    click.echo(f"nothing is wrong: {up_to}" if until and not wrong else up_to, err=True)
    for line in mistakes.splitlines():
        click.echo(f"not taken up: {visible(line)}", err=True)
    return not mistakes and all(problem.severity is not Severity.CRITICAL for problem in wrong)
