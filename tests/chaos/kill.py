"""A run, killed at a phase: process, JVM and all, by SIGKILL."""

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from orchestration.crash import VARIABLE, Point
from tests.chaos.inotify import Watch
from tests.chaos.phases import MAINTAIN, AnyMoment, Appears, Phase
from tests.chaos.plants import SECONDS, Plant
from tests.s3_proxy import Proxy
from tests.waiting import until


@dataclass(frozen=True)
class Kill:
    """`is_hit`: the run died in the phase, and the disk shows it. `where`: the file that told, or the crash point."""

    is_hit: bool
    where: str


def kill(plant: Plant, phase: Phase, passing: int = 1, flags: tuple[str, ...] = (), seconds: float = 0.0) -> Kill:
    """Run until the phase is passed for the `passing`-th time (or `seconds` are over, where the clock decides)."""
    command = (*phase.command, *flags)
    plant.let_tasks_write(all_of_it=isinstance(phase.at, Appears))  # their files are what is waited for
    variables = plant.leave_orphans() if phase.command == MAINTAIN else {}
    match phase.at:
        case Point():
            with plant.running(*command, **variables, **{VARIABLE: f"{phase.at}:{passing}"}) as process:
                return Kill(_ended_within(process, SECONDS) == -signal.SIGKILL, f"{phase.at}:{passing}")
        case Appears() if plant.proxy is not None:
            return _killed_in_store(plant, plant.proxy, phase.at, passing, command)
        case Appears():
            with Watch(plant.lake) as watch, plant.running(*command) as process:
                file = _killed_at(process, watch, phase.at, passing)
            # Only now everything that the group had begun to write has ended.
            return Kill(file is not None and phase.at.is_hit(file), "" if file is None else str(file.relative_to(plant.lake)))
        case AnyMoment():
            with plant.running(*command) as process:
                return Kill(_ended_within(process, seconds) is None, f"{seconds:.1f} s")


def _killed_in_store(plant: Plant, proxy: Proxy, at: Appears, passing: int, command: tuple[str, ...]) -> Kill:
    """The proxy keeps the request that tells until its client is dead, so no kill comes too late."""
    proxy.set_faults(at.in_store(passing))
    with plant.running(*command) as process:
        until(lambda: proxy.met() > 0 or process.poll() is not None)
        is_hit = process.poll() is None
    proxy.set_faults()
    return Kill(is_hit, f"{at.key}:{passing}")


def _ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _killed_at(process: "subprocess.Popen[bytes]", watch: Watch, at: Appears, passing: int) -> Path | None:
    """The file at whose sight the group was killed; None if the run ended before."""
    pattern, end = re.compile(at.pattern), time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < end:
        for seen in watch.seen(seconds=0.2):
            if seen.event is at.event and pattern.search(str(seen.file)):
                passing -= 1
                if passing == 0:
                    os.killpg(process.pid, signal.SIGKILL)
                    return seen.file
    return None
