"""Servers for tests, each a process of its own: it can be killed and started again, and ends with the tests, however these end."""

import ctypes
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, Self

PR_SET_PDEATHSIG = 1


class ServerProcess(ABC):
    """`process`: None before the first start."""

    process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Until it answers."""

    def launch(self, command: Sequence[str], log: Path, **more: Any) -> None:
        """What it says goes to the end of the log."""
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=_die_with_parent, **more)  # noqa: PLW1509

    def listens(self, port: int, address: str = "127.0.0.1") -> bool:
        """Whether it does, at that port; it has to run."""
        assert self.process is not None
        assert self.process.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex((address, port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @property
    def is_killed(self) -> bool:
        """And not started since."""
        return self.process is not None and self.process.poll() is not None

    @contextmanager
    def running(self) -> Iterator[Self]:
        try:
            self.start()
            yield self
        finally:
            self.kill()


def free_ports(count: int) -> list[int]:
    """Choose free ports of 127.0.0.1, all different, below those that the kernel gives to any client at any time."""
    held: list[socket.socket] = []
    while len(held) < count:
        with suppress(OSError):
            held.append(socket.create_server(("127.0.0.1", SystemRandom().randrange(10_000, 32_768))))
    ports = [int(free.getsockname()[1]) for free in held]
    for free in held:
        free.close()
    return ports


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
