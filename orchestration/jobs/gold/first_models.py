"""Models that come in force at the beginning of a slice: those that were asked for, and the first ones of groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from gold.anomalies.model import NOVELTY, RESIDUAL
from gold.flows.slices import THE_BEGINNING
from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.jobs.gold.slices import of_groups_ending
from orchestration.jobs.gold.training import ENOUGH_SECONDS, SECOND, begins_as_novelty, detector_for, train
from orchestration.storage.delta import OpenTable, ask
from orchestration.storage.models import (
    ASKED,
    BEGUN,
    IN_FORCE,
    MAIN,
    NO_HOURS,
    QUIET,
    SHADOW,
    ModelEvent,
    append_events,
    begun_after,
    event_of,
    events_by_group,
    in_force,
)
from orchestration.utc import to_micros


def prepared(conf: Conf, groups: Sequence[Group], vectors: OpenTable, after: int, until: int) -> int:
    """Put models in force for vectors behind an instant, in microseconds since 1970.

    Returns until when the slice may reach: up to `until`, or to where a group has learned for long enough.
    """
    events = events_by_group(conf.lake)
    _append(conf, events, [event for group in groups for event in _asked_for(group, events[group.name], after)])
    for group in groups:
        if begins_as_novelty(group) and not in_force(events[group.name]):
            novelty = train(conf, group, vectors, after, NOVELTY)
            assert novelty  # it needs no history
            _append(conf, events, [event_of(group.name, IN_FORCE, after, novelty.model_id, MAIN)])
    learning = {group.name: group for group in groups if _learns(group, events[group.name])}
    firsts = _first_ends(vectors, {name: begun_after(events[name]) or after for name in learning}, until)
    return min([until, *(at for name, first in firsts.items() if (at := _first_residual(conf, learning[name], vectors, first, after)))])


def _append(conf: Conf, events: Mapping[str, list[ModelEvent]], new: Sequence[ModelEvent]) -> None:
    """Append rows to gold.models and to those that were read, which are not read again."""
    append_events(conf.lake, new)
    for event in new:
        events[event.device_group].append(event)


def _asked_for(group: Group, events: Sequence[ModelEvent], after: int) -> Iterator[ModelEvent]:
    assert group.anomalies
    if begun_after(events) is None:
        yield event_of(group.name, BEGUN, after)
    hours = msgspec.json.encode(group.anomalies.quiet_hours).decode()
    if hours != next((event.conf for event in reversed(events) if event.event == QUIET), NO_HOURS):
        yield replace(event_of(group.name, QUIET, after), conf=hours)
    for role in (MAIN, SHADOW):
        of_role = [event for event in events if event.role == role]
        if of_role and of_role[-1].event == ASKED:
            earliest = THE_BEGINNING if of_role[-1].after is None else to_micros(of_role[-1].after)
            yield event_of(group.name, IN_FORCE, max(after, earliest), of_role[-1].model_id, role)


def _learns(group: Group, events: Sequence[ModelEvent]) -> bool:
    """Whether the first model of `residual` is to come."""
    assert group.anomalies
    return group.anomalies.detector != NOVELTY and len(in_force(events)) <= begins_as_novelty(group)


def _first_ends(vectors: OpenTable, since: Mapping[str, int], until: int) -> dict[str, int]:
    """Return the end of the first window of each group, by revision 0."""
    if not since:
        return {}
    where = f"revision = 0 and {of_groups_ending(since, until)}"
    rows = ask(f"select device_group, min(window_end) as first from rows where {where} group by device_group", {"rows": vectors}).read_all()
    return dict(zip(rows["device_group"].to_pylist(), rows["first"].cast(pa.int64()).to_pylist(), strict=True))


def _first_residual(conf: Conf, group: Group, vectors: OpenTable, first: int, after: int) -> int | None:
    """Train the first model of `residual` where there is enough to learn from; returns when there may be, if that is later."""
    assert group.anomalies
    length = group.anomalies.learning_seconds
    at = first + (max(length, ENOUGH_SECONDS) if begins_as_novelty(group) else length) * SECOND
    if at > after:
        return at
    detector = detector_for(group, vectors, after)
    trained = train(conf, group, vectors, after, detector) if detector == RESIDUAL else None
    if trained:
        append_events(conf.lake, [event_of(group.name, IN_FORCE, after, trained.model_id, MAIN)])
    return None
