"""`tidemark down`: end what `tidemark up` runs."""

import os
import signal
import time
from typing import Any

import click

POLL_SECONDS = 0.1


@click.command(epilog="Example: tidemark down")
@click.pass_obj
def command(obj: dict[str, Any]) -> int:
    """End `tidemark up` and all that it runs, each part after the batch that it is in; returns when nothing is left.

    Exit code 1 where no `up` runs this lake.
    """
    from orchestration.conf.load import load
    from orchestration.conf.place import place_of
    from orchestration.storage.lease import is_held
    from orchestration.supervisor.service_state import folder_of, read_service

    lake = (place_of(obj["conf"]) or load(obj["conf"])).lake  # also of a conf that has mistakes by now
    service = read_service(lake)
    if service is None or not is_held(folder_of(lake)):
        click.echo(f"no `tidemark up` runs the lake at {lake}", err=True)
        return 1
    os.kill(service.pid, signal.SIGTERM)
    while is_held(folder_of(lake)):
        time.sleep(POLL_SECONDS)
    return 0
