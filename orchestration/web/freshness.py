"""How fresh device groups are: a group is as good as its worst device."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gold.spec import Group
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.storage.delta import is_table, literal, path_of
from orchestration.storage.registry import NEWEST
from orchestration.storage.registry import TABLE as DEVICES
from orchestration.storage.tables import LakeStore
from orchestration.web.queries import Queries

MEMBERS = """
  select device_id, unnest(groups) as device_group from ({newest}) where is_known and {which}
"""
SINCE, LONGEST = timedelta(days=1), 15.0
LAST = """
  with newest as (select max(window_end) as newest from gold.aggregates_history),
  last as (select device_group, device_id, max(window_end) as ended_at from gold.aggregates_history, newest
    where window_end > newest - to_seconds({seconds}) and {of_group} group by device_group, device_id)
  select device_group, device_id, ended_at, newest from newest left join last on true
"""


@dataclass(frozen=True)
class Freshness:
    """Of a group. `devices`: that it has, or had a window of in the day before the newest one; `fresh`: see tolerance.

    `worst`: the device whose newest window is the oldest, and when that ended; None where it had none in that day. Without a device, and
    as long as no group has a window, there is no worst one.
    """

    group: str
    label: str
    devices: int
    fresh: int
    worst: str | None = None
    worst_at: datetime | None = None
    newest_at: datetime | None = None

    @property
    def is_stale(self) -> bool:
        return self.worst is not None and self.fresh < self.devices


def freshness(conf: Conf, rows: Callable[[str], Sequence[Mapping[str, Any]]], group: str | None = None) -> Sequence[Freshness]:
    """Of all groups, or of one, those first whose worst device is the oldest. `rows`: of a query."""
    ended: dict[str, dict[str, datetime | None]] = defaultdict(dict)
    which, of_group = (
        ("true", "true") if group is None else (f"list_contains(groups, {literal(group)})", f"device_group = {literal(group)}")
    )
    for row in rows(MEMBERS.format(newest=NEWEST, which=which)) if is_table(path_of(conf.lake, DEVICES)) else ():
        ended[row["device_group"]][row["device_id"]] = None
    newest = None
    for row in rows(LAST.format(seconds=int(SINCE.total_seconds()), of_group=of_group)) if has_gold(conf) else ():
        newest = row["newest"]
        if row["device_id"] is not None:
            ended[row["device_group"]][row["device_id"]] = row["ended_at"]
    chosen = conf.groups.values() if group is None else [conf.groups[group]]
    found = [_of_group(conf, of, ended.get(of.name, {}), newest) for of in chosen]
    return sorted(found, key=lambda of: (of.worst is None, of.worst_at is not None, of.worst_at, of.group))


class NewestFreshness:
    """For a view that is read more often than it pays to ask: it is asked beside it, at most each LONGEST seconds."""

    def __init__(self) -> None:
        """Asks nothing yet."""
        self._known: Sequence[Freshness] = ()
        self._asked: tuple[object, float] = (self, -LONGEST)
        self._asking = threading.Lock()

    def of(self, conf: Conf, queries: Queries, snapshot: object) -> Sequence[Freshness]:
        """As it was when it was asked last; nothing before the first answer."""
        if self._asked[0] != snapshot and time.monotonic() - self._asked[1] > LONGEST and self._asking.acquire(blocking=False):
            self._asked = snapshot, time.monotonic()
            threading.Thread(target=self._ask, args=(conf, queries), daemon=True).start()
        return self._known

    def _ask(self, conf: Conf, queries: Queries) -> None:
        try:
            with suppress(TidemarkError):  # the overview has more to say than this
                self._known = freshness(conf, queries.rows)
        finally:
            self._asking.release()


def has_gold(conf: Conf) -> bool:
    store = LakeStore(conf)
    return any(is_table(store.table_path(store.generation.gold(stream, "aggregates"))) for stream in conf.streams)


def tolerance(conf: Conf, group: Group) -> timedelta:
    """A device is fresh whose newest window ended at most so long before the newest one of all: two windows and the lateness."""
    return timedelta(seconds=2 * max(conf.metrics[name].step_seconds for name in group.metrics) + group.lateness_seconds)


def _of_group(conf: Conf, group: Group, ended: Mapping[str, datetime | None], newest: datetime | None) -> Freshness:
    label = group.label or group.name
    if newest is None or not ended:
        return Freshness(group.name, label, len(ended), 0)
    since = newest - tolerance(conf, group)
    worst, worst_at = min(ended.items(), key=lambda of: (of[1] is not None, of[1] or newest, of[0]))
    fresh = sum(at is not None and at >= since for at in ended.values())
    newest_of_group = max((at for at in ended.values() if at), default=None)
    return Freshness(group.name, label, len(ended), fresh, worst, worst_at, newest_of_group)
