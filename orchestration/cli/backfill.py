"""`tidemark backfill`: bring older messages of a Kafka source to bronze."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import msgspec

from expectations.wording import counted
from orchestration.rendering import format_option, show

if TYPE_CHECKING:
    from orchestration.connectors.sources.kafka_backfill import Bound

NUMBER = Annotated[int, msgspec.Meta(ge=0)]
OFFSETS = dict[str, dict[NUMBER, NUMBER]]
HINT = """write earliest, latest, an instant such as 2026-01-05T00:00:00Z, or offsets such as '{"readings": {"0": 1200}}'"""


class BoundType(click.ParamType):  # type: ignore[type-arg]
    """A bound of a range of messages."""

    name = "bound"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Bound":
        from orchestration.conf.values import instant

        if value in ("earliest", "latest"):
            word: Literal["earliest", "latest"] = value
            return word
        with suppress(ValueError):
            return instant(value)
        try:
            return msgspec.json.decode(value, type=OFFSETS)
        except msgspec.DecodeError:
            self.fail(f"{value!r} is not a position in a topic; {HINT}", param, ctx)


@click.command()
@click.argument("source")
@click.option("--from", "begin", type=BoundType(), required=True, help="The first message: earliest, an instant, or offsets as JSON.")
@click.option(
    "--to",
    "end",
    type=BoundType(),
    default="latest",
    show_default=True,
    help="The end, which is not read: an instant, offsets as JSON, or latest.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be read.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], source: str, begin: "Bound", end: "Bound", dry_run: bool, format: str) -> None:  # noqa: PLR0917
    """Bring older messages of the Kafka source SOURCE to bronze: those before its first read, or in a range that it skipped.

    No message comes twice: what bronze has already is left out, and so is what the source itself reads at the next run. After a
    kill, start it again. It writes the lake, so stop `tidemark run` first (not needed for --dry-run). The next run brings the
    events through silver, where most are late, and folds them into gold.

    \b
    from, to        the requested offsets; `to` is not read
    to_read         ranges of offsets that this backfill reads
    in_bronze       ranges that bronze already has
    left_to_source  ranges that the source reads at the next run
    gone            ranges that the brokers no longer have

    \b
    Examples:
      tidemark backfill fleet --from 2026-01-05T00:00:00Z --to 2026-01-06T00:00:00Z
      tidemark backfill fleet --from '{"readings": {"0": 1200}}' --to '{"readings": {"0": 1300}}'
    """
    from orchestration.conf.load import load
    from orchestration.jobs.backfill import COLUMNS, carry_out, kafka_source, plan, summary
    from orchestration.storage.lease import sole_writer
    from orchestration.storage.tables import LakeStore

    lake = LakeStore(load(obj["conf"]))
    chosen = kafka_source(lake, source)
    if dry_run:
        show(summary(plan(lake, chosen, begin, end)), format, COLUMNS)
        return
    with sole_writer(lake.conf.lake):
        parts, events = plan(lake, chosen, begin, end), 0
        show(summary(parts), format, COLUMNS)
        for handed in carry_out(lake, chosen, parts):
            events += handed.rows[source]
            click.echo(f"tidemark: bronze batch {handed.bronze_batch} has {counted(handed.rows[source], 'event')}", err=True)
        for notice in chosen.notices():
            click.echo(f"tidemark: {notice.what}: {', '.join(f'{name} {fact}' for name, fact in notice.facts.items())}", err=True)
    click.echo(f"tidemark: {counted(events, 'event')} of {source} came to bronze; `tidemark run` brings them on", err=True)
