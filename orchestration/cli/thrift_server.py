"""`tidemark thrift-server`: the lake for BI tools."""

from typing import Any

import click

from orchestration.cli.server_options import run_server, server_options


@click.command(epilog="Example: tidemark thrift-server --port 10000 --memory 4g")
@click.option("--port", type=click.IntRange(1, 65535), default=10000, show_default=True, help="The port to listen on.")
@server_options
@click.pass_obj
def command(obj: dict[str, Any], /, **options: Any) -> None:
    """Serve JDBC and ODBC clients, such as DBeaver, Superset and Power BI, with Spark's Thrift server. Ctrl-C and SIGTERM end it.

    A client sees the snapshot that is the newest when it connects, the same for all tables, for as long as it is connected:
    `select * from ops.this_snapshot` shows its id. If marts were built, it is the newest snapshot that they were built of.

    Spark's SQL can do whatever its process can. So the process runs in a sandbox of the operating system (bubblewrap): it reads the lake
    and nothing else of this machine, writes to a scratch folder in memory, and reaches no network.
    """
    run_server(obj, "thrift", options, "jdbc:hive2://localhost:{port}/gold takes any user, and as password the token in {file}")
