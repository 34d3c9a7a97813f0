"""Models that come in force at the beginning of a slice: those that were asked for, and the first ones of groups."""

from datetime import UTC, datetime

from gold.anomalies.model import NOVELTY, RESIDUAL
from gold.flows.slices import THE_BEGINNING
from gold.windows.spec import Group
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.training import ENOUGH_SECONDS, SECOND, begins_as_novelty, detector_for, first_end, put_in_force, train
from orchestration.storage.delta import OpenTable
from orchestration.storage.models import ASKED, BEGUN, MAIN, MODELS, SHADOW, ModelEvent, begun_after, in_force
from orchestration.utc import from_micros


def prepared(lake: Lake, group: Group, vectors: OpenTable, after: int) -> int | None:
    """Put models in force for vectors behind an instant, in microseconds since 1970.

    Returns when the group has learned for long enough, if that is later: the slice is to end there.
    """
    events = MODELS.rows(lake.conf.lake, [("device_group", "=", group.name)])
    since = begun_after(events, group.name)
    if since is None:
        since = after
        instant = None if after == THE_BEGINNING else from_micros(after)
        MODELS.append(lake.conf.lake, [ModelEvent(at=datetime.now(UTC), device_group=group.name, model_id="", event=BEGUN, after=instant)])
    for role in (MAIN, SHADOW):
        of_role = [event for event in events if event.role == role]
        if of_role and of_role[-1].event == ASKED:
            put_in_force(lake.conf.lake, group.name, of_role[-1].model_id, after, role)
    if begins_as_novelty(group) and not in_force(events, group.name):
        novelty = train(lake.conf, group, vectors, after, NOVELTY)
        assert novelty  # it needs no history
        put_in_force(lake.conf.lake, group.name, novelty.model_id, max(since, after))
    return _first_residual(lake, group, vectors, after, since)


def _first_residual(lake: Lake, group: Group, vectors: OpenTable, after: int, since: int) -> int | None:
    """Train the first model of `residual` where there is enough to learn from; returns when there may be, if that is later."""
    assert group.anomalies
    models = in_force(MODELS.rows(lake.conf.lake, [("device_group", "=", group.name)]), group.name)
    is_to_come = group.anomalies.detector != NOVELTY and len(models) <= begins_as_novelty(group)
    if not is_to_come or (first := first_end(vectors, group.name, since)) is None:
        return None
    length = group.anomalies.learning_seconds
    at = first + (max(length, ENOUGH_SECONDS) if begins_as_novelty(group) else length) * SECOND
    if at > after:
        return at
    detector = detector_for(group, vectors, after)
    trained = train(lake.conf, group, vectors, after, detector) if detector == RESIDUAL else None
    if trained:
        put_in_force(lake.conf.lake, group.name, trained.model_id, after)
    return None
