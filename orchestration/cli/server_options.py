"""What both servers can be told on the command line, and what they say there."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.rendering import visible

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.serving.bi.server import Asked

MEGABYTE = 1 << 20
WITHOUT_A_FENCE = (
    "WITHOUT A FENCE: whoever is let in can run any command as you, read and write every file that you can, and reach every network that "
    "this machine can."
)
WITHOUT_A_PASSWORD = (
    "AND WITHOUT A PASSWORD for other users of this machine: they can find the server behind the port, which asks for none."
)
IN_CLEAR = "Rows and passwords pass unencrypted between {host} and the clients: see that something on the way encrypts them."


def _heap(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[1-9][0-9]{0,5}[mgMG]", value):
        raise click.BadParameter("digits and m or g, such as 4g")
    return value


OPTIONS = (
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve on."),
    click.option(
        "--token-file", type=click.Path(path_type=Path, dir_okay=False), help="Where the token is kept; made where there is none."
    ),
    click.option("--snapshot", type=int, help="Serve this snapshot, and no newer one."),
    click.option("--newest", is_flag=True, help="Serve the newest snapshot, also where no marts were built of it."),
    click.option("--memory", callback=_heap, metavar="SIZE", help="The heap, such as 4g; default: engine.driver_memory of pipeline.yml."),
    click.option(
        "--scratch", type=click.IntRange(64), default=1024, show_default=True, help="Megabytes of memory for what the heap cannot hold."
    ),
    click.option(
        "--seconds", type=click.IntRange(0), default=300, show_default=True, help="The longest that a query may take; 0: no limit."
    ),
    click.option("--without-a-fence", is_flag=True, help="Give clients the powers that you have on this machine."),
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those that both have."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def serve_as_told(obj: dict[str, Any], service: str, told: dict[str, Any], ways_in: str) -> None:
    """Serve until Ctrl-C or SIGTERM. `ways_in`: how a client comes in, with {port} and {file} in it."""
    from orchestration.conf.load import load
    from orchestration.serving.bi.secret import usual_file
    from orchestration.serving.bi.server import serve

    if told["snapshot"] is not None and told["newest"]:
        raise click.UsageError("give --snapshot or --newest, not both")
    conf = load(obj["conf"])
    file = told["token_file"] or usual_file(conf.lake)
    asked = _asked(conf, service, told, file)
    for line in _warnings(asked):
        _say(line)
    _say(f"starting, which takes some 15 s; {ways_in.format(port=asked.port, file=file)}")
    serve(conf, asked, _say, (lambda line: _say(f"| {line}")) if obj["debug"] else (lambda line: None))


def _warnings(asked: "Asked") -> Iterator[str]:
    if not asked.is_fenced:
        yield WITHOUT_A_FENCE
        if asked.service == "thrift":
            yield WITHOUT_A_PASSWORD
    if asked.host not in ("localhost", "127.0.0.1", "::1"):
        yield IN_CLEAR.format(host=asked.host)


def _asked(conf: "Conf", service: str, told: dict[str, Any], file: Path) -> "Asked":
    from orchestration.serving.bi.messages import Service
    from orchestration.serving.bi.secret import secret_in
    from orchestration.serving.bi.server import Asked
    from orchestration.serving.bi.snapshots import Choice

    return Asked(
        Service(service),
        told["host"],
        told["port"],
        secret_in(file),
        Choice(told["snapshot"], told["newest"]),
        told["memory"] or conf.engine.driver_memory,
        told["scratch"] * MEGABYTE,
        told["seconds"],
        is_fenced=not told["without_a_fence"],
    )


def _say(line: str) -> None:
    click.echo(visible(line), err=True)
