"""`tidemark sql-server`: keep Spark warm for queries."""

import getpass
import re
import secrets
from pathlib import Path
from typing import Any

import click

from orchestration.cli.sql import read

USER = re.compile(r"^([A-Za-z0-9_.-]+):(\S{16,})$")


@click.command(epilog="Example: tidemark sql-server --port 8642 --users users.txt")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="On 127.0.0.1; 0: any that is free.")
@click.option(
    "--users",
    type=click.Path(path_type=Path),
    help="A file of NAME:TOKEN lines, tokens of 16 characters or more. Default: you, with a new token.",
)
@click.pass_obj
def command(obj: dict[str, Any], port: int, users: Path | None) -> None:
    """Answer queries over HTTP on this machine, from a Spark that stays warm; `tidemark sql` uses it where it runs.

    \b
    POST /sql {"query": "select ..."}       rows as JSON, CSV or an Arrow stream, as the Accept header asks
    DELETE /sql/NAME                        end a question; its name is in the request, or in the answer's headers
    Authorization: Bearer TOKEN             with each of them

    Queries only read; each is over one snapshot, by default the newest, also of a running pipeline. Users take turns.
    """
    from orchestration.conf.load import load
    from orchestration.serving.sql.supervisor import serve

    conf = load(obj["conf"])
    known = {secrets.token_urlsafe(32): getpass.getuser()} | (_users(users) if users else {})
    serve(obj["conf"].resolve(), conf.lake, port, known, lambda told: click.echo(told, err=True))


def _users(file: Path) -> dict[str, str]:
    text = read(file)
    if file.stat().st_mode & 0o077:
        raise click.UsageError(f"{file} can be read by others: chmod 600 {file}")
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            user = USER.match(line.strip())
            if user is None or user[2] in found:
                raise click.UsageError(f"{file}:{number} is not NAME:TOKEN with a token of its own, of 16 characters or more")
            found[user[2]] = user[1]
    return found
