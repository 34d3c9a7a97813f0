"""Anomalies of a group beside labelled faults, at the newest snapshot: what its models find, and what ways do that know little."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gold.anomalies.alone import WAYS, z_scores
from gold.anomalies.model import Series
from gold.anomalies.nab import learned
from gold.anomalies.recall import Fault, Raised, Tally, tally
from gold.anomalies.rows import LEARNING
from gold.anomalies.tail import Floats
from gold.windows.spec import Group
from orchestration.audit.evaluation.labelled import LEAST_ROWS
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.storage.delta import ask, open_table
from orchestration.storage.ops_tables import LABELS, labels
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import views
from orchestration.utc import from_iso, to_micros

MODEL = "model"
COLUMNS = ("entity", "begins_at", "ends_at", "kind")
LAYOUT = f"labels are CSV with the columns {','.join(COLUMNS)} and, if you like, metric; times such as 2026-01-05T08:00:00Z"
ROWS = """
  select a.entity, a.window_end, a.score, a.threshold, a.is_anomaly, a.reason, a.expected, a.band, a.share, v.vector
  from ({anomalies}) a join ({vectors}) v on a.entity = v.entity and a.window_end = v.window_end
  where cardinality(v.vector) = {features} and cardinality(a.share) = {features} order by a.entity, a.window_end
"""


@dataclass(frozen=True)
class History:
    """Vectors of one entity. `begin`: the first row that counts, as from there all ways have learned. `raised`: by the group's models."""

    series: Series
    begin: int
    raised: Raised
    thresholds: Floats
    faults: Sequence[Fault]


@dataclass(frozen=True)
class Evaluation:
    """`tallies` by way. `histories` of judged entities. `left_out`: labels that are not counted. `others`: their unknown entities."""

    tallies: Mapping[str, Tally]
    histories: Mapping[str, History]
    left_out: int
    others: Sequence[str] = ()


def labels_of_group(conf: Conf, group: str) -> list[Fault]:
    """Read the faults that people have labelled on the page; TidemarkError where there is none."""
    faults = [label for label in labels(conf.lake, group) if label.is_fault]
    if not faults:
        raise TidemarkError(f"{LABELS.table} has no fault of {group} yet: label anomalies on the page, or give a file with --labels.")
    return [Fault(one.entity, to_micros(one.begins_at), to_micros(one.ends_at), one.kind) for one in faults]


def labels_in(file: Path) -> list[Fault]:
    """Read a file of labels; TidemarkError names the line that is wrong."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = [*csv.DictReader(opened, restval="")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TidemarkError(f"{file} cannot be read: {error}.\n  {LAYOUT}.") from error
    if not rows or any(column not in rows[0] for column in COLUMNS):
        raise TidemarkError(f"{file} has {'other columns' if rows else 'no label'}.\n  {LAYOUT}.")
    return [_label(f"{file}:{line}", row) for line, row in enumerate(rows, 2)]


def _label(where: str, row: Mapping[str, str]) -> Fault:
    try:
        begins, ends = (to_micros(from_iso(row[name])) for name in ("begins_at", "ends_at"))
    except ValueError as error:
        raise TidemarkError(f"{where}: {error}.\n  {LAYOUT}.") from error
    if ends < begins:
        raise TidemarkError(f"{where}: the fault ends before it begins.")
    return Fault(row["entity"], begins, ends, row["kind"] or "fault", row.get("metric", ""))


def evaluate_group(conf: Conf, group: Group, faults: Sequence[Fault]) -> Evaluation:
    """Judge by labels; TidemarkError where none of them is of an entity of the group, or nothing is judged yet."""
    rows = judged_vectors(conf, group)
    others = sorted({fault.entity for fault in faults} - rows.keys())
    if others and all(fault.entity in others for fault in faults):
        raise TidemarkError(f"gold.{group.name}_anomalies has no entity {others[0]!r}: it has {', '.join([*rows][:8]) or 'none'}.")
    histories = dict(_histories(rows, group.vector.features if group.vector else (), faults))
    tallies = dict[str, Tally]()
    for history in histories.values():
        for way, raised in _ways(history):
            tallies[way] = tallies.get(way, Tally()) + tally(history.series.ends, history.begin, history.faults, raised)
    if not tallies:
        raise TidemarkError(f"no entity of {group.name} has {LEAST_ROWS} vectors and a score yet: go on with `{conf.command} run --once`.")
    return Evaluation(tallies, histories, len(faults) - len(tallies[MODEL].faults), others)


def _ways(history: History) -> Iterator[tuple[str, Raised]]:
    yield MODEL, history.raised
    for way in ("moving z", "alarm clock", "always quiet"):
        alarms, scores = WAYS[way](history.series, history.begin), np.zeros(len(history.series.ends))
        scores[alarms] = 1.0
        yield way, Raised(alarms, z_scores(history.series, history.begin) if way == "moving z" else scores)


def judged_vectors(conf: Conf, group: Group) -> dict[str, pa.Table]:
    """Read vectors with what is said of each, in their newest revision at the newest snapshot, by entity and in order of time."""
    names = [f"gold.{group.name}_anomalies", f"gold.{group.name}_vectors"]
    by_name = views(conf, find_snapshot(conf.lake), " ".join(names))
    if group.vector is None or any(name not in by_name for name in names):
        raise TidemarkError(f"{names[0]} is not there yet: write `anomalies: {{}}` at the group, then `{conf.command} run --once`.")
    (anomalies,), (vectors,) = (by_name[name].parts for name in names)
    tables = {name: open_table(part.location, part.version) for name, part in (("a_rows", anomalies), ("v_rows", vectors))}
    of_both = [by_name[name].select([table]) for name, table in zip(names, tables, strict=True)]
    sql = ROWS.format(anomalies=of_both[0], vectors=of_both[1], features=len(group.vector.features))
    rows = ask(sql, tables).read_all()
    if not len(rows):
        return {}
    entities, begins = np.unique(rows["entity"].to_numpy(zero_copy_only=False).astype(str), return_index=True)
    rows = rows.drop_columns("entity").set_column(rows.schema.get_field_index("reason") - 1, "reason", rows["reason"].cast(pa.string()))
    ends = [*begins[1:].tolist(), len(rows)]
    return {entity: rows.slice(begin, end - begin) for entity, begin, end in zip(entities.tolist(), begins.tolist(), ends, strict=True)}


def matrix(lists: pa.ChunkedArray, width: int) -> Floats:
    """Return lists as a row each; NaN for null, and for what is no number."""
    values = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(float).reshape(-1, width)
    return np.where(np.isfinite(values), values, np.nan)


def _histories(rows: Mapping[str, pa.Table], features: Sequence[str], faults: Sequence[Fault]) -> Iterator[tuple[str, History]]:
    for entity, of_entity in rows.items():
        ends = of_entity["window_end"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        is_judged = of_entity["reason"].to_numpy(zero_copy_only=False) != LEARNING
        begin = max(int(is_judged.argmax()), learned(len(ends)))
        if len(ends) < LEAST_ROWS or not is_judged.any():
            continue
        raised, thresholds = _raised(of_entity, features)
        mine = [fault for fault in faults if fault.entity == entity]
        yield entity, History(Series(ends, matrix(of_entity["vector"], len(features))), begin, raised, thresholds, mine)


def _raised(rows: pa.Table, features: Sequence[str]) -> tuple[Raised, Floats]:
    scores, thresholds = (rows[name].to_numpy(zero_copy_only=False).astype(float) for name in ("score", "threshold"))
    firsts = np.nan_to_num(matrix(rows["share"], len(features))).argmax(axis=1).tolist()
    alarms: list[int] = np.flatnonzero(rows["is_anomaly"].to_numpy(zero_copy_only=False)).tolist()
    return Raised(alarms, np.nan_to_num(scores), [features[number] for number in firsts]), thresholds
