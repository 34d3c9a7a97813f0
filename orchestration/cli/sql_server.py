"""`tidemark sql-server`: the lake for every client of PostgreSQL."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from orchestration.cli.option_types import FILE, PATH


@click.command(epilog='Example: tidemark sql-server & psql "$(tidemark sql-server --url)"')
@click.option("--host", help="The address to listen on. Default: that of conf, or 127.0.0.1; others need a certificate.")
@click.option("--port", type=click.IntRange(0, 65535), help="0: any free port. Default: that of conf, or 5433.")
@click.option(
    "--users", type=PATH, help="A file of NAME:PASSWORD lines, passwords of 16 characters or more. Default: you, with a random one."
)
@click.option("--cert", type=FILE, help="The certificate for TLS, in PEM.")
@click.option("--key", type=FILE, help="The key of the certificate.")
@click.option("--url", is_flag=True, help="Print the address with your password, and end. No log has the password.")
@click.pass_obj
def command(
    obj: dict[str, Any], *, host: str | None, port: int | None, users: Path | None, cert: Path | None, key: Path | None, url: bool
) -> None:
    """Serve the lake by PostgreSQL's protocol: Grafana, Power BI, Superset, DBeaver, psql, pandas connect with the driver they have.

    Queries are in DuckDB's SQL and only read. Each is over the newest snapshot, a transaction over one; `set tidemark.snapshot = 17`
    chooses an earlier one. `tidemark up` runs it too, if pipeline.yml has `sql_server`. `tidemark sql --server` asks it.
    """
    from orchestration.conf.load import load
    from orchestration.conf.pipeline_settings import SqlServerSettings
    from orchestration.serving.postgres.address import address_of

    conf = load(obj["conf"])
    changes: dict[str, Any] = {"host": host, "port": port, "users": users, "certificate": cert, "key": key}
    settings = replace(conf.sql_server or SqlServerSettings(), **{name: value for name, value in changes.items() if value is not None})
    for problem in settings.problems():
        raise click.UsageError(f"{'.'.join(['sql_server', *map(str, problem.path)])} {problem.text}")
    if url:
        click.echo(address_of(conf, settings))
        return
    from orchestration.serving.postgres.server import serve

    serve(conf, settings, lambda line: click.echo(f"tidemark: {line}", err=True))
