"""`tidemark plot`: draw a group's vectors."""

from pathlib import Path
from typing import Any

import click

from orchestration.cli.option_types import FILE


@click.command()
@click.argument("group")
@click.option(
    "--entity", "entities", multiple=True, metavar="NAME", help="Only this entity; may be repeated.  [default: the first 12 by name]"
)
@click.option("--anomalies", is_flag=True, help="Up to three entities, the newest anomalies first: what was expected, and each reason.")
@click.option("--output", type=FILE, help="The PNG to write.  [default: artifacts/GROUP.png, of anomalies artifacts/anomalies.png]")
@click.pass_obj
def command(obj: dict[str, Any], group: str, entities: tuple[str, ...], anomalies: bool, output: Path | None) -> None:
    """Draw the vectors of GROUP over time into a PNG: a panel for each feature, a line for each entity.

    \b
    Examples:
      tidemark plot kitchen --entity oven-01 --entity oven-02 --output ovens.png
      tidemark plot kitchen --anomalies
    """
    from orchestration.conf.load import load

    conf = load(obj["conf"])
    if group not in conf.groups:
        raise click.UsageError(f"there is no group {group!r}; the groups are {', '.join(conf.groups)}")

    if anomalies:
        from orchestration.serving.plots.anomalies import plot
    else:
        from orchestration.serving.plots.vectors import plot

    name = "anomalies" if anomalies else group
    click.echo(plot(conf, conf.groups[group], entities, output or Path("artifacts") / f"{name}.png"))
