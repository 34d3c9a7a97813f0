"""State of the quality gates: the version up to which each table has passed. A JSON file a table, by Delta's id, and quality.releases.

Only the writer of the lake writes the files; anybody may release. If a file is lost, its table is checked again from the start.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from msgspec import Meta

from orchestration.conf.model import Conf, GateMode
from orchestration.location import Location
from orchestration.storage.delta import is_table, table_id, version_of
from orchestration.storage.log import Log
from orchestration.storage.state_file import StateFile

GATED, LATE = "silver.readings", "silver.late"
READ_BY_GOLD = (GATED, LATE)
"""Tables that a gate of silver.readings holds back: streams read the first, amendments the second."""


@dataclass(frozen=True)
class Release:
    """Grain: one release."""

    table_name: Annotated[str, Meta(description="SQL name of the table")]
    table_id: Annotated[str, Meta(description="Delta's id of the table: a table that a replay built has another")]
    version: Annotated[int, Meta(description="versions up to this one were let through")]
    after_version: Annotated[int, Meta(description="versions up to this one had passed before; -1 for none")]
    reason: Annotated[str, Meta(description="why, in the words of who did it")]
    released_by: Annotated[str, Meta(description="user@host")]
    released_at: Annotated[datetime, Meta(description="when")]
    failed: Annotated[tuple[str, ...], Meta(description="what had failed: severity, table, expectation, rows")]


RELEASES = Log("quality.releases", Release, order="version")


@dataclass(frozen=True)
class Failure:
    """Failed check of the versions `after` < version <= `version`: `found` has a line for each critical expectation. `at`: UTC."""

    after: int
    version: int
    at: str
    found: tuple[str, ...]

    def __str__(self) -> str:
        first, last = self.after + 1, self.version
        which = f"version {last} does" if first == last else f"versions {first} to {last} do"
        return f"{which} not pass (checked {self.at}: {'; '.join(self.found)})"


@dataclass(frozen=True)
class GateState:
    """Versions up to `version` have passed, were released, or were reported by a gate that only warns; -1: none yet.

    `failure`: what the last check found, None if it passed. `marks`: how far the jobs that write the table had come, at least, when
    that version was read.
    """

    table: str
    table_id: str
    version: int = -1
    failure: Failure | None = None
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Whether the failed versions are held back. A gate that only warns holds nothing back."""
        return self.failure is not None and self.failure.version > self.version


def is_holding(conf: Conf) -> bool:
    """Whether gold reads only versions of silver that have passed."""
    return conf.quality.gates.get(GATED) is GateMode.HOLD


def closed_gates(conf: Conf, path_of: Callable[[str], Location]) -> Iterator[GateState]:
    """Gates that hold versions back now; `path_of` gives the path of a table by its name."""
    return filter(lambda state: state.is_closed, _states(conf, READ_BY_GOLD if is_holding(conf) else (), path_of))


def failing_gates(conf: Conf, path_of: Callable[[str], Location]) -> Iterator[tuple[GateState, str]]:
    """Closed gates, and tables whose gate only warns and whose last check failed, each with what that means."""
    for closed in closed_gates(conf, path_of):
        yield closed, describe_closed(closed)
    for state in _states(conf, [name for name, mode in conf.quality.gates.items() if mode is GateMode.WARN], path_of):
        if state.failure is not None:
            yield state, f"{state.table}: {state.failure}"


def describe_gates(conf: Conf, path_of: Callable[[str], Location]) -> Iterator[str]:
    for _, text in failing_gates(conf, path_of):
        yield from text.splitlines()


def describe_closed(state: GateState) -> str:
    """Say what a closed gate means, and how to open it."""
    assert state.failure is not None
    return (
        f"the gate of {state.table} is closed, so gold is not updated: {state.failure}.\n"
        "  Correct the conf and build silver anew with `tidemark replay`, or release the version with"
        f' `tidemark quality release --table {state.table} --version {state.failure.version} --reason ".."`.'
    )


def _states(conf: Conf, names: Iterable[str], path_of: Callable[[str], Location]) -> Iterator[GateState]:
    return (read_gate_state(conf.lake, name, path_of(name)) for name in names if is_table(path_of(name)))


def read_gate_state(lake: Location, table: str, path: Location) -> GateState:
    """The state for the table that is at `path` now, with releases applied."""
    new = GateState(table, table_id(path))
    state = _file(lake, new).read() or new
    released = max((row.version for row in RELEASES.rows(lake, [("table_id", "=", state.table_id)])), default=-1)
    # Versions after the released one are checked again.
    return replace(state, version=released, failure=None) if released > state.version else state


def write_gate_state(lake: Location, state: GateState) -> None:
    _file(lake, state).write(state)


def count_releases(lake: Location) -> int:
    """A number that grows with each release; 0 before the first."""
    return version_of(RELEASES.path(lake)) + 1


def _file(lake: Location, state: GateState) -> StateFile[GateState]:
    file = lake / "quality" / "gates" / f"{state.table}-{state.table_id}.json"
    return StateFile(file, GateState, "Remove it: the table is then checked again from the start.")
