"""`tidemark alerts problems`: messages about what is wrong, by a process of its own."""

import threading
from typing import Any

import click

LEAVE_SECONDS = 10.0


@click.command()
@click.pass_obj
def problems(obj: dict[str, Any]) -> None:
    """Send what is wrong, as `tidemark status problems` lists it, to channels with `problems: true`, until Ctrl-C or SIGTERM.

    A part of `tidemark up` where conf has such channels.

    \b
    Example:
      tidemark alerts problems
    """
    from orchestration.conf.load import load
    from orchestration.end_signals import end_by_signals
    from orchestration.engine.progress import Progress
    from orchestration.supervisor.problem_notices import ProblemSender

    stop = threading.Event()
    sender = ProblemSender(load(obj["conf"]), Progress([]), stop)
    end_by_signals(stop)
    sender.start()
    stop.wait()
    sender.wake()
    sender.join(LEAVE_SECONDS)
