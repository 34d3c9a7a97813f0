"""`tidemark train`: a model of anomalies from the history of a group."""

from typing import Any

import click

from expectations.wording import counted


@click.command()
@click.argument("group")
@click.option("--snapshot", type=int, metavar="ID", help="Train on this snapshot.  [default: the newest]")
@click.option("--promote", is_flag=True, help="Put the model in force.")
@click.option("--shadow", is_flag=True, help="Judge by it beside the model in force, as shadow_score.")
@click.pass_obj
def command(obj: dict[str, Any], group: str, *, snapshot: int | None, promote: bool, shadow: bool) -> int:
    """Train a model of anomalies on the vectors of GROUP, which has `anomalies` in groups.yml.

    Without an option the model judges nothing yet. With --promote, a running `tidemark run` judges by it from the next windows on that
    close; what is judged already stays as it is. Entities with fewer than 100 vectors are left out: their vectors have no score.

    \b
    Examples:
      tidemark train kitchen
      tidemark train kitchen --promote
      tidemark train kitchen --shadow
    """
    from orchestration.conf.load import load
    from orchestration.jobs.gold.training import train_on_snapshot
    from orchestration.storage.models import MAIN, SHADOW, ask_for

    conf = load(obj["conf"])
    trained = train_on_snapshot(conf, group, snapshot)
    if trained is None:
        click.echo(f"no entity of {group} has 100 vectors with half of its features: nothing is trained", err=True)
        return 1
    seen = f"{counted(trained.vectors, 'vector')} of {counted(trained.entities, 'entity')}"
    click.echo(f"{trained.model_id}: {trained.detector}, of {seen}, threshold {trained.threshold:.1f}", err=True)
    for is_wanted, role in ((promote, MAIN), (shadow, SHADOW)):
        if is_wanted:
            ask_for(conf, trained.model_id, role)
    if not promote:
        click.echo(f"next: tidemark models promote {trained.model_id}", err=True)
    return 0
