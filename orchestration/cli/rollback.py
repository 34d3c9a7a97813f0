"""`tidemark rollback`: switch back to an earlier generation."""

from typing import Any

import click


@click.command()
@click.option("--to", "number", type=int, metavar="N", help="This generation.  [default: the one that was active before]")
@click.pass_obj
def command(obj: dict[str, Any], number: int | None) -> None:
    """Switch back to an earlier generation, as it was; `tidemark run` then brings it up to date.

    A running `tidemark run` takes it up at its next step. The generation that was active is kept: roll back to it as well, if you like.

    \b
    Example:
      tidemark rollback --to 1
    """
    from orchestration.conf.load import load
    from orchestration.supervisor.rollback import roll_back

    generation = roll_back(load(obj["conf"]).lake, number)
    click.echo(f"generation {generation.generation} is active", err=True)
