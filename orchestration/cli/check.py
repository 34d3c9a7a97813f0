"""`tidemark check`: every mistake of a conf at once, and what it changes in the lake; in well under a second, without Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.audit.conf_tests.files import read_tests
from orchestration.cli.test import run_tests
from orchestration.conf.load import read_conf, summary
from orchestration.errors import ConfError, TidemarkError
from orchestration.quality.suites import suites_of_conf
from orchestration.rendering import visible

if TYPE_CHECKING:
    from orchestration.conf.model import Conf


@click.command()
@click.option("--tests", is_flag=True, help="Run the tests of the conf too, as `tidemark test` does.")
@click.pass_obj
def command(obj: dict[str, Any], tests: bool) -> int:
    """List every mistake of the conf folder, one line each: file, line, setting, value, way out.

    Without mistakes, and where the lake runs another conf, it then lists what differs, and when it holds: from now on; for all after
    `tidemark replay`; not without a new lake.

    Exit code 0: the conf can be used, perhaps with warnings; 1: the lake cannot go on with it: it would run with the conf before; or a test
    did not pass; 2: it holds mistakes. Neither Spark nor Java is started.

    \b
    Example:
      tidemark --conf plant/conf check
    """
    folder: Path = obj["conf"]
    try:
        conf = read_conf(folder)
        suites_of_conf(conf, folder)  # raises ConfError for mistakes in conf/expectations
    except ConfError as error:
        click.echo(str(error))
        return error.exit_code
    for line in (*conf.warnings, f"{folder}: {summary(conf)}"):
        click.echo(line)
    try:
        for line in _against_the_lake(conf, folder):
            click.echo(visible(line))
    except ConfError as error:
        click.echo("\n".join(map(visible, str(error).splitlines())))
        return 1
    except TidemarkError as error:  # a damaged lake is no mistake of the conf
        click.echo(visible(str(error)), err=True)
    return run_tests(conf, read_tests(folder)) if tests else 0


def _against_the_lake(conf: "Conf", folder: Path) -> Iterator[str]:
    """Yield what the conf changes; ConfError behind that, where the lake cannot go on with it."""
    if not conf.lake.is_dir():
        return
    from orchestration.conf.changes import grouped
    from orchestration.storage.confs import held_back, pending_changes, refusal, running
    from orchestration.storage.tables import LakeStore

    yield from _of_sinks(conf)
    lake = LakeStore(conf)
    if (changed := pending_changes(lake)) and (kept := running(lake)):
        yield f"the lake runs another conf since {kept.at:%Y-%m-%d %H:%M:%S} UTC, bronze batch {kept.since_batch}; what differs"
        yield from grouped(changed, folder)
    if held := held_back(lake):
        raise refusal(lake, folder, held)


def _of_sinks(conf: "Conf") -> Iterator[str]:
    """Yield what a sink cannot do with a new column; ConfError for a mart, as it was built last, with one that its sink cannot hold."""
    if not conf.sinks:
        return
    from orchestration.connectors.sinks.all import sinks
    from orchestration.connectors.sinks.sink_states import read_state
    from orchestration.jobs.sinks import newest_table, old_rows_lack

    for name, sink in sinks(conf).items():
        if (pinned := newest_table(conf, name)) is None:
            continue
        if not pinned.key:
            try:
                sink.check(conf.sinks[name].table, pinned.schema)
            except TidemarkError as error:
                raise ConfError(f"sink {name}: {error}") from None
        sent = read_state(conf, name).sent
        if lacking := old_rows_lack(sink, pinned, sent, is_complete=pinned.is_replaced_since(sent)):
            yield f"sink {name}: {lacking}"
