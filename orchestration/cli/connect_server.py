"""`tidemark connect-server`: the lake for notebooks."""

from typing import Any

import click

from orchestration.cli.server_options import options, serve_as_told


@click.command(epilog="Example: tidemark connect-server --port 15002 --memory 4g")
@click.option("--port", type=click.IntRange(1, 65535), default=15002, show_default=True, help="The port to serve on.")
@options
@click.pass_obj
def command(obj: dict[str, Any], /, **told: Any) -> None:
    """Serve notebooks and programs by Spark Connect: DataFrames, SQL and Python functions. Ctrl-C and SIGTERM end it.

    A session sees the snapshot that is the newest when it begins, all tables at one cut, for as long as it lives:
    `select * from ops.this_snapshot` names it. Where marts were built, it is the newest that they were built of.

    Whoever has the token can run programs in the server. So it runs behind a fence of the operating system (bubblewrap): it reads the lake
    and nothing else of this machine, writes to a scratch folder in memory, and reaches no network.
    """
    serve_as_told(obj, "connect", told, "sc://localhost:{port}/;token=... takes the token that {file} holds")
