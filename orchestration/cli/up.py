"""`tidemark up`: run everything that conf asks for, and keep it running."""

import socket
import subprocess
import sys
import time
from typing import Any

import click

from orchestration.errors import BROKE
from orchestration.rendering import visible

POLL_SECONDS, PAGE_SECONDS = 0.1, 20.0


@click.command(epilog="Example: tidemark up --detach && tidemark logs --follow")
@click.argument("parts", metavar="[PART]...", nargs=-1)
@click.option("--detach", is_flag=True, help="Return once it runs; `tidemark down` ends it.")
@click.pass_obj
def command(obj: dict[str, Any], parts: tuple[str, ...], detach: bool) -> None:
    """Run everything that conf asks for, or some PARTs of it, until Ctrl-C, SIGTERM or `tidemark down`.

    \b
    streams     bronze, silver, gold and sinks, as `tidemark run` does
    collector   sources that are pushed or collected, as `tidemark collect` does
    alerts      fast alerts, as `tidemark alerts watch` does; if an alert has `fast: true`
    problems    messages about what is wrong; if a channel has `problems: true`
    page        the live page, as `tidemark serve` does
    sql-server  SQL for clients of PostgreSQL, as `tidemark sql-server` does; if pipeline.yml has `sql_server`

    A part that fails for a temporary reason is started again after 1 s, then 2 s, at most once a minute. A part that fails for a lasting
    reason, such as a damaged checkpoint, stays stopped until the conf changes; `tidemark status` says why. Streams that report nothing for
    three minutes are restarted. A changed conf without mistakes is used within seconds.

    The journal is `up/journal.log` in the lake; `tidemark logs` shows it.
    """
    if detach:
        _detach(obj, parts)
        return
    from orchestration.service.up import Service

    Service(obj["conf"], lambda line: click.echo(visible(f"tidemark: {line}"), err=True), parts).run()


def _detach(obj: dict[str, Any], parts: tuple[str, ...]) -> None:
    """Start `up` in a session of its own, and wait until it has noted its parts."""
    from orchestration.conf.load import load
    from orchestration.service.child import command_line
    from orchestration.service.parts import PAGE
    from orchestration.supervisor.service_state import folder_of, read_service

    conf = load(obj["conf"])
    lake = conf.lake
    folder_of(lake).local.mkdir(parents=True, exist_ok=True)
    output = folder_of(lake).local / "output.log"
    with output.open("w") as stream:
        command = command_line(obj["conf"], "up", *parts)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
    while (service := read_service(lake)) is None or service.pid != process.pid:
        if (code := process.poll()) is not None:
            click.echo(output.read_text(), err=True, nl=False)
            sys.exit(code or BROKE)
        time.sleep(POLL_SECONDS)
    if PAGE in [part.name for part in service.parts]:
        address = conf.page.host, conf.page.port
        end = time.monotonic() + PAGE_SECONDS
        while address[1] and not _answers(address) and time.monotonic() < end and process.poll() is None:
            time.sleep(POLL_SECONDS)
        token = "; `tidemark serve --link` prints its address with the token" if conf.page.token else ""
        click.echo(f"the live page is at http://{address[0]}:{address[1] or 'PORT, as `tidemark logs page` tells'}/{token}", err=True)
    click.echo(f"tidemark up runs as process {process.pid}: {', '.join(part.name for part in service.parts)}", err=True)


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, POLL_SECONDS).close()
    except OSError:
        return False
    return True
