"""State of the quality gates: the version up to which each table has passed. A JSON file a table, by Delta's id, and quality.releases.

Only the writer of the lake writes the files; anybody may release. If a file is lost, its table is checked again from the start.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from bronze.schema import INSTANT, declared
from orchestration.conf.model import Conf, GateMode
from orchestration.location import Location
from orchestration.storage.atomic_json import read_atomic, write_atomic
from orchestration.storage.delta import is_table, path_of, rows_of, table_id, version_of

GATED, LATE = "silver.readings", "silver.late"
READ_BY_GOLD = (GATED, LATE)
"""What a gate of silver.readings holds back: streams read the first table, amendments the second."""
RELEASES = "quality.releases"
RELEASE_SCHEMA = declared(
    ("table_name", pa.string(), "SQL name of the table"),
    ("table_id", pa.string(), "Delta's id of the table: a table that a replay built has another"),
    ("version", pa.int64(), "versions up to this one were let through"),
    ("after_version", pa.int64(), "versions up to this one had passed before; -1 for none"),
    ("reason", pa.string(), "why, in the words of who did it"),
    ("released_by", pa.string(), "user@host"),
    ("released_at", INSTANT, "when"),
    ("failed", pa.list_(pa.string()), "what had failed: severity, table, expectation, rows"),
)
"""Grain: one release. Append only."""


@dataclass(frozen=True)
class Failure:
    """What failed in the versions `after` < version <= `version`: `found` has a line for each critical expectation. `at`: UTC."""

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
    """Lines about `failing_gates`."""
    for _, text in failing_gates(conf, path_of):
        yield from text.splitlines()


def describe_closed(state: GateState) -> str:
    """What a closed gate means, and how to open it."""
    assert state.failure is not None
    return (
        f"the gate of {state.table} is closed, and gold stays where it is: {state.failure}.\n"
        "  Mend the conf and build silver anew with `tidemark replay`, or let it through with"
        f' `tidemark quality release --table {state.table} --version {state.failure.version} --reason ".."`.'
    )


def _states(conf: Conf, names: Iterable[str], path_of: Callable[[str], Location]) -> Iterator[GateState]:
    return (read_gate_state(conf.lake, name, path_of(name)) for name in names if is_table(path_of(name)))


def read_gate_state(lake: Location, table: str, path: Location) -> GateState:
    """The state for the table that is at `path` now, with releases applied."""
    new = GateState(table, table_id(path))
    state = read_atomic(_file(lake, table, new.table_id), "Remove it: the table is then checked again from the start.", GateState) or new
    releases = rows_of(path_of(lake, RELEASES), ["version"], [("table_id", "=", state.table_id)])
    released = max((row["version"] for row in releases), default=-1)
    # Versions after the released one are checked again.
    return replace(state, version=released, failure=None) if released > state.version else state


def write_gate_state(lake: Location, state: GateState) -> None:
    write_atomic(_file(lake, state.table, state.table_id), state)


def count_releases(lake: Location) -> int:
    """A number that grows with each release; 0 before the first."""
    return version_of(path_of(lake, RELEASES)) + 1


def _file(lake: Location, table: str, table_id: str) -> Location:
    return lake / "quality" / "gates" / f"{table}-{table_id}.json"
