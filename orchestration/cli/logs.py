"""`tidemark logs`: what the parts of `tidemark up` have said."""

from typing import Any

import click

from orchestration.rendering import visible


@click.command(epilog="Example: tidemark logs silver.readings --follow")
@click.argument("about", metavar="[NAME]", required=False)
@click.option("--follow", is_flag=True, help="Go on with what is said from now on, until Ctrl-C.")
@click.pass_obj
def command(obj: dict[str, Any], about: str | None, follow: bool) -> int:
    """Show the journal of `tidemark up`, all of it or the lines about NAME: a flow, job, source, sink, suite or part.

    A line has the instant in UTC, the part that said it (`up` itself, streams, collector), and what it said.
    """
    from orchestration.conf.load import load
    from orchestration.conf.place import place_of
    from orchestration.service.journal import lines

    lake = (place_of(obj["conf"]) or load(obj["conf"])).lake  # also of a conf that has mistakes by now
    count = 0
    for count, line in enumerate(lines(lake, about, follow=follow), 1):  # noqa: B007
        click.echo(visible(line))
    if not count:
        click.echo(f"the journal of `tidemark up` has no line{f' about {about}' if about else ''}", err=True)
    return int(not count)
