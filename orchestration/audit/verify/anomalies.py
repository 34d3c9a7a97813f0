"""gold.anomalies once more: vectors of a group by the models in force, as their files hold them.

Vectors are those of gold.vectors, which `verify` compares in the same run. Where late rows have changed some, those in time are computed
from what came in time for them. Instants are microseconds since 1970.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.spec import Hours
from gold.windows.spec import Group
from orchestration.audit.verify.anomaly_chains import AGAIN, EXPECTED, IN_TIME, Models, Rules, Vectors, rows_of_entity
from orchestration.audit.verify.anomaly_scores import UNSEEN, stored_model
from orchestration.audit.verify.compare import Comparison, Difference, Outcome, compared
from orchestration.audit.verify.first_windows import make_first_emitted
from orchestration.audit.verify.gold_windows import EVER, step_seconds
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import VECTORS, column_names, record
from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.delta import literal, path_of, rows_of
from orchestration.utc import to_micros

KEY = ("entity", "window_start", "judged")
CELLS = """
  window_end TIMESTAMP, score DOUBLE, threshold DOUBLE, is_anomaly BOOLEAN, reason VARCHAR, expected DOUBLE[], band DOUBLE[],
  share DOUBLE[], model VARCHAR, shadow_score DOUBLE
"""
ANOMALIES = f"entity VARCHAR, window_start TIMESTAMP, {CELLS}, revision INTEGER"
NEAR = dict.fromkeys(("score", "threshold", "shadow_score"), "size") | dict.fromkeys(("expected", "band"), "list:sizes")
NEAR |= {"share": "list:share_sizes"}
RECORDED = f"""
  create or replace temp table recorded_anomalies as
  select *, '{IN_TIME}' as judged from all_anomalies where revision = 0
  union all select n.*, '{AGAIN}' as judged
  from (from all_anomalies qualify revision = max(revision) over (partition by entity, window_start)) n
  left join (select entity, window_start, true as is_again from expected_anomalies where judged = '{AGAIN}') e using (entity, window_start)
  where revision > 0 or is_again
"""
NEWEST = "(from all_vectors qualify revision = max(revision) over (partition by entity, window_end))"
AMENDED = f"select entity, list(epoch_us(window_end) order by window_end) from {NEWEST} where revision > 0 group by entity"
OF_VECTORS = """
  select entity, epoch_us(window_start) as starts, epoch_us(window_end) as ends, vector, list_concat(missing, filled) as holes
  from {} order by entity, window_end
"""
BEGINNING = -(2**62)
NONE = Vectors([], [], np.empty((0, 0)))


class LostModelError(Exception):
    """The file of a model by which rows were judged cannot be read."""


def anomaly_outcome(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, group: Group) -> Outcome:
    """Compare rows of a group with what its vectors and models give: those of revision 0, and where late rows came the newest ones too."""
    table, of_group = f"gold.{group.name}_anomalies", f"device_group = {literal(group.name)}"
    try:
        rules, since = _rules(conf, group)
    except LostModelError as lost:
        return _of_lost(group, lost)
    until = to_micros(snapshot.closed_until.get(f"gold.flows/anomalies/{group.stream}", EVER))
    record(store, snapshot, snapshot.generation.gold(group.stream, "vectors"), "all_vectors", VECTORS, where=of_group)
    record(store, snapshot, snapshot.generation.gold(group.stream, "anomalies"), "all_anomalies", ANOMALIES, where=of_group)
    amended, newest = dict(store.execute(AMENDED).fetchall()), _vectors(store, NEWEST, rules.features)
    if amended:
        make_first_emitted(store, snapshot, conf, group)
    in_time = _vectors(store, "vectors", rules.features) if amended else newest

    def expected() -> Iterator[pa.RecordBatch]:
        for entity in in_time.keys() | newest.keys():
            first, last = (vectors.get(entity, NONE).between(since + 1, until) for vectors in (in_time, newest))
            yield from rows_of_entity(rules, entity, first, last, [end for end in amended.get(entity, ()) if end > since])

    store.register("arriving", pa.RecordBatchReader.from_batches(EXPECTED, expected()))
    store.execute("create or replace temp table expected_anomalies as from arriving")
    store.unregister("arriving")
    store.execute(RECORDED)
    computed = "(select *, 1.0 as size from expected_anomalies)"
    return compared(store, "recorded_anomalies", computed, Comparison(table, KEY, column_names(CELLS), NEAR))


def lost_models(conf: Conf) -> Iterator[Outcome]:
    """Yield an outcome for each group with a model that cannot be read: rows that are proved were judged by it, and next ones will be."""
    for group in (group for group in conf.groups.values() if group.anomalies):
        try:
            _rules(conf, group)
        except LostModelError as lost:
            yield _of_lost(group, lost)


def _of_lost(group: Group, lost: LostModelError) -> Outcome:
    table = f"gold.{group.name}_anomalies"
    return Outcome(table, 0, 1, (Difference(table, str(lost.args[0]), "lost model", str(lost.__cause__), None),))


def _rules(conf: Conf, group: Group) -> tuple[Rules, int]:
    """Return how a group is judged, and the end of a window behind which it is."""
    assert group.vector
    of_group = [event for event in rows_of(path_of(conf.lake, "gold.models")) if event["device_group"] == group.name]
    events = sorted(of_group, key=itemgetter("at"))
    main, shadow = (_models(conf.lake, events, role) for role in ("main", "shadow"))
    step = step_seconds(group, group.vector, conf.metrics) * 1_000_000
    since = next((_after(event) for event in events if event["event"] == "begun"), BEGINNING)
    hours = [(_after(event), json.loads(event["conf"])) for event in events if event["event"] == "quiet hours"]
    return Rules(group.vector.features, step, main, shadow, [(after, of_conf and Hours(**of_conf)) for after, of_conf in hours]), since


def _models(lake: Location, events: Sequence[Mapping[str, Any]], role: str) -> Models:
    """Read the models of one role, each once; LostModelError where a file is gone or damaged."""
    in_force = [event for event in events if (event["event"], event["role"]) == ("in force", role)]
    models = dict.fromkeys(event["model_id"] for event in in_force)
    for model_id in filter(None, models):
        file = lake / "models" / f"{model_id}.parquet"
        digests = {event.get("digest") for event in events if (event["event"], event["model_id"]) == ("trained", model_id)}
        try:
            models[model_id] = stored_model(model_id, content := file.read())
            if not digests & {sha256(content).hexdigest(), "", None}:
                raise ValueError("its bytes differ from those that were written")
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise LostModelError(file) from error
    return [(_after(event), models[event["model_id"]]) for event in in_force]


def _after(event: Mapping[str, Any]) -> int:
    return BEGINNING if event["after"] is None else to_micros(event["after"])


def _vectors(store: duckdb.DuckDBPyConnection, relation: str, features: Sequence[str]) -> dict[str, Vectors]:
    """Read vectors by entity; NaN where a feature is missing, filled or no number."""
    rows = store.sql(OF_VECTORS.format(relation)).to_arrow_table().combine_chunks()
    numbers = pc.fill_null(pc.list_flatten(rows["vector"]), np.nan).to_numpy()
    values = np.where(np.abs(numbers) < UNSEEN, numbers, np.nan).reshape(len(rows), len(features))
    column = {feature: number for number, feature in enumerate(features)}
    for row, holes in enumerate(rows["holes"].to_pylist()):
        values[row, [column[feature] for feature in holes]] = np.nan
    starts, ends, entities = rows["starts"].to_pylist(), rows["ends"].to_pylist(), rows["entity"].to_pylist()
    first = [n for n, entity in enumerate(entities) if n == 0 or entity != entities[n - 1]]
    spans = zip(first, [*first[1:], len(rows)], strict=True)
    return {entities[begin]: Vectors(starts[begin:end], ends[begin:end], values[begin:end]) for begin, end in spans}
