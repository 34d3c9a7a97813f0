"""`tidemark dbt`: build, test and document the marts."""

from typing import Any

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    no_args_is_help=True,
)
@click.option("--drop", "dropped", multiple=True, metavar="NAME", help="Delete this mart first, with all that it holds; may be repeated.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(obj: dict[str, Any], dropped: tuple[str, ...], arguments: tuple[str, ...]) -> int:
    """Run a command of dbt on the newest snapshot of the lake: build, test, docs generate, source freshness, show, ls and so on.

    All arguments go to dbt unchanged; `tidemark dbt build --help` is dbt's help. The project is Tidemark's own, or the one that
    dbt.project in pipeline.yml names. With your own project, a command runs your nodes and the nodes of Tidemark that they need, unless you
    select nodes or give --all. It is safe to run while a pipeline runs.

    \b
    When a build of all models ends without an error, its marts and the snapshot are recorded together in ops.marts, and `tidemark sql`
    joins marts and gold at that snapshot. Until then readers see the earlier marts.
    A mart that was built before and is gone or damaged is never replaced in silence: restore it, or delete it with --drop.
    Exit codes: 0 done; 1 models or tests failed; 2 wrong usage, conf or project; 3 another `tidemark dbt` runs; 4 it broke.

    \b
    Examples:
      tidemark dbt build
      tidemark dbt build --all
      tidemark dbt test --select hourly
      tidemark dbt --drop device_history build
    """
    from orchestration.engine.lake import Lake
    from orchestration.serving.dbt.build import run

    return run(Lake.open(obj["conf"]), arguments, dropped, lambda line: click.echo(line, err=True))
