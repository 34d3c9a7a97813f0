"""How far each sink has come, as the lake remembers it: `sinks/<name>.json`, written by the process that holds the lake.

A sink that keeps a position of its own, such as Postgres, is asked for that one; for all others this is the position.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.state_file import StateFile

FOLDER = "sinks"


class Request(StrEnum):
    """A request of another process."""

    RESET = "reset"
    """Send all rows again."""
    RESEND = "resend"
    """Send the rows of ops.dead_rows again."""


@dataclass(frozen=True)
class SinkPosition:
    """The rows of one table at one snapshot.

    `table_id`: Delta's, another one after a replay. `mark`: of silver the bronze batch up to which rows count, of gold the newest
    `gold_batch`, of marts the build; -1 where there is no row. `retry`: the newest retry of the quarantine, -1 before the first.
    """

    snapshot_id: int
    table_id: str
    version: int
    mark: int
    retry: int = -1


@dataclass(frozen=True)
class SinkState:
    """`sent`: what `target` has. `sending`: what a process began to send, and perhaps did not end; `is_complete`: as all the rows of the
    table. Instants in ISO 8601, UTC."""

    target: str = ""
    sent: SinkPosition | None = None
    sending: SinkPosition | None = None
    is_complete: bool = False
    sent_at: str | None = None


def read_state(conf: Conf, sink: str) -> SinkState:
    """That of a new sink where there is none yet, or where it has another target now; TidemarkError where the file is damaged."""
    state, target = _file(conf.lake, sink).read(), conf.sinks[sink].target
    return state if state and state.target == target else SinkState(target)


def write_state(lake: Location, sink: str, state: SinkState) -> None:
    _file(lake, sink).write(state)


def request(lake: Location, sink: str, kind: Request, now: datetime) -> None:
    """Ask whoever sends to send again."""
    _request(lake, sink, kind).write({"at": f"{now:%Y%m%dT%H%M%S%f}"})


def requested(lake: Location, sink: str, kind: Request) -> str | None:
    """Return the mark of the request, by which it differs from others; None where there is none."""
    asked = _request(lake, sink, kind).read()
    return asked["at"] if asked else None


def end_request(lake: Location, sink: str, kind: Request, mark: str | None) -> None:
    """It was sent again; a request that came meanwhile stays."""
    if mark is not None and requested(lake, sink, kind) == mark:
        _request(lake, sink, kind).remove()


def snapshots_of_sinks(conf: Conf) -> set[int]:
    """Ids of those that never expire, as a sink of conf has them: what it has yet to send is told by them."""
    states = (read_state(conf, name) for name in conf.sinks)
    return {position.snapshot_id for state in states for position in (state.sent, state.sending) if position is not None}


def _file(lake: Location, sink: str) -> StateFile[SinkState]:
    return StateFile(lake / FOLDER / f"{sink}.json", SinkState, "Remove it: the sink then sends everything again.")


def _request(lake: Location, sink: str, kind: Request) -> StateFile[dict[str, str]]:
    return StateFile(lake / FOLDER / kind / f"{sink}.json", dict[str, str], f"Remove it, and ask again with `tidemark sinks {kind}`.")
