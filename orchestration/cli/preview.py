"""`tidemark preview`: how events would be read, before any run."""

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import PATH
from orchestration.rendering import format_option, short, show, visible

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.jobs.preview import Preview

READINGS = ("event", "device_id", "metric", "event_time", "value", "unit", "zone", "groups")
MOST_ROWS = 30
"""The most quarantined rows, and windows, to show."""


@click.command()
@click.argument("file", metavar="[FILE]", type=PATH, required=False)
@click.option("--source", metavar="NAME", help="The source to read; with FILE: read the file with the settings of this source.")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="How long to listen to MQTT.")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Readings in the table.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], file: Path | None, source: str | None, seconds: float, limit: int, format: str) -> int:  # noqa: PLR0917
    """Show how the first 1,000 events of a file, or of each source that conf declares, would be read. Without Spark; nothing is written.

    Tables: readings; what would be quarantined, by rule, with an example and its reason; windows by group and metric. Then fields of the
    events that conf does not name. --format csv or json prints all measurements on stdout, and the rest on stderr.
    Exit code 1: there would be no reading.

    \b
    Examples:
      tidemark preview landing/oven-01.csv
      tidemark preview --source plant --format json
    """
    from orchestration.conf.load import load
    from orchestration.jobs.preview import COLUMNS, sources_to_read

    conf = load(obj["conf"])
    seen = {name: one for name in sources_to_read(conf, source, file) if (one := _previewed(conf, name, file, seconds))}
    if format != "table":
        show([{"source": name} | row for name, one in seen.items() for row in one.measurements], format, ("source", *COLUMNS))
    with redirect_stdout(sys.stdout if format == "table" else sys.stderr):
        for name, one in seen.items():
            sys.stdout.write(f"source {name}\n" if seen.keys() - {name} else "")
            _show(one, limit if format == "table" else 0)
    return 0 if any(row["becomes"] == "reading" for one in seen.values() for row in one.measurements) else 1


def _previewed(conf: "Conf", name: str, file: Path | None, seconds: float) -> "Preview | None":
    """Read a file, or a source; None for one of several sources that cannot be read, which is told."""
    from orchestration.connectors.sampling import sample, sample_of_file
    from orchestration.connectors.sources.source import SourceDownError
    from orchestration.jobs.preview import preview

    try:
        notify = partial(click.echo, err=True)
        events = sample_of_file(conf.sources[name], file, notify) if file else sample(conf, name, seconds, notify)
        return preview(conf, name, events)
    except SourceDownError as error:
        if len(conf.sources) == 1:
            raise
        click.echo(visible(str(error)), err=True)
    return None


def _show(seen: "Preview", limit: int) -> None:
    readings = [{column: row[column] for column in READINGS} for row in seen.measurements if row["becomes"] == "reading"]
    broken = [row | {"payload": short(row["payload"])} for row in seen.broken]
    for rows in filter(None, (readings[:limit], broken[:MOST_ROWS], seen.windows[:MOST_ROWS])):
        show(rows, "table")
    sys.stdout.write("".join(f"{visible(sentence)}\n" for sentence in seen.sentences()))
