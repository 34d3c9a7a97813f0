"""The state of what `tidemark up` runs, for other commands and the next `up`: `up/state.json` in the lake. Streams touch `up/heartbeat`.

`up/reserve` keeps room for the state: what runs is asked for when the disk is full, too.
"""

import errno
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from orchestration.location import Location
from orchestration.storage.lease import is_held
from orchestration.storage.state_file import StateFile

FOLDER = "up"
RESERVE_BYTES = 1024 * 1024
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
STOPPED = "Once that is mended, save a file of the conf, or use `tidemark down` and `tidemark up`: then it begins anew."
"""The last line of the reason of a part that is not started again by itself."""
State: TypeAlias = Literal["running", "hangs", "waiting", "stopped"]


@dataclass(frozen=True)
class PartState:
    """The state of one process. `waiting`: to be started again; `stopped`: until conf changes, or `up` starts again.

    `pid`: that of the process, and of the session of all that it starts; None while there is none. `started`: when that process began, in
    seconds since 1970 as the kernel has it. `since`: of the state, ISO 8601 in UTC. `restarts`: since `up` began. `reason`: of the state,
    or how it ended last; None where it never did.
    """

    name: str
    state: State
    pid: int | None
    started: float | None
    since: str
    restarts: int
    reason: str | None


@dataclass(frozen=True)
class RefusedConf:
    """A changed conf that `up` did not take up. `command`: fixes it; empty where none does. `since`: ISO 8601, UTC."""

    file: str
    line: int | None
    sentence: str
    command: str
    since: str


@dataclass(frozen=True)
class ServiceState:
    """The state of one `tidemark up`: its process, and its parts in the order in which they start."""

    pid: int
    parts: list[PartState]


def folder_of(lake: Location) -> Location:
    """Return the folder of the lock, the state and the journal of `up`."""
    return (lake / FOLDER).on_host


def read_service(lake: Location) -> ServiceState | None:
    """Read the state as it was written last, also by an `up` that is gone; None where none ever ran."""
    return _file(lake).read()


def parts_of(lake: Location) -> list[dict[str, Any]]:
    """One row a part of the `up` that runs now; none where none does."""
    service = read_service(lake) if is_held(folder_of(lake)) else None
    return [{"part": part.name, **asdict(part)} for part in service.parts] if service else []


def write_service(lake: Location, state: ServiceState) -> None:
    """On a full disk in the room of the reserve, which is gone then."""
    try:
        _file(lake).write(state)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _reserve(lake).unlink(missing_ok=True)
        _file(lake).write(state)


def keep_reserve(lake: Location) -> None:
    """Make it, where it is not there; where that does not work, it is tried again at the next call."""
    file = _reserve(lake)
    if file.exists():
        return
    try:
        with file.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, RESERVE_BYTES)
    except OSError:
        file.unlink(missing_ok=True)


def beat(lake: Location) -> None:
    """Say that streams are alive; where the disk is full that is not worth an error."""
    with suppress(OSError):
        folder_of(lake).local.mkdir(parents=True, exist_ok=True)
        _heartbeat(lake).local.touch()


def last_beat(lake: Location) -> float | None:
    """In seconds since 1970; None where streams have never said it."""
    try:
        return _heartbeat(lake).local.stat().st_mtime
    except FileNotFoundError:
        return None


def refused_conf(lake: Location) -> StateFile[RefusedConf]:
    """The file, which is there as long as a changed conf waits."""
    return StateFile(folder_of(lake) / "refused.json", RefusedConf, "Remove it: it only says why a changed conf is not taken up.")


def _file(lake: Location) -> StateFile[ServiceState]:
    way_out = "Remove it: it tells only which processes `tidemark up` has started."
    return StateFile(folder_of(lake) / "state.json", ServiceState, way_out)


def _reserve(lake: Location) -> Path:
    return (folder_of(lake) / "reserve").local


def _heartbeat(lake: Location) -> Location:
    return folder_of(lake) / "heartbeat"
