"""`tidemark lake`: a lake as a whole."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.location import Location


@click.group()
def command() -> None:
    """Copy a lake to another place.

    \b
    Example:
      tidemark lake copy lake s3://bucket/lake
    """


@command.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_obj
def copy(obj: dict[str, Any], source: str, target: str) -> None:
    """Copy a lake as a whole, between folders and object stores, and compare the copy with it.

    FROM and TO are as `lake` in pipeline.yml: a folder, or s3://BUCKET/PREFIX in the store that `store` names there. TO is empty, or has a
    part of this copy, which was cut: then it goes on. Nobody may write FROM meanwhile: end `up`, `run` and `collect` first. A lake in a
    store keeps claims and spools on the host that runs it: copy it there.

    \b
    Example:
      tidemark lake copy lake s3://bucket/lake
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from orchestration.conf.load import load
    from orchestration.connectors.sources.landing_hosts import remember_host
    from orchestration.storage.lake_copy import copy_lake

    conf = load(obj["conf"])
    from_lake, to_lake = _lake(conf, source, "FROM"), _lake(conf, target, "TO")
    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("copy", total=None)
        copied = copy_lake(from_lake, to_lake, progress=lambda done, total: progress.update(task, completed=done, total=total))
    remember_host(to_lake)
    there = f"; {copied.files - copied.copied_files:,} were there" if copied.copied_files < copied.files else ""
    click.echo(
        f"{copied.files:,} files ({copied.bytes / 1e6:,.1f} MB{there}): the {copied.tables} tables at {to_lake} have the versions"
        f" and the {copied.rows:,} rows of those at {from_lake}\n"
        f"To use it, write `lake: {to_lake}` in {obj['conf']}/pipeline.yml; to prove it, then run `tidemark verify --everything`."
    )


def _lake(conf: "Conf", address: str, name: str) -> "Location":
    from orchestration.conf.place import lake_in, lake_path

    try:
        return lake_in(lake_path(conf.folder, address), conf.store)
    except ValueError as error:
        raise click.BadParameter(f"'{address}' {error}", param_hint=name) from error
