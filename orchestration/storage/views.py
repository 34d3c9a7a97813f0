"""What SQL names stand for: each table of the lake at one snapshot, and of gold tables the latest revision or the whole history."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from gold.schema import VECTOR_KEY, WINDOW_KEY
from orchestration.location import Location
from orchestration.storage.delta import LOG
from orchestration.storage.generations import FOLDER, active_generation, numbered
from orchestration.storage.snapshot import Snapshot
from silver.rules import SOMETHING_IS_MEASURED

_MEASURES_NOTHING = f"array_contains(broken_rules, '{SOMETHING_IS_MEASURED}')"
CONDITIONS = {"silver.quarantine": f"not {_MEASURES_NOTHING}", "silver.without_measurements": _MEASURES_NOTHING}
"""Two names for the rows of one table, in SQL that Spark and DuckDB understand alike."""
KEYS = {"aggregates": WINDOW_KEY, "vectors": VECTOR_KEY}


class Plant(Protocol):
    """What names depend on: a Conf has it, and so has conf.place.Place, which takes no time to load."""

    @property
    def lake(self) -> Location:
        """Where the tables are."""

    @property
    def groups(self) -> Collection[str]:
        """Names of the device groups."""


@dataclass(frozen=True)
class View:
    """A table at a version, None for the latest; of bronze and silver up to a bronze batch; of gold the newest revision of each key."""

    name: str
    location: Location
    version: int | None = None
    bronze_batch: int | None = None
    key: tuple[str, ...] = ()

    def select(self, rows: str) -> str:
        """A query that Spark and DuckDB understand alike. `rows`: how the engine names the table at its version."""
        if self.key:
            return latest(rows, self.key)
        conditions = [*([CONDITIONS[self.name]] if self.name in CONDITIONS else [])]
        conditions += [] if self.bronze_batch is None else [f"bronze_batch <= {self.bronze_batch}"]
        return f"select * from {rows}" + (f" where {' and '.join(conditions)}" if conditions else "")

    def is_meant(self, query: str) -> bool:
        """Whether a query can mean it: it has the name of the table somewhere."""
        return self.name.split(".", 1)[1].lower() in query.lower()

    def spark(self) -> str:
        """For Spark, the table named by its path."""
        return self.select(self.rows())

    def rows(self) -> str:
        """The table at its version, for Spark."""
        version = "" if self.version is None else f" version as of {self.version}"
        return f"(select * from delta.`{str(self.location).replace('`', '``')}`{version})"


def views(plant: Plant, snapshot: Snapshot | None) -> dict[str, View]:
    """By SQL name. Tables that no snapshot pins (ops, quality, the registry) in their latest version, and all where there is no snapshot.

    Marts are there in a snapshot that knows them (see marts.snapshot_for).
    """
    every = {view.name: view for path in _tables(plant.lake, snapshot) for view in _views_of(plant, path, snapshot)}
    return {name: view for name, view in every.items() if not (name.startswith("marts.") and view.version is None)}


def _tables(lake: Location, snapshot: Snapshot | None) -> list[Location]:
    """Those of the generation that the snapshot pins, and those that no generation has."""
    generation = active_generation(lake) if snapshot is None else numbered(lake, snapshot.generation)
    logs = [log for folders in ("*/*", f"{FOLDER}/*/*/*") for log in lake.glob(f"{folders}/{LOG}")]
    paths = {generation.table(lake, f"{log.parent.parent.name}.{log.parent.name}") for log in logs}
    return sorted(path for path in paths if (path / LOG).exists())


def _views_of(plant: Plant, path: Location, snapshot: Snapshot | None) -> Iterator[View]:
    view = View(f"{path.parent.name}.{path.name}", path)
    if snapshot is not None and view.name in snapshot.versions:
        view = replace(view, version=snapshot.versions[view.name])
        if view.name.startswith(("bronze.", "silver.")):
            view = replace(view, bronze_batch=snapshot.bronze_batch)
    group, _, kind = path.name.rpartition("_")
    if path.parent.name == "gold" and group in plant.groups and kind in KEYS:
        yield replace(view, name=f"{view.name}_history")
        yield replace(view, key=KEYS[kind])
    else:
        yield view
        if view.name == "silver.quarantine":
            yield replace(view, name="silver.without_measurements")


def latest(history: str, key: tuple[str, ...]) -> str:
    """A query of rows in their newest revision, as gold.revisions.latest; two rows of one key and one revision both stay."""
    names = ", ".join(key)
    amended = f"select {names}, max(revision) as newest from {history} where revision > 0 group by {names}"
    same = " and ".join(f"rows.{name} = amended.{name}" for name in key)
    # An anti join has a name of its own in each of the three engines that run this.
    kept = "amended.newest is null or rows.revision = amended.newest"
    return f"select rows.* from {history} as rows left join ({amended}) as amended on {same} where {kept}"
