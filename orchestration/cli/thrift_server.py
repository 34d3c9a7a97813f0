"""`tidemark thrift-server`: the lake for BI tools."""

from typing import Any

import click

from orchestration.cli.server_options import options, serve_as_told


@click.command(epilog="Example: tidemark thrift-server --port 10000 --memory 4g")
@click.option("--port", type=click.IntRange(1, 65535), default=10000, show_default=True, help="The port to serve on.")
@options
@click.pass_obj
def command(obj: dict[str, Any], /, **told: Any) -> None:
    """Serve JDBC and ODBC clients, such as DBeaver, Superset and Power BI, by Spark's Thrift server. Ctrl-C and SIGTERM end it.

    A client sees the snapshot that is the newest when it connects, all tables at one cut, for as long as it is connected:
    `select * from ops.this_snapshot` names it. Where marts were built, it is the newest that they were built of.

    Spark's SQL can do whatever its process can. So the process runs behind a fence of the operating system (bubblewrap): it reads the lake
    and nothing else of this machine, writes to a scratch folder in memory, and reaches no network.
    """
    serve_as_told(obj, "thrift", told, "jdbc:hive2://localhost:{port}/gold takes any user, and as password what {file} holds")
