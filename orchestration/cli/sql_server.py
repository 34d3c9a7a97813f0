"""`tidemark sql-server`: answer queries over HTTP."""

import getpass
import re
import secrets
from pathlib import Path
from typing import Any

import click

from orchestration.cli.option_types import PATH, text_of

USER = re.compile(r"^([A-Za-z0-9_.-]+):(\S{16,})$")


@click.command(epilog="Example: tidemark sql-server --port 8642 --users users.txt")
@click.option("--port", type=click.IntRange(0, 65535), help="On 127.0.0.1; 0: any free port. Default: that of conf, or 8642.")
@click.option("--users", type=PATH, help="A file of NAME:TOKEN lines, tokens of 16 characters or more. Default: you, with a new token.")
@click.pass_obj
def command(obj: dict[str, Any], port: int | None, users: Path | None) -> None:
    """Answer queries over HTTP on this machine, in DuckDB's SQL; `tidemark sql --engine server` asks it.

    \b
    POST /sql {"query": "select ..."}       rows as JSON, CSV, Parquet or an Arrow stream, by the Accept header
    DELETE /sql/NAME                        cancel a query; its name is in the request, or in the headers of the answer
    Authorization: Bearer TOKEN             with each of them

    Queries only read. Each is over one snapshot, by default the newest, also while a pipeline runs. Users take turns.
    """
    from orchestration.conf.load import load
    from orchestration.conf.pipeline_settings import SqlServerSettings
    from orchestration.serving.sql.server import serve

    conf = load(obj["conf"])
    settings = conf.sql_server or SqlServerSettings()
    users = users or settings.users
    by_token = {secrets.token_urlsafe(32): getpass.getuser()} | (_users(users) if users else {})
    serve(conf.place, settings.port if port is None else port, by_token, lambda line: click.echo(line, err=True))


def _users(file: Path) -> dict[str, str]:
    text = text_of(file)
    if file.stat().st_mode & 0o077:
        raise click.UsageError(f"other users can read {file}: chmod 600 {file}")
    by_token: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            user = USER.match(line.strip())
            if user is None or user[2] in by_token:
                raise click.UsageError(f"{file}:{number} is not NAME:TOKEN with a unique token of 16 characters or more")
            by_token[user[2]] = user[1]
    return by_token
