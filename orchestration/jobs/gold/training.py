"""Models of anomalies: trained on vectors of gold, and put in force. Vectors are read some entities after another."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain

import msgspec
import pyarrow as pa

from expectations.wording import hint
from gold.anomalies.detectors import DETECTORS
from gold.anomalies.model import NOVELTY, RESIDUAL, Series
from gold.anomalies.residual import has_half
from gold.anomalies.vectors import matrix, runs
from gold.schema import VECTOR_KEY
from gold.windows.revisions import latest
from gold.windows.spec import Group
from gold.windows.vectors import base_of, features_of
from orchestration import crash
from orchestration.conf.model import Conf
from orchestration.errors import ConfError, TidemarkError
from orchestration.jobs.ranges import pieces_of
from orchestration.storage.bindings import changed_plan
from orchestration.storage.confs import refusal
from orchestration.storage.delta import OpenTable, ask, instant, literal, open_table
from orchestration.storage.generations import numbered
from orchestration.storage.models import TRAINED, ModelEvent, append_events, write_model
from orchestration.storage.row_pieces import gather
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore
from orchestration.utc import to_micros

LEAST_VECTORS = 100
"""An entity is trained with so many vectors that have half of the features, at least."""
ENOUGH_SECONDS, ENOUGH_VECTORS = 1_209_600, 2_000
"""From so much history on one feature is judged by `residual`: two weeks, and so many vectors of an entity."""
SECOND = 1_000_000


def step_of(conf: Conf, group: Group) -> int:
    """Return the time from one vector to the next, in microseconds."""
    assert group.vector
    return base_of(features_of(group, group.vector), conf.metrics).every_seconds * SECOND


def judged_features(group: Group) -> tuple[str, ...]:
    """Return the features of a group's vector that are judged."""
    assert group.vector
    assert group.anomalies
    return group.anomalies.features or group.vector.features


def begins_as_novelty(group: Group) -> bool:
    """Whether the first model is one of `novelty`, which needs no history."""
    assert group.anomalies
    return group.anomalies.detector == NOVELTY or (group.anomalies.detector == "auto" and len(judged_features(group)) == 1)


def detector_for(group: Group, vectors: OpenTable, until: int) -> str:
    """Choose the detector of a model that is trained on vectors whose windows end at an instant or before."""
    assert group.anomalies
    if group.anomalies.detector != "auto":
        return group.anomalies.detector
    is_enough = len(judged_features(group)) > 1 or max(_counts(vectors, group.name, until).values(), default=0) >= ENOUGH_VECTORS
    return RESIDUAL if is_enough else NOVELTY


def train(conf: Conf, group: Group, vectors: OpenTable, until: int, detector: str, snapshot_id: int | None = None) -> ModelEvent | None:  # noqa: PLR0917
    """Train a model on the newest revisions of vectors whose windows end at `until` or before; None where there is too little of them.

    Returns the row that gold.models has of it.
    """
    assert group.anomalies
    counts = _counts(vectors, group.name, until)
    entities = {entity: count for entity, count in counts.items() if count >= LEAST_VECTORS}
    history = _history(vectors, group, entities, until)
    first = next(history, None)
    if first is None and DETECTORS[detector].needs_training:
        return None
    of_all = chain([first] if first else [], history)
    model = DETECTORS[detector].train(judged_features(group), step_of(conf, group), of_all, group.anomalies.false_alarms_per_week)
    model_id, digest = write_model(conf.lake, group.name, model)
    crash.point(crash.Point.MODEL_WRITTEN)
    event = ModelEvent(
        at=datetime.now(UTC),
        device_group=group.name,
        model_id=model_id,
        event=TRAINED,
        detector=detector,
        features=[*model.features],
        step_seconds=model.step // SECOND,
        snapshot_id=snapshot_id,
        vectors=sum(entities.values()),
        entities=len(model.fitted) or len(counts),
        threshold=model.rule.threshold,
        conf=msgspec.json.encode(group.anomalies).decode(),
        version=version("tidemark"),
        digest=digest,
    )
    append_events(conf.lake, [event])
    return event


def train_on_snapshot(conf: Conf, name: str, snapshot_id: int | None = None) -> ModelEvent | None:
    """Train a model of a group on what a snapshot pins, by default the newest one; see train. ConfError where the group is not judged."""
    group = conf.groups.get(name)
    if group is None or group.anomalies is None:
        judged = [other for other, of_conf in conf.groups.items() if of_conf.anomalies]
        raise ConfError(f"{name!r} is no group with `anomalies`; {hint(name, judged, 'add them to a group in groups.yml')}")
    snapshot = find_snapshot(conf.lake, snapshot_id)
    if snapshot is None:
        raise TidemarkError(f"the lake at {conf.lake} has no snapshot to train on: bring it up to date with `tidemark run --once`.")
    if held := changed_plan(LakeStore(conf), f"gold.{group.stream}"):
        raise refusal(LakeStore(conf), conf.folder, held)
    generation = numbered(conf.lake, snapshot.generation)
    table = generation.gold(group.stream, "vectors")
    if group.stream not in snapshot.closed_until or table not in snapshot.versions:
        raise TidemarkError(f"the snapshot has no vectors of {name} yet: go on with `{conf.command} run --once`.")
    vectors, until = (
        open_table(generation.table(conf.lake, table), snapshot.versions[table]),
        to_micros(snapshot.closed_until[group.stream]),
    )
    return train(conf, group, vectors, until, detector_for(group, vectors, until), snapshot.snapshot_id)


def _counts(vectors: OpenTable, group: str, until: int) -> dict[str, int]:
    """Count the vectors of each entity."""
    where = f"device_group = {literal(group)} and window_end <= {instant(until)}"
    query = f"select entity, count(distinct window_end) as count from rows where {where} group by entity order by entity"
    rows = ask(query, {"rows": vectors}).read_all()
    return dict(zip(rows["entity"].to_pylist(), rows["count"].to_pylist(), strict=True))


def _history(vectors: OpenTable, group: Group, entities: dict[str, int], until: int) -> Iterator[tuple[str, Series]]:
    """Yield the vectors of entities that have enough of them."""
    assert group.vector
    features = group.vector.features
    at = [features.index(feature) for feature in judged_features(group)]
    for names in gather(entities, lambda name: (entities[name], 0)):
        where = f"device_group = {literal(group.name)} and window_end <= {instant(until)} and entity in {literal(names)}"
        query = f"select device_group, entity, window_end, vector, filled, revision from rows where {where}"
        rows = latest(pa.concat_tables(pieces_of(vectors, query)), VECTOR_KEY).sort_by([(name, "ascending") for name in VECTOR_KEY])
        values, ends = matrix(rows, features)[:, at], rows["window_end"].cast(pa.int64()).to_numpy()
        for name, begin, end in runs(rows["entity"]):
            of_entity = Series(ends[begin:end], values[begin:end])
            if has_half(of_entity.values).sum() >= LEAST_VECTORS:
                yield name, of_entity
