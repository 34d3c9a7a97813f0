"""The leases that this process holds, by lake; see lease.py."""

import os
import shlex
import socket
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from orchestration.location import Location

TAKEN_OVER = (
    "another process took over the lease of {}, because this process seemed dead. The pending write was not made.\n"
    "  Start it again, once the other one has ended."
)


@dataclass(frozen=True)
class Holder:
    """Who writes a lake. `jvm`: process of its Spark, once that has started."""

    pid: int
    host: str
    command: str
    since: str
    jvm: int | None = None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (since {self.since} UTC: {self.command})"


class HeldLease(Protocol):
    """A lease of this process."""

    token: int
    """Its number, higher than that of each holder before."""
    is_taken_over: bool
    """The holder before it did not let go, and may only sleep."""

    @property
    def transaction(self) -> tuple[str, int]:
        """The transaction by which a table knows the holder."""

    @property
    def is_lost(self) -> bool:
        """Whether another process holds it now, or has held it since."""

    def confirm(self) -> None:
        """HeldError where another process may hold it by now."""

    def share(self, spark: Any) -> None:
        """Let the JVM of a session hold it as well, where the lease is a lock of this machine."""

    def let_go(self) -> None:
        """Let it go after work that came to its end."""


HELD: dict[Location, HeldLease] = {}


def lease_above(path: Location) -> HeldLease | None:
    """The lease of this process that a place is under; None where it holds none."""
    held = [lake for lake in HELD if lake.path in path.path.parents]
    return HELD[max(held, key=lambda lake: len(lake.path.parts))] if held else None


def this_process() -> Holder:
    return Holder(os.getpid(), socket.gethostname(), shlex.join(["tidemark", *sys.argv[1:]]), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}")
