"""Gates: how far tables have passed theirs, as it is written down. One file a table, by Delta's id; releases are a table, kept for ever.

Only who writes the lake writes the file, and anybody may release. Without the file everything is judged anew, so to lose it loses time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from orchestration.conf.model import Conf, GateMode
from orchestration.storage.atomic_json import read_atomic, write_atomic
from orchestration.storage.delta import OF_LOG, is_table, rows_of, table_id, version_of

GATED, LATE = "silver.readings", "silver.late"
READ_BY_GOLD = (GATED, LATE)
"""What is held where the gate of silver.readings holds: streams read the one, amendments the other."""
RELEASES = "quality.releases"
RELEASE_COLUMNS = (
    ("table_name", pa.string(), "SQL name of the table"),
    ("table_id", pa.string(), "Delta's id of the table: a table that a replay built has another"),
    ("version", pa.int64(), "versions up to this one were let through"),
    ("after_version", pa.int64(), "versions up to this one had passed before; -1 for none"),
    ("reason", pa.string(), "why, in the words of who did it"),
    ("released_by", pa.string(), "user@host"),
    ("released_at", pa.timestamp("us", "UTC"), "when"),
    ("failed", pa.list_(pa.string()), "what had failed: severity, table, expectation, rows"),
)
RELEASE_SCHEMA = pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in RELEASE_COLUMNS])
"""Grain: one release. Append only."""


@dataclass(frozen=True)
class Failure:
    """What a look found in the versions `after` < version <= `version`: a line for each critical expectation that failed."""

    after: int
    version: int
    at: str
    found: tuple[str, ...]

    def __str__(self) -> str:
        """As a clause."""
        first, last = self.after + 1, self.version
        which = f"version {last} does" if first == last else f"versions {first} to {last} do"
        return f"{which} not pass (looked at {self.at}: {'; '.join(self.found)})"


@dataclass(frozen=True)
class Passage:
    """Everything up to `version` has passed, was released or told; -1: nothing yet. `failure`: the last look found what does not pass.

    `marks`: how far the jobs that write the table were, at least, when that version was read.
    """

    table: str
    table_id: str
    version: int = -1
    failure: Failure | None = None
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Whether what failed was held back. Where the gate only warned, it was not."""
        return self.failure is not None and self.failure.version > self.version


def is_holding(conf: Conf) -> bool:
    """Whether gold has to wait for what silver has not passed."""
    return conf.quality.gates.get(GATED) is GateMode.HOLD


def closed_gates(conf: Conf, places: Callable[[str], Path]) -> Iterator[Passage]:
    """Those that hold something back now; `places` says where a table is."""
    for name in READ_BY_GOLD if is_holding(conf) else ():
        if is_table(places(name)) and (found := passage(conf.lake, name, places(name))).is_closed:
            yield found


def told(conf: Conf, places: Callable[[str], Path]) -> Iterator[str]:
    """Lines about gates that are closed, and about tables whose gate only warns and found something when it looked last."""
    for found in closed_gates(conf, places):
        yield from closed(found).splitlines()
    for name, mode in conf.quality.gates.items():
        if mode is GateMode.WARN and is_table(places(name)):
            failure = passage(conf.lake, name, places(name)).failure
            if failure is not None:
                yield f"{name}: {failure}"


def closed(found: Passage) -> str:
    """What a closed gate means, and the way out."""
    assert found.failure is not None
    return (
        f"the gate of {found.table} is closed, and gold stays where it is: {found.failure}.\n"
        "  Mend the conf and build silver anew with `tidemark replay`, or let it through with"
        f' `tidemark quality release --table {found.table} --version {found.failure.version} --reason ".."`.'
    )


def passage(lake: Path, table: str, path: Path) -> Passage:
    """Of the table that is at `path` now, releases included."""
    this_table = table_id(path)
    file = _file(lake, this_table)
    found = Passage(table, this_table)
    if file.exists():
        read = read_atomic(file, "Remove it: what came is then judged anew.")
        found = Passage(**read | {"failure": _failure(read["failure"])})
    released = max((row["version"] for row in releases(lake) if row["table_id"] == this_table), default=-1)
    # What lies beyond a release is looked at anew.
    return Passage(table, this_table, released, None, found.marks) if released > found.version else found


def keep(lake: Path, found: Passage) -> None:
    """Write it down; it counts from now on, whatever dies."""
    write_atomic(_file(lake, found.table_id), asdict(found))


def releases(lake: Path) -> list[dict[str, Any]]:
    """Every release of the lake."""
    return rows_of(_releases(lake))


def count_releases(lake: Path) -> int:
    """It grows with each."""
    return version_of(_releases(lake)) + 1


def record_release(lake: Path, held: Passage, version: int, reason: str, by: str, at: datetime) -> None:  # noqa: PLR0917
    """Let versions up to this one through; who calls holds `<lake>/quality`."""
    failed = list(held.failure.found) if held.failure else []
    values = (held.table, held.table_id, version, held.version, reason, by, at, failed)
    row = dict(zip(RELEASE_SCHEMA.names, values, strict=True))
    write_deltalake(_releases(lake), pa.Table.from_pylist([row], RELEASE_SCHEMA), mode="append", configuration=OF_LOG)


def _releases(lake: Path) -> Path:
    return lake.joinpath(*RELEASES.split("."))


def _file(lake: Path, table_id: str) -> Path:
    return lake / "quality" / "gates" / f"{table_id}.json"


def _failure(found: dict[str, Any] | None) -> Failure | None:
    return None if found is None else Failure(**found | {"found": tuple(found["found"])})
