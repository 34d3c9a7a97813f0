"""Vectors of groups with `anomalies`, judged: an incremental of slices.py for each stream of gold, which writes gold.anomalies.

A slice holds vectors of revision 0 whose windows have closed since, and judges again what late rows have amended: see
gold/anomalies/rows.py. At its beginning models that were asked for come in force, and a group that has learned for long enough gets its
first model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gold.anomalies.rows import REACH, ROW, Chain, Judges, JudgingState, Left, judged, nothing
from gold.anomalies.vectors import by_entity
from gold.flows.slices import THE_BEGINNING, Stepped, micros
from gold.schema import ANOMALIES, BESIDE
from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import amendments
from orchestration.jobs.gold.amended_anomalies import OF_VECTOR, Tables, amended
from orchestration.jobs.gold.first_models import prepared
from orchestration.jobs.gold.prefix import Prefix
from orchestration.jobs.gold.slices import ending, most_rows, of_groups_ending
from orchestration.jobs.gold.training import step_of
from orchestration.jobs.ranges import pieces
from orchestration.storage.delta import ask, literal, open_table, written_by
from orchestration.storage.models import MAIN, SHADOW, TRAINED, ModelEvent, begun_after, events_by_group, in_force, quiet_hours, read_model
from orchestration.storage.positions import JUDGED, FlowPosition, FlowStep

SLICE_ROWS = 200_000
"""Vectors of one slice: bounds the memory."""
COLUMNS = [*ANOMALIES.names, *BESIDE["anomalies"].names]
ROLES = (MAIN, SHADOW)
_LEFT = (("model", pa.string()), ("state", pa.binary()), ("features", pa.list_(pa.string())))
CARRIED = pa.schema(
    [
        *((name, pa.string()) for name in ("device_group", "entity")),
        ("past", pa.list_(pa.float64())),
        *((f"{role}_{name}", kind) for role in ROLES for name, kind in _LEFT),
    ]
)
"""Grain: an entity. `past`: values of its last vectors, one vector after another."""
All = dict[tuple[str, str], JudgingState]
"""Entities by their group and name."""


def judged_streams(lake: Lake) -> list["JudgedStream"]:
    """Return what judges the streams that have a group with `anomalies`."""
    return [JudgedStream(stream, lake.generation.gold(stream, "anomalies")) for stream in lake.conf.judged_streams]


@dataclass(frozen=True)
class JudgedStream:
    """The groups with `anomalies` of a stream as slices.Incremental. Models are in force by ends of windows, so its plan says nothing."""

    stream: str
    table: str
    plan: str = ""

    @property
    def name(self) -> str:
        return f"{JUDGED}/{self.stream}"

    def as_begun(self, plan: str) -> "JudgedStream":
        """Itself: a slice that a killed run began has the same models."""
        return self

    def next_step(self, lake: Lake, this: FlowStep, prefix: Prefix) -> FlowStep | None:
        """Return a step up to the prefix, or to where a group has learned enough, or of so many vectors as fit in memory."""
        reached, after = prefix.positions[self.stream], this.after
        closed, name = reached.closed_until_ms, self._vectors(lake)
        last_amended = written_by(lake.table_path(name), lake.app_id(f"{amendments.NAME}/{self.stream}", name))
        end = FlowPosition(prefix.bronze_batch, closed * 1000, closed_until_ms=closed, gold_batch=reached.gold_batch, amended=last_amended)
        if end == after:
            return None
        if (end.until, end.gold_batch, end.amended) == (after.until, after.gold_batch, after.amended):
            return replace(this, after=end)  # no vector has come
        vectors = open_table(lake.table_path(name))
        up_to = self._cut(lake, after.until, prepared(lake.conf, self._groups(lake), vectors, after.until, end.until))
        if up_to < end.until:
            end = replace(end, bronze_batch=after.bronze_batch, until=up_to, closed_until_ms=up_to // 1000)
        return replace(this, number=this.number + 1, up_to=end)

    def step(self, lake: Lake, carried: pa.Table | None, start: FlowPosition, end: FlowPosition) -> Stepped:
        """See slices.Incremental."""
        groups, events = {group.name: group for group in self._groups(lake)}, events_by_group(lake.conf.lake)
        judges = cache(lambda name: judges_of(lake.conf, groups[name], events[name]))
        since = {name: begun_after(events[name]) or THE_BEGINNING for name in groups}
        vectors = self._in_time(lake, {name: max(after, start.until) for name, after in since.items()}, end.until)
        before = CARRIED.empty_table() if carried is None else carried
        is_touched = _keys_in(before, vectors)
        entities, made = _unpacked(before.filter(is_touched), groups), [ROW.empty_table()]
        for key, of_entity in by_entity(vectors, {name: features_of_vector(group) for name, group in groups.items()}):
            rows, entities[key] = judged(judges(key[0]), key[1], of_entity, entities.get(key) or nothing(judges(key[0])))
            made.append(rows)
        in_time = pa.concat_tables(made)
        in_time = in_time.append_column("revision", pa.repeat(pa.scalar(0, pa.int32()), len(in_time)))
        tables = Tables(open_table(lake.table_path(self._vectors(lake))), open_table(lake.table_path(self.table)), in_time, since)
        widest = REACH * max(step_of(lake.conf, group) for group in groups.values())
        rows = pa.concat_tables([in_time, *amended(tables, judges, widest, (start, end))])
        rows = rows.append_column("gold_batch", pa.repeat(pa.scalar(end.gold_batch, pa.int64()), len(rows)))
        return Stepped(rows.select(COLUMNS), pa.concat_tables([before.filter(pc.invert(is_touched)), _packed(entities)]))

    def _vectors(self, lake: Lake) -> str:
        return lake.generation.gold(self.stream, "vectors")

    def _groups(self, lake: Lake) -> list[Group]:
        return [group for group in lake.conf.streams[self.stream] if group.anomalies]

    def _in_time(self, lake: Lake, since: Mapping[str, int], until: int) -> pa.Table:
        query = f"select {OF_VECTOR} from rows where revision = 0 and {of_groups_ending(since, until)}"
        return pa.concat_tables(pieces(lake, self._vectors(lake), query))

    def _cut(self, lake: Lake, after: int, until: int) -> int:
        """Return the end, or that of the last windows which fit in a slice."""
        if most_rows(lake, self._vectors(lake), "window_end", after) <= SLICE_ROWS:
            return until
        names = [group.name for group in self._groups(lake)]
        where = f"revision = 0 and device_group in {literal(names)} and {ending(after, until)}"
        query = f"select window_end, count(*) as count from rows where {where} group by window_end order by window_end"
        rows = ask(query, {"rows": open_table(lake.table_path(self._vectors(lake)))}).read_all()
        totals = np.cumsum(rows["count"].to_numpy())
        if not len(totals) or totals[-1] <= SLICE_ROWS:
            return until
        fitting = max(int(np.searchsorted(totals, SLICE_ROWS, "right")), 1)
        return until if fitting == len(totals) else int(micros(rows["window_end"])[fitting - 1])


def judges_of(conf: Conf, group: Group, events: Sequence[ModelEvent]) -> Judges:
    """Return whatever judges a group; TidemarkError where the file of a model is gone."""
    digests = {event.model_id: event.digest for event in events if event.event == TRAINED}

    def chain(role: str) -> Chain:
        models = in_force(events, role)
        of_role = [(model_id, read_model(conf.lake, model_id, digests.get(model_id, ""))) if model_id else None for _, model_id in models]
        return Chain([after for after, _ in models], of_role)

    return Judges(group.name, features_of_vector(group), step_of(conf, group), chain(MAIN), chain(SHADOW), quiet_hours(events))


def features_of_vector(group: Group) -> tuple[str, ...]:
    return group.vector.features if group.vector else ()


def _keys_in(carried: pa.Table, vectors: pa.Table) -> pa.Array:
    """Say for each entity that is carried whether it is among those of vectors."""
    keys = [pc.binary_join_element_wise(rows["device_group"], rows["entity"], "/") for rows in (carried, vectors)]
    return pc.is_in(keys[0], keys[1].unique())


def _unpacked(carried: pa.Table, groups: Mapping[str, Group]) -> All:
    """Read what the slice before left of entities."""
    return {
        (row["device_group"], row["entity"]): JudgingState(
            np.reshape(np.array(row["past"], np.float64), (-1, len(features_of_vector(groups[row["device_group"]])))),
            *(Left(row[f"{role}_model"], row[f"{role}_state"], tuple(row[f"{role}_features"])) for role in ROLES),
        )
        for row in carried.to_pylist()
    }


def _packed(entities: All) -> pa.Table:
    rows = [
        {"device_group": group, "entity": entity, "past": standing.past.ravel()}
        | {
            f"{role}_{name}": getattr(left, name)
            for role, left in zip(ROLES, (standing.main, standing.shadow), strict=True)
            for name, _ in _LEFT
        }
        for (group, entity), standing in entities.items()
    ]
    return pa.Table.from_pylist(rows, CARRIED)
