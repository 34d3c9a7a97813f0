"""Models of anomalies: rows of gold.models, and beside them a file each. A replay keeps them.

A command asks that a model is put in force; the job that judges does so at the beginning of its next slice, so that no vector that is
judged already would be judged by another model.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from expectations.wording import hint
from gold.alerts.spec import Hours
from gold.anomalies.model import Model, from_table, to_table
from gold.flows.slices import THE_BEGINNING
from orchestration.conf.model import Conf
from orchestration.errors import ConfError, TidemarkError
from orchestration.location import Location
from orchestration.storage.log import Log
from orchestration.storage.positions import FLOWS, JUDGED
from orchestration.storage.snapshots import find_snapshot
from orchestration.stores.store import ChangedError, Condition
from orchestration.utc import EPOCH, MICROSECOND, from_micros, to_micros

MAIN, SHADOW = "main", "shadow"
BEGUN, TRAINED, ASKED, IN_FORCE, QUIET = "begun", "trained", "asked for", "in force", "quiet hours"
NO_HOURS = "null"


@dataclass(frozen=True)
class ModelEvent:
    """Grain: a group that was begun with, or has other quiet hours; a model that was trained, or is asked for, or came in force.

    Of `begun` `after`: only vectors whose windows end after it are judged; null: all. Of `quiet hours`, these in `conf`, `null` for none:
    they hold for vectors whose windows end after `after`, until others come.
    `role`: main, or shadow: judged beside the main one, for comparison; empty of `trained`. Of `in force` `after`: vectors whose windows
    end after it are judged by the model until another one comes; null: from the first vector on; of `asked for`: the earliest that may
    be. An empty `model_id`: none is in force from then. Of `trained`: `detector`, `features`, `snapshot_id` (null: the vectors that were
    there), `vectors`, `entities`, `threshold`, `conf` (the settings), `version` (of Tidemark), `step_seconds` (from one vector to the
    next; 0: not known), `digest` (of the file).
    """

    at: datetime
    device_group: str
    model_id: str
    event: str
    role: str = ""
    after: datetime | None = None
    detector: str = ""
    features: list[str] = ()  # type: ignore[assignment]  # a list of Arrow
    snapshot_id: int | None = None
    vectors: int = 0
    entities: int = 0
    threshold: float | None = None
    conf: str = ""
    version: str = ""
    step_seconds: int = 0
    digest: str = ""


MODELS = Log("gold.models", ModelEvent, order="at", is_maintained=True)


def write_model(lake: Location, group: str, model: Model) -> tuple[str, str]:
    """Write the file of a model under the next id of its group, and return that, and the digest of the file."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(model), sink)
    content = sink.getvalue().to_pybytes()
    for number in count(1 + sum(event.event == TRAINED for event in MODELS.rows(lake, [("device_group", "=", group)]))):
        with suppress(ChangedError):
            _file(lake, f"{group}-{number}").write(content, Condition.ABSENT)
            return f"{group}-{number}", sha256(content).hexdigest()
    raise AssertionError


@lru_cache(1_000)
def read_model(lake: Location, model_id: str, digest: str) -> Model:
    """Read the file of a model; TidemarkError where it is gone, or is not as it was written."""
    file = _file(lake, model_id)
    try:
        content = file.read()
        if digest not in {"", sha256(content).hexdigest()}:
            raise ValueError("its bytes differ from those that were written")
        return from_table(pq.read_table(pa.BufferReader(content)))
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise TidemarkError(
            f"the model {model_id} at {file} cannot be read: {error}.\n  Restore the file: rows were judged by it."
        ) from error


def in_force(events: Iterable[ModelEvent], role: str = MAIN) -> list[tuple[int, str]]:
    """Return the models of a group in order of time: after which end of a window each is in force, in microseconds since 1970.

    `events`: of the group, in order of `at`.
    """
    return [(after, event.model_id) for after, event in _in_order(events, (IN_FORCE, role))]


def quiet_hours(events: Iterable[ModelEvent]) -> list[tuple[int, Hours | None]]:
    """Return the quiet hours of a group in order of time, as `in_force` does models."""
    hours = ((after, json.loads(event.conf)) for after, event in _in_order(events, (QUIET, "")))
    return [(after, settings and Hours(**settings)) for after, settings in hours]


def _in_order(events: Iterable[ModelEvent], kind: tuple[str, str]) -> list[tuple[int, ModelEvent]]:
    """Return the events of an event and role; one replaces those before it that would hold from the same time on or later."""
    chain = list[tuple[int, ModelEvent]]()
    for event in (event for event in events if (event.event, event.role) == kind):
        after = THE_BEGINNING if event.after is None else to_micros(event.after)
        chain = [*(before for before in chain if before[0] < after), (after, event)]
    return chain


def events_by_group(lake: Location) -> Mapping[str, list[ModelEvent]]:
    """Return all rows by their group, in order of `at`."""
    by_group = defaultdict[str, list[ModelEvent]](list)
    for event in MODELS.rows(lake):
        by_group[event.device_group].append(event)
    return by_group


def append_events(lake: Location, events: Sequence[ModelEvent]) -> None:
    """Append rows behind those that are there, though the clock of this host may be behind that of another, or have gone back."""
    if not events:
        return
    newest = max((before.at for before in MODELS.newest(lake, 1)), default=EPOCH)
    MODELS.append(lake, [replace(event, at=max(event.at, newest + number * MICROSECOND)) for number, event in enumerate(events, 1)])


def event_of(group: str, event: str, after: int, model_id: str = "", role: str = "") -> ModelEvent:
    """Return a row that says what holds behind an instant, in microseconds since 1970."""
    return ModelEvent(datetime.now(UTC), group, model_id, event, role, None if after == THE_BEGINNING else from_micros(after))


def ask_for(conf: Conf, model_id: str, role: str = MAIN) -> None:
    """Ask that a model comes in force; TidemarkError where there is none of that id."""
    trained = {event.model_id: event for event in MODELS.rows(conf.lake, [("event", "=", TRAINED)])}
    if model_id not in trained:
        raise ConfError(f"there is no model {model_id!r}; {hint(model_id, trained, '`tidemark models` lists them')}")
    _ask(conf, trained[model_id].device_group, model_id, role)


def roll_back(conf: Conf, group: str, *, is_shadow: bool = False) -> str:
    """Ask for the model that was in force before the present one; ConfError where there is none. The shadow ends. Returns its id."""
    if group not in conf.groups:
        raise ConfError(f"there is no group {group!r}; {hint(group, conf.groups, '`tidemark models` lists groups and models')}")
    role = SHADOW if is_shadow else MAIN
    events = [event for event in MODELS.rows(conf.lake, [("device_group", "=", group)]) if event.role == role]
    present = events[-1].model_id if events else ""
    former = [model_id for _, model_id in in_force(events, role) if model_id != present]
    if not (present if is_shadow else former):
        has = "has no model beside the one in force" if is_shadow else "has had no other model"
        raise ConfError(f"{group} {has}; `tidemark models` lists them")
    _ask(conf, group, "" if is_shadow else former[-1], role)
    return "" if is_shadow else former[-1]


def _ask(conf: Conf, group: str, model_id: str, role: str) -> None:
    """Ask for vectors behind those that are judged: a replay that comes before the next slice judges these as they were."""
    snapshot, stream = find_snapshot(conf.lake), conf.stream_of.get(group)
    judged = snapshot.closed_until.get(f"{FLOWS}/{JUDGED}/{stream}") if snapshot else None
    append_events(conf.lake, [event_of(group, ASKED, THE_BEGINNING if judged is None else to_micros(judged), model_id, role)])


def listed(lake: Location) -> list[dict[str, Any]]:
    """Return the models for people, the newest first: since when each is in force, or that it is asked for."""
    events = MODELS.rows(lake)
    last = {(event.device_group, event.role, kind): event for event in events for kind in {event.event, ""}}
    uses = {  # another wish takes the place of one, and another shadow that of one
        event.model_id: event
        for event in events
        if (event.event == ASKED and event is last[event.device_group, event.role, ""])
        or (event.event == IN_FORCE and (event.role == MAIN or event is last[event.device_group, SHADOW, IN_FORCE]))
    }
    return [
        {
            "model_id": event.model_id,
            "group": event.device_group,
            "detector": event.detector,
            "trained_at": event.at,
            "vectors": event.vectors,
            "entities": event.entities,
            "features": ", ".join(event.features),
            "threshold": event.threshold,
            "in_force_after": use.after if (use := uses.get(event.model_id)) else None,
            "role": None if use is None else use.role if use.event == IN_FORCE else f"{use.role}, {ASKED}",
        }
        for event in reversed(events)
        if event.event == TRAINED
    ]


def begun_after(events: Iterable[ModelEvent]) -> int | None:
    """Return the end of a window behind which vectors of a group are judged; None where it is not begun with."""
    first = next((event for event in events if event.event == BEGUN), None)
    return None if first is None else THE_BEGINNING if first.after is None else to_micros(first.after)


def _file(lake: Location, model_id: str) -> Location:
    return lake / "models" / f"{model_id}.parquet"
