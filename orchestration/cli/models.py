"""`tidemark models`: which there are, and which one is in force."""

from typing import Any

import click

from orchestration.rendering import format_option, show

COLUMNS = ("model_id", "group", "detector", "trained_at", "vectors", "entities", "features", "threshold", "in_force_after", "role")


@click.group(invoke_without_command=True)
@format_option
@click.pass_context
def command(context: click.Context, format: str) -> None:
    """List the models of anomalies; put one in force, or the one before it.

    \b
    in_force_after  vectors whose windows end after it are judged by the model, until another one comes
    role            main, or shadow: judged beside the main one, as shadow_score; asked for: it comes with the next windows that close

    \b
    Examples:
      tidemark models
      tidemark models promote kitchen-2
      tidemark models promote kitchen-2 --shadow
      tidemark models rollback kitchen
    """
    if context.invoked_subcommand is None:
        from orchestration.conf.load import load
        from orchestration.storage.models import listed

        rows = listed(load(context.obj["conf"]).lake)
        show(rows, format, COLUMNS)
        if not rows:
            click.echo(
                "no model yet: a run trains the first one `learning_seconds` after the first vector of a group with `anomalies`", err=True
            )


@command.command()
@click.argument("model")
@click.option("--shadow", is_flag=True, help="Judge by it beside the model in force, as shadow_score.")
@click.pass_obj
def promote(obj: dict[str, Any], model: str, *, shadow: bool) -> None:
    """Put MODEL in force for windows that close from now on; with --shadow beside the model in force, which alone raises alarms.

    \b
    Examples:
      tidemark models promote kitchen-2
      tidemark models promote kitchen-2 --shadow
    """
    from orchestration.conf.load import load
    from orchestration.storage.models import MAIN, SHADOW, ask_for

    ask_for(load(obj["conf"]), model, SHADOW if shadow else MAIN)
    what = "judges beside the model in force, as shadow_score," if shadow else "is in force"
    click.echo(f"{model} {what} with the next windows that close", err=True)


@command.command()
@click.argument("group")
@click.option("--shadow", is_flag=True, help="End the model that is judged beside the one in force.")
@click.pass_obj
def rollback(obj: dict[str, Any], group: str, *, shadow: bool) -> None:
    """Put the model of GROUP in force that was so before the present one; with --shadow end the one beside it.

    \b
    Examples:
      tidemark models rollback kitchen
      tidemark models rollback kitchen --shadow
    """
    from orchestration.conf.load import load
    from orchestration.storage.models import roll_back

    former = roll_back(load(obj["conf"]), group, is_shadow=shadow)
    what = "no model judges beside the one in force" if shadow else f"{former} is in force"
    click.echo(f"{what} with the next windows of {group} that close", err=True)
