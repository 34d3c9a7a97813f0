"""Views by SQL name: each table of the lake at one snapshot, and of gold tables the latest revision or the whole history."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gold.schema import FLOW_KINDS, KINDS
from orchestration.conf.place import GroupWindows
from orchestration.location import Location
from orchestration.storage.delta import LOG, literal
from orchestration.storage.generations import Generation, active_generation, numbered
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.snapshot import Snapshot
from silver.schema import SOMETHING_IS_MEASURED

DATABASES = ("bronze", "silver", "marts", "quality", "ops")
"""Databases whose views are whole tables; for gold see `_of_gold`."""
_MEASURES_NOTHING = f"array_contains(broken_rules, '{SOMETHING_IS_MEASURED}')"
CONDITIONS = {"silver.quarantine": f"not {_MEASURES_NOTHING}", "silver.without_measurements": _MEASURES_NOTHING}
"""Two names for the rows of one table, in SQL that Spark and DuckDB understand alike."""
VISITS = {
    "device_id": "device_id",
    "state": "previous",
    "visit_start": "changed_at - interval '1' second * seconds",
    "visit_end": "changed_at",
    "seconds": "seconds",
}
"""Columns of gold.<flow>_visits: a change of state is the end of a visit to the one before."""


class Plant(Protocol):
    """Settings that names depend on: a Conf has them, and so has conf.place.Place, which takes no time to load."""

    @property
    def lake(self) -> Location:
        """The folder of the tables."""

    @property
    def stream_of(self) -> Mapping[str, str]:
        """Device groups by name, and the gold stream of each."""

    @property
    def table_of_flow(self) -> Mapping[str, str]:
        """Flows of flows.yml by name, and the kind of table that each writes."""

    @property
    def group_windows(self) -> Mapping[str, GroupWindows]:
        """Windows by device group."""


@dataclass(frozen=True)
class Part:
    """Rows of a table at a version, None for the latest, for which `where`, if there is one, is true."""

    location: Location
    version: int | None = None
    where: str = ""

    def spark(self) -> str:
        version = "" if self.version is None else f" version as of {self.version}"
        return f"(select * from delta.`{str(self.location).replace('`', '``')}`{version})"


@dataclass(frozen=True)
class View:
    """Rows of one table, or of several. `columns`: some of them, by default all. `key`: only the newest revision of each. `expressions`:
    SQL of columns that the table has by another name, or not."""

    name: str
    parts: tuple[Part, ...]
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    expressions: Mapping[str, str] = field(default_factory=dict, compare=False, kw_only=True)

    def select(self, rows: Sequence[str]) -> str:
        """A query that Spark and DuckDB understand alike. `rows`: how the engine names the table of each part at its version."""
        named = zip(self.parts, rows, strict=True)
        columns = ", ".join(f"{self.expressions[name]} as {name}" if name in self.expressions else name for name in self.columns) or "*"
        every = " union all ".join(f"select {columns} from {table}{f' where {part.where}' if part.where else ''}" for part, table in named)
        return latest(f"({every})", self.key) if self.key else every

    def is_meant(self, query: str) -> bool:
        """Whether a query can mean it: it has the name of the table somewhere."""
        return self.name.split(".", 1)[1].lower() in query.lower()

    def spark(self) -> str:
        return self.select([part.spark() for part in self.parts])


def views(plant: Plant, snapshot: Snapshot | None, query: str | None = None) -> dict[str, View]:
    """Return the views by SQL name; with `query` only those whose name is somewhere in it, for each of many groups has several.

    Tables that no snapshot pins (ops, quality, the registry) in their latest version, and all where there is no snapshot. Marts are there
    in a snapshot that knows them (see marts.snapshot_for).
    """
    generation = active_generation(plant.lake) if snapshot is None else numbered(plant.lake, snapshot.generation)
    text = None if query is None else query.lower()
    candidates = (
        *_of_tables(plant.lake, generation, snapshot, text),
        *_of_gold(plant, generation, snapshot, text),
        *_of_flows(plant, generation, snapshot, text),
    )
    meant = (view for view in candidates if text is None or view.is_meant(text))
    return {view.name: view for view in meant if not (view.name.startswith("marts.") and view.parts[0].version is None)}


def _of_tables(lake: Location, generation: Generation, snapshot: Snapshot | None, text: str | None) -> Iterator[View]:
    """Yield the views of tables of the generation, and of tables that no generation has. `text`: only of databases that it names."""
    pinned = snapshot.versions if snapshot else {}
    for name in sorted({*_names(lake, generation, pinned, text), *pinned}):
        part = _part(lake, generation, snapshot, name)
        of_prefix = snapshot and part.version is not None and name.startswith(("bronze.", "silver.")) and name != CORRECTIONS
        bounds = [f"bronze_batch <= {snapshot.bronze_batch}"] if snapshot and of_prefix else []
        for shown in (name, "silver.without_measurements") if name == "silver.quarantine" else (name,):
            conditions = [CONDITIONS[shown], *bounds] if shown in CONDITIONS else bounds
            view = View(shown, (replace(part, where=" and ".join(conditions)),))
            if not name.startswith("gold.") and (text is None or view.is_meant(text)) and _is_there(part):
                yield view


def _names(lake: Location, generation: Generation, pinned: Iterable[str], text: str | None) -> Iterator[str]:
    """Yield the names of tables by their folders. In a store each database is a request; for a query that names none, all are made."""
    named = [name for name in (*DATABASES, "gold") if text and f"{name}." in text] or DATABASES
    # Of a database of which the query names tables of the snapshot alone, no other is meant.
    others = re.sub("|".join(rf"\b{re.escape(name)}\b" for name in pinned) or "$", "", text or "")
    for database in (name for name in named if name != "gold" and (name in others or not text)):
        yield from (f"{database}.{folder.name}" for folder in lake.glob(f"{database}/*") if not folder.name.startswith("."))
    yield from (folder.replace("/", ".", 1) for folder in generation.places if folder.partition("/")[0] in named)


def _is_there(part: Part) -> bool:
    """Whether there is the table: what a snapshot pins is."""
    return part.version is not None or (part.location / LOG).is_dir()


def _of_gold(plant: Plant, generation: Generation, snapshot: Snapshot | None, text: str | None) -> Iterator[View]:
    """Each group from the table that its stream writes, and all groups together. `text`: only of groups and kinds that it names."""
    of_stream = defaultdict[str, list[str]](list)  # of thousands of groups: each is looked at once
    for group, stream in plant.stream_of.items():
        of_stream[stream].append(group)
    named = {group for group in plant.stream_of if text is None or group.lower() in text}
    for kind, (schema, key) in ((kind, KINDS[kind]) for kind in KINDS if text is None or kind in text):
        columns, groups_of = tuple(schema.names), defaultdict[str, list[str]](list)
        for stream, groups in of_stream.items():
            groups_of[generation.gold(stream, kind)] += groups
        parts = {name: _part(plant.lake, generation, snapshot, name) for name in groups_of}
        parts = {name: part for name, part in parts.items() if _is_there(part)}
        for name, part in parts.items():
            for group in (group for group in groups_of[name] if group in named):
                of_group = Part(part.location, part.version, f"device_group = '{group}'")
                yield from _revisions(f"gold.{group}_{kind}", (of_group,), columns[1:], key[1:])
        # What another generation has of a group is not shown.
        several = (replace(part, where=of_groups(groups_of[name])) for name, part in parts.items())
        if parts:
            yield from _revisions(f"gold.{kind}", tuple(several if len(parts) > 1 else parts.values()), columns, key)


def _of_flows(plant: Plant, generation: Generation, snapshot: Snapshot | None, text: str | None) -> Iterator[View]:
    """Alerts; models of anomalies in their latest version; each flow from the table of its kind, and all of one kind together.

    `text`: models only where it names them.
    """
    alerts = _part(plant.lake, generation, snapshot, "gold.alerts")
    if not (snapshot and alerts.version is None) and _is_there(alerts):
        yield View("gold.alerts", (alerts,))
    models = View("gold.models", (Part(plant.lake / "gold" / "models"),))
    if (text is None or models.is_meant(text)) and _is_there(models.parts[0]):
        yield models
    for kind, (schema, _) in FLOW_KINDS.items():
        part = _part(plant.lake, generation, snapshot, f"gold.{kind}")
        flows = [flow for flow, table in plant.table_of_flow.items() if table == kind]
        if not flows or (snapshot and part.version is None) or not _is_there(part):
            continue
        yield View(f"gold.{kind}", (replace(part, where=f"flow in {literal(flows)}"),))
        for flow in flows:
            of_flow = (replace(part, where=f"flow = '{flow}'"),)
            yield View(f"gold.{flow}", of_flow, tuple(schema.names[1:]))
            if kind == "states":
                yield View(f"gold.{flow}_visits", of_flow, tuple(VISITS), expressions=VISITS)


def _part(lake: Location, generation: Generation, snapshot: Snapshot | None, name: str) -> Part:
    return Part(generation.table(lake, name), snapshot.versions.get(name) if snapshot else None)


def _revisions(name: str, parts: tuple[Part, ...], columns: tuple[str, ...], key: tuple[str, ...]) -> Iterator[View]:
    yield View(name, parts, columns, key)
    if key:
        yield View(f"{name}_history", parts, columns)


def of_groups(names: Sequence[str]) -> str:
    """The condition that a row of gold is of one of these groups."""
    return f"device_group in {literal(names)}"


def latest(history: str, key: tuple[str, ...]) -> str:
    """A query of rows in their newest revision, as gold.revisions.latest; two rows of one key and one revision both stay."""
    names = ", ".join(key)
    amended = f"select {names}, max(revision) as newest from {history} where revision > 0 group by {names}"
    same = " and ".join(f"rows.{name} = amended.{name}" for name in key)
    # An anti join has a name of its own in each of the three engines that run this.
    kept = "amended.newest is null or rows.revision = amended.newest"
    return f"select rows.* from {history} as rows left join ({amended}) as amended on {same} where {kept}"
