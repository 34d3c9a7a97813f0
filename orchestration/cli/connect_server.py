"""`tidemark connect-server`: the lake for notebooks."""

from typing import Any

import click

from orchestration.cli.server_options import run_server, server_options


@click.command(epilog="Example: tidemark connect-server --port 15002 --memory 4g")
@click.option("--port", type=click.IntRange(1, 65535), default=15002, show_default=True, help="The port to listen on.")
@server_options
@click.pass_obj
def command(obj: dict[str, Any], /, **options: Any) -> None:
    """Serve notebooks and programs with Spark Connect: DataFrames, SQL and Python functions. Ctrl-C and SIGTERM end it.

    A session sees the snapshot that is the newest when it begins, the same for all tables, for as long as it lives:
    `select * from ops.this_snapshot` shows its id. If marts were built, it is the newest snapshot that they were built of.

    Whoever has the token can run programs in the server. So it runs in a sandbox of the operating system (bubblewrap): it reads the lake
    and nothing else of this machine, writes to a scratch folder in memory, and reaches no network.
    """
    run_server(obj, "connect", options, "sc://localhost:{port}/;token=... takes the token in {file}")
