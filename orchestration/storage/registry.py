"""The device registry, `silver.devices`: one row a version of a device, append only; the streams read it again at every micro-batch.

A declaration counts for events ingested from its `registered_at` on, until the next one of the same device. conf and loaded files both
declare devices; where they differ, whoever changed last holds. The table is written through deltalake alone, so that no other JVM ever
races the one that runs the flows.

`silver.device_corrections` belongs to a generation: declarations that a replay or a retry of the quarantine put in the place of those of
the same device and instant, or beside them. So an earlier generation keeps what it was computed with.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gold.windows.spec import Group
from orchestration.conf.device_file import devices_in
from orchestration.conf.devices import Membership
from orchestration.conf.model import Conf, Device
from orchestration.location import Location
from orchestration.storage.commit import append_rows, create, widen
from orchestration.storage.delta import is_table, path_of, python_rows, rows_of, table_of
from orchestration.storage.generations import Generation
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.lease import holding
from orchestration.utc import EPOCH, MICROSECOND
from silver.account import among
from silver.schema import DEVICES

TABLE = "silver.devices"
CONF = "conf"
ALWAYS = EPOCH
# A micro-batch that is running has read the registry already, and its events came before it began: a version for a later instant
# than any of them gives the same answer to whoever asks, and whenever.
NOTICE = timedelta(seconds=10)

NEWEST = """
  select * from (from silver.devices union all by name select null::timestamptz as moved_at where false)
  qualify row_number() over (partition by device_id order by registered_at desc, moved_at desc nulls last) = 1
"""
"""SQL of DuckDB for the same rows that `current` returns. A lake that no run has seen since there are moves has no column of them."""

Version = dict[str, Any]
"""One row of the table."""
Declaration = list[Version]
"""All rows of one device and one `registered_at`, in order of `moved_at`; the last one says where the device is now."""


def sync(lake: Location, devices: Mapping[str, Device], now: datetime) -> int:
    """Append what changed in conf since it was last synced, as of `now`; returns the number of versions.

    A device that left conf becomes unknown, unless a file has declared it since.
    """

    def changes(history: list[Version]) -> Iterator[Version]:
        from_conf = newest(version for version in history if version["origin"] == CONF)
        for device in devices.values():
            if not same(from_conf.get(device.device_id), version := as_version(device, CONF)):
                yield version
        for device_id, version in newest(history).items():
            if device_id not in devices and version["origin"] == CONF and version["is_known"]:
                yield version | {"is_known": False, "moved_at": None}

    return append_changes(lake, changes, now)


def load(lake: Location, file: Path, now: datetime, groups: Mapping[str, Group] | None = None) -> int:
    """Append what the file says differently from the registry, to count from shortly after `now`; the number of versions.

    Repeated, it appends nothing. ConfError names every bad row, and then nothing is appended; so is a group that is not one of `groups`.
    """
    devices = devices_in(file, groups)

    def changes(history: list[Version]) -> Iterator[Version]:
        registered = newest(history)
        for device in devices:
            current = registered.get(device.device_id)
            # What only conf has said so far is said again: the device stays known when it leaves conf.
            if current is None or current["origin"] == CONF or not same(current, as_version(device, file.name)):
                yield as_version(device, file.name)

    return append_changes(lake, changes, now + NOTICE)


def load_since(store: Location, generation: Generation, file: Path, since: datetime) -> int:
    """Let devices of a file that is loaded count from `since` on for events that came while they were not known; how many.

    These events may be in quarantine, and nowhere else. Where a device was known, its past stays as it is.
    """
    names = {device.device_id for device in devices_in(file)}
    corrections = [*mended(in_force(store, generation), names, since)]
    correct(store, generation, corrections)
    return len({row["device_id"] for row in corrections})


def current(lake: Location) -> list[Version]:
    """The newest version of each device, by device_id, also where it only counts from shortly on; empty where there is no registry."""
    return sorted(newest(versions(lake)).values(), key=lambda version: version["device_id"])


def versions(lake: Location, device_id: str | None = None) -> list[Version]:
    rows = rows_of(path_of(lake, TABLE), filters=None if device_id is None else [("device_id", "=", device_id)])
    return [{"moved_at": None} | row for row in rows]  # a lake that no run has seen since there are moves has no such column


def append_changes(lake: Location, changes: Callable[[list[Version]], Iterable[Version]], at: datetime) -> int:
    """Append the changes to the history as of `at`, or as of ever if they are the first."""
    # Two that append at once would each miss what the other appends, and register a device twice for the same instant.
    with holding(path_of(lake, TABLE).local.with_name(".devices.lock")):
        create(path_of(lake, TABLE), DEVICES)
        widen(path_of(lake, TABLE), DEVICES)
        history = versions(lake)
        before = newest(history)
        rows = [
            row | {"registered_at": effective(before.get(row["device_id"]), at) if history else ALWAYS}
            for version in changes(history)
            for row in ([version] if version["device_id"] in before else first_declaration(version))
        ]
        if rows:
            append_rows(path_of(lake, TABLE), pa.Table.from_pylist(rows, schema=DEVICES))
        return len({row["device_id"] for row in rows})


def effective(before: Version | None, at: datetime) -> datetime:
    """Return `at`, or just after the newest version of the device where that is for a later instant: what is said last must hold."""
    return max(at, before["registered_at"] + MICROSECOND) if before else at


def as_version(device: Device, origin: str) -> Version:
    """The row of a device, but for its instant."""
    said = {"zone": device.zone, "groups": list(device.groups), "label": device.label, "is_known": True}
    return {"device_id": device.device_id, "origin": origin, "moved_at": device.since, **said}


def first_declaration(version: Version) -> Declaration:
    """Rows of a device of which nothing was recorded: before it moved it was in no group."""
    moved_at = version["moved_at"]
    return [version] if moved_at is None else [version | {"zone": None, "groups": [], "moved_at": None}, version]


def with_declared(registered: Iterable[Version], devices: Iterable[Device]) -> pa.Table:
    """Rows of DEVICES: versions that are registered, and devices of conf of which nothing was recorded."""
    declared = (row for device in devices for row in first_declaration(as_version(device, CONF)))
    return as_table([*registered, *(row | {"registered_at": ALWAYS} for row in declared)])


def same(left: Version | None, right: Version) -> bool:
    """Whether both say the same of the device, whoever says it and whenever."""
    return left is not None and all(left[name] == right[name] for name in ("zone", "groups", "label", "is_known", "moved_at"))


def newest(history: Iterable[Version]) -> dict[str, Version]:
    """The version of each device that holds in the end."""
    return {row["device_id"]: row for row in sorted(history, key=lambda row: (row["registered_at"], row["moved_at"] or ALWAYS))}


def declarations(history: Iterable[Version]) -> dict[str, dict[datetime, Declaration]]:
    """All declarations by device and instant."""
    by_device: defaultdict[str, defaultdict[datetime, Declaration]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(history, key=lambda row: row["moved_at"] or ALWAYS):
        by_device[row["device_id"]][row["registered_at"]].append(row)
    return {device_id: dict(by_instant) for device_id, by_instant in by_device.items()}


def in_force(lake: Location, generation: Generation) -> pa.Table:
    """Rows of DEVICES as the generation counts devices: the registry with the corrections of the generation."""
    registered = _table(path_of(lake, TABLE))
    corrections = _table(generation.table(lake, CORRECTIONS))
    return corrected(registered, corrections) if len(corrections) else registered


def counting_with(lake: Location, corrections: Collection[Version]) -> pa.Table:
    """Rows of DEVICES as a generation with these corrections would count devices."""
    return corrected(_table(path_of(lake, TABLE)), as_table(corrections))


def corrected(registered: pa.Table, corrections: pa.Table) -> pa.Table:
    """The registry with corrections in the place of the declarations of the same device and instant."""
    return pa.concat_tables([among(registered, ["device_id", "registered_at"], corrections, "left anti"), corrections])


def correct(lake: Location, generation: Generation, rows: Collection[Version]) -> None:
    """Append corrections of a generation; nothing for none."""
    if rows:
        append_rows(generation.table(lake, CORRECTIONS), as_table(rows))


def as_table(rows: Iterable[Version]) -> pa.Table:
    return pa.Table.from_pylist([*rows], schema=DEVICES)


def mended(counting: pa.Table, names: Collection[str], since: datetime = ALWAYS) -> Iterator[Version]:
    """Corrections by which devices that are known now were never unknown, from `since` on. `counting`: as of `in_force`."""
    of_names = counting.filter(pc.is_in(counting["device_id"], pa.array(names, pa.string())))
    for by_instant in declarations(python_rows(of_names)).values():
        instants = sorted(by_instant)
        now = by_instant[instants[-1]]
        is_unknown = {instant: not declared[-1]["is_known"] for instant, declared in by_instant.items()}
        gaps = [instant for instant in instants if is_unknown[instant]] if now[-1]["is_known"] else []
        if instants[0] > ALWAYS and now[-1]["is_known"]:
            gaps.insert(0, ALWAYS)
        for gap in gaps:
            end = next(instant for instant in instants if instant > gap and not is_unknown[instant])
            if (start := max(gap, since)) < end:
                yield from (row | {"registered_at": start} for row in now)


def as_declared(conf: Conf, counting: pa.Table, start: datetime = ALWAYS) -> list[Version]:
    """The corrections of a generation that counts devices, for events ingested from `start` on, as conf declares them.

    `counting`: as of `in_force` in the generation before. A device that a file declared last, or that left conf, keeps its dates by
    ingestion; of its groups those that conf still has, and those that name it by a pattern now.
    """
    membership = Membership({name: group.devices for name, group in conf.groups.items()})
    registered, before = declarations(versions(conf.lake)), declarations(python_rows(counting))
    corrections: list[Version] = []
    for device_id in dict.fromkeys([*before, *conf.devices]):
        history, recorded = before.get(device_id, {}), registered.get(device_id, {})
        device = conf.devices.get(device_id)
        wanted = {instant: declared for instant, declared in history.items() if instant < start}
        if device is not None and _is_declared_by_conf(version := as_version(device, CONF), recorded):
            if not history:
                wanted[start] = first_declaration(version)
            elif not (wanted and same(wanted[max(wanted)][-1], version)):
                wanted[start] = _moved(history.get(start, []), version)
            wanted |= {instant: _moved(declared, version) for instant, declared in history.items() if instant >= start}
        else:
            wanted |= {
                instant: [_regrouped(row, conf.groups, membership) for row in declared]
                for instant, declared in history.items()
                if instant >= start
            }
        corrections += (
            row | {"registered_at": instant}
            for instant, declared in wanted.items()
            if not _agree(recorded.get(instant, []), declared)
            for row in declared
        )
    return corrections


def _agree(recorded: Declaration, declared: Declaration) -> bool:
    return len(recorded) == len(declared) and all(map(same, recorded, declared))


def _is_declared_by_conf(version: Version, recorded: Mapping[datetime, Declaration]) -> bool:
    """Whether conf said the last word about a device; it did where it has changed since it was synced."""
    of_conf = [instant for instant, declared in recorded.items() if declared[-1]["origin"] == CONF]
    is_last = not recorded or max(recorded) in of_conf
    return is_last or not same(recorded[max(of_conf)][-1] if of_conf else None, version)


def _moved(recorded: Declaration, version: Version) -> Declaration:
    """The declaration of conf; before its move, as it was recorded."""
    since = version["moved_at"]
    return [*(row for row in recorded if since and (row["moved_at"] or ALWAYS) < since), version]


def _regrouped(row: Version, groups: Mapping[str, Group], membership: Membership) -> Version:
    named = [name for name in row["groups"] or () if name in groups]
    return row | {"groups": [*membership.groups_of(row["device_id"], named)]}


def _table(path: Location) -> pa.Table:
    """Rows of DEVICES; none where there is no table. Before the next run an older lake has no `moved_at`."""
    if not is_table(path):
        return DEVICES.empty_table()
    rows = table_of(path).combine_chunks()
    if "moved_at" not in rows.column_names:
        rows = rows.append_column("moved_at", pa.nulls(len(rows), DEVICES.field("moved_at").type))
    return rows.select(DEVICES.names).cast(DEVICES)
