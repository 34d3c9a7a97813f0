"""Options and start-up messages that `tidemark thrift-server` and `tidemark connect-server` have in common."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import FILE
from orchestration.rendering import visible

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.serving.bi.server import ServerConfig

MEGABYTE = 1 << 20
WITHOUT_A_SANDBOX = (
    "WITHOUT A SANDBOX: every client can run any command as you, read and write every file that you can, and reach every network that "
    "this machine can."
)
WITHOUT_A_PASSWORD = (
    "AND WITHOUT A PASSWORD for other users of this machine: they can connect to the inner server, which asks for no password."
)
UNENCRYPTED = "Rows and passwords pass unencrypted between {host} and the clients: put a proxy or tunnel that encrypts between them."


def _heap(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[1-9][0-9]{0,5}[mgMG]", value):
        raise click.BadParameter("digits and m or g, such as 4g")
    return value


OPTIONS = (
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option("--token-file", type=FILE, help="The file of the token; created if it does not exist."),
    click.option("--snapshot", type=int, help="Serve this snapshot, and no newer one."),
    click.option("--newest", is_flag=True, help="Serve the newest snapshot, even if no marts were built of it."),
    click.option("--memory", callback=_heap, metavar="SIZE", help="Heap size, such as 4g; default: that of `tidemark run`."),
    click.option(
        "--scratch", type=click.IntRange(64), default=1024, show_default=True, help="Megabytes of memory for temporary files of Spark."
    ),
    click.option(
        "--seconds", type=click.IntRange(0), default=300, show_default=True, help="The longest that a query may run; 0: no limit."
    ),
    click.option("--without-sandbox", is_flag=True, help="Run without the sandbox: clients can do whatever you can on this machine."),
)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def run_server(obj: dict[str, Any], service: str, options: dict[str, Any], connection: str) -> None:
    """Serve until Ctrl-C or SIGTERM. `connection`: how a client connects, with the placeholders {port} and {file}."""
    from orchestration.conf.load import load
    from orchestration.serving.bi.password import default_token_file
    from orchestration.serving.bi.server import serve

    if options["snapshot"] is not None and options["newest"]:
        raise click.UsageError("give --snapshot or --newest, not both")
    conf = load(obj["conf"])
    file = options["token_file"] or default_token_file(conf.lake)
    config = _config(conf, service, options, file)
    for line in _warnings(config):
        _echo(line)
    _echo(f"starting, which takes about 15 s; {connection.format(port=config.port, file=file)}")
    serve(conf, config, _echo, (lambda line: _echo(f"| {line}")) if obj["debug"] else (lambda line: None))


def _warnings(config: "ServerConfig") -> Iterator[str]:
    if not config.is_sandboxed:
        yield WITHOUT_A_SANDBOX
        if config.service == "thrift":
            yield WITHOUT_A_PASSWORD
    if config.host not in ("localhost", "127.0.0.1", "::1"):
        yield UNENCRYPTED.format(host=config.host)


def _config(conf: "Conf", service: str, options: dict[str, Any], file: Path) -> "ServerConfig":
    from orchestration.engine.java import heap_of
    from orchestration.serving.bi.messages import Service
    from orchestration.serving.bi.password import load_token
    from orchestration.serving.bi.server import ServerConfig
    from orchestration.serving.bi.snapshots import SnapshotChoice

    return ServerConfig(
        Service(service),
        options["host"],
        options["port"],
        load_token(file),
        SnapshotChoice(options["snapshot"], options["newest"]),
        options["memory"] or heap_of(conf.engine.driver_memory),
        options["scratch"] * MEGABYTE,
        options["seconds"],
        is_sandboxed=not options["without_sandbox"],
    )


def _echo(line: str) -> None:
    click.echo(visible(line), err=True)
