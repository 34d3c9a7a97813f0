"""`tidemark check`: every mistake of a conf at once, in well under a second, without Spark."""

from typing import Any

import click

from orchestration.conf.load import load, summary
from orchestration.errors import ConfError
from orchestration.quality.suites import suites_of_conf


@click.command()
@click.pass_obj
def command(obj: dict[str, Any]) -> int:
    """List every mistake of the conf folder, one line each: file, line, setting, value, way out.

    Exit code 0: the conf can be used, perhaps with warnings; 2: it holds mistakes. Neither Spark nor Java is started.

    \b
    Example:
      tidemark --conf plant/conf check
    """
    try:
        conf = load(obj["conf"])
        suites_of_conf(conf, obj["conf"])  # raises ConfError for mistakes in conf/expectations
    except ConfError as error:
        click.echo(str(error))
        return error.exit_code
    for line in (*conf.warnings, f"{obj['conf']}: {summary(conf)}"):
        click.echo(line)
    return 0
