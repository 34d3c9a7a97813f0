"""`tidemark generations`: which there are, and which one is active."""

from typing import Any

import click

from orchestration.rendering import format_option, show

COLUMNS = ("generation", "is_active", "switched_at", "cause", "bronze_batch", "tables")


@click.command()
@format_option
@click.pass_obj
def command(obj: dict[str, Any], format: str) -> None:
    """List every generation that was ever active, in that order; one that a rollback made active again is there twice.

    \b
    cause         the replay or rollback that made it active
    bronze_batch  the last bronze batch that its batch jobs read; its streams read on from there
    tables        number of tables that it built; it shares the others with an earlier generation

    \b
    Example:
      tidemark generations --format json
    """
    from orchestration.conf.load import load
    from orchestration.storage.generations import requested_switch, switches

    lake = load(obj["conf"]).lake
    all_switches = switches(lake)
    rows = [
        {
            "generation": switch.generation,
            "is_active": switch.swap == all_switches[-1].swap,
            "switched_at": switch.at,
            "cause": switch.cause,
            "bronze_batch": switch.bronze_batch,
            "tables": sum(holder == switch.generation for folder, holder in switch.places.items() if not folder.startswith("checkpoints/")),
        }
        for switch in all_switches
    ]
    show(rows, format, COLUMNS)
    if waiting := requested_switch(lake):
        click.echo(f"generation {waiting.generation} ({waiting.cause}) is active from the next step of `tidemark run` on", err=True)
