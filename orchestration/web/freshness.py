"""How fresh device groups are: a group is as good as its worst device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.storage.delta import is_table, literal, path_of
from orchestration.storage.registry import NEWEST
from orchestration.storage.registry import TABLE as DEVICES
from orchestration.storage.tables import LakeStore

SINCE = timedelta(days=1)
KNOWN = "select unnest(groups) as device_group, device_id from ({newest}) where is_known and {which}"
NEWEST_WINDOW = "select max(window_end) as newest from gold.aggregates_history"
ENDED = """
  select device_group, device_id, max(window_end) as ended_at from gold.aggregates_history, newest
  where window_end > newest - to_seconds({seconds}) and {of_group} group by all
"""
OF_GROUPS = """
  with newest as ({newest}), ended as ({ended}),
  every as (select * from ({known}) full join ended using (device_group, device_id))
  select device_group, count(*) as devices, max(ended_at) as newest_at, max(newest) is not null as has_windows,
    first(device_id order by ended_at nulls first, device_id) as worst, first(ended_at order by ended_at nulls first) as worst_at,
    [{fresh}] as fresh
  from every, newest group by device_group
"""
FRESH = "count(*) filter (ended_at >= newest - to_seconds({seconds}))"
NO_WINDOW = "select null::timestamptz as newest"
NONE_ENDED = "select '' as device_group, '' as device_id, null::timestamptz as ended_at limit 0"
NONE_KNOWN = "select '' as device_group, '' as device_id limit 0"


@dataclass(frozen=True)
class Freshness:
    """The freshness of a group. `devices`: those it has, or that had a window in the day before the newest one; `fresh`: see tolerance.

    `worst`: the device whose newest window is the oldest, and when that ended; None if it had none in that day. There is no worst device
    without devices, or while no group has a window.
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
    """List the freshness of all groups, or of one, the group with the oldest worst device first. `rows`: runs a query."""
    of_known = of_ended = "true"
    chosen = [*conf.groups.values()]
    if group is not None:
        of_known, of_ended = f"list_contains(groups, {literal(group)})", f"device_group = {literal(group)}"
        chosen = [conf.groups[group]]
    tolerances = {one.name: tolerance(conf, one) for one in chosen}
    different = sorted({*tolerances.values()})  # few, even of many groups
    has_devices, has_windows = is_table(path_of(conf.lake, DEVICES)), has_gold(conf)
    query = OF_GROUPS.format(
        known=KNOWN.format(newest=NEWEST, which=of_known) if has_devices else NONE_KNOWN,
        newest=NEWEST_WINDOW if has_windows else NO_WINDOW,
        ended=ENDED.format(seconds=int(SINCE.total_seconds()), of_group=of_ended) if has_windows else NONE_ENDED,
        fresh=", ".join(FRESH.format(seconds=lag.total_seconds()) for lag in different),
    )
    by_name = {row["device_group"]: row for row in rows(query)} if has_devices or has_windows else {}
    groups = [_of_group(one, by_name.get(one.name), different.index(tolerances[one.name])) for one in chosen]
    return sorted(groups, key=lambda one: (one.worst is None, one.worst_at is not None, one.worst_at, one.group))


def has_gold(conf: Conf) -> bool:
    store = LakeStore(conf)
    return any(is_table(store.table_path(store.generation.gold(stream, "aggregates"))) for stream in conf.streams)


def tolerance(conf: Conf, group: Group) -> timedelta:
    """How far a device may lag behind the newest window before it counts as stale: two windows plus the lateness."""
    return timedelta(seconds=2 * max(conf.metrics[name].longest_seconds for name in group.metrics) + group.lateness_seconds)


def _of_group(group: Group, row: Mapping[str, Any] | None, tolerance_index: int) -> Freshness:
    label = group.label or group.name
    if row is None or not row["has_windows"]:
        return Freshness(group.name, label, row["devices"] if row else 0, 0)
    return Freshness(group.name, label, row["devices"], row["fresh"][tolerance_index], row["worst"], row["worst_at"], row["newest_at"])
