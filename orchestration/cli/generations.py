"""`tidemark generations`: which there are, and which one serves."""

from typing import Any

import click

from orchestration.rendering import format_option, show

COLUMNS = ("generation", "is_serving", "swapped_at", "cause", "bronze_batch", "tables")


@click.command()
@format_option
@click.pass_obj
def command(obj: dict[str, Any], format: str) -> None:
    """List every generation that ever came to serve, in that order; one that served again after a rollback is there twice.

    \b
    cause         what brought it
    bronze_batch  the newest that its batch jobs read; its streams read the rest
    tables        how many of the tables are its own; the others stayed where they were

    \b
    Example:
      tidemark generations --format json
    """
    from orchestration.conf.load import load
    from orchestration.storage.generations import requested_switch, switches

    lake = load(obj["conf"]).lake
    known = switches(lake)
    rows = [
        {
            "generation": each.generation,
            "is_serving": each.swap == known[-1].swap,
            "swapped_at": each.at,
            "cause": each.cause,
            "bronze_batch": each.bronze_batch,
            "tables": sum(holder == each.generation for place, holder in each.places.items() if not place.startswith("checkpoints/")),
        }
        for each in known
    ]
    show(rows, format, COLUMNS)
    if waiting := requested_switch(lake):
        click.echo(f"generation {waiting.generation} ({waiting.cause}) serves from the next step of `tidemark run` on", err=True)
