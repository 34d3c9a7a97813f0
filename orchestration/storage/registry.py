"""The device registry, `silver.devices`: one row a version of a device, append only; the streams read it again at every micro-batch.

A version counts for events ingested from its `registered_at` on, until the next one of the same device. conf and loaded files both declare
devices; where they differ, whoever changed last holds. The table is written through deltalake alone, so that no other JVM ever races the
one that runs the flows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from gold.windows.spec import Group
from orchestration.conf.device_file import devices_in
from orchestration.conf.model import Device
from orchestration.location import Location
from orchestration.storage.commit import append_rows, create
from orchestration.storage.delta import path_of, rows_of
from orchestration.storage.lease import holding
from orchestration.utc import EPOCH, MICROSECOND
from silver.schema import DEVICES

TABLE = "silver.devices"
CONF = "conf"
ALWAYS = EPOCH
# A micro-batch that is running has read the registry already, and its events came before it began: a version for a later instant
# than any of them gives the same answer to whoever asks, and whenever.
NOTICE = timedelta(seconds=10)

NEWEST = "select * from silver.devices qualify row_number() over (partition by device_id order by registered_at desc) = 1"
"""SQL of DuckDB for the same rows that `current` returns."""

Version = dict[str, Any]
"""One row of the table."""


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
                yield version | {"is_known": False}

    return append_changes(lake, changes, now)


def load(lake: Location, file: Path, now: datetime, groups: Mapping[str, Group] | None = None, since: datetime | None = None) -> int:
    """Append what the file says differently from the registry, to count from shortly after `now`; the number of versions.

    `since`: from when on devices count that the registry has never known; their events may be in quarantine, and nowhere else.
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

    return append_changes(lake, changes, now + NOTICE, since)


def current(lake: Location) -> list[Version]:
    """The newest version of each device, by device_id, also where it only counts from shortly on; empty where there is no registry."""
    return sorted(newest(versions(lake)).values(), key=lambda version: version["device_id"])


def versions(lake: Location, device_id: str | None = None) -> list[Version]:
    return rows_of(path_of(lake, TABLE), filters=None if device_id is None else [("device_id", "=", device_id)])


def append_changes(
    lake: Location, changes: Callable[[list[Version]], Iterable[Version]], at: datetime, since: datetime | None = None
) -> int:
    """Append the changes to the history as of `at`, or as of ever if they are the first. `since`: as of when devices without a history."""
    # Two that append at once would each miss what the other appends, and register a device twice for the same instant.
    with holding(path_of(lake, TABLE).local.with_name(".devices.lock")):
        create(path_of(lake, TABLE), DEVICES)
        history = versions(lake)
        before = newest(history)
        rows = [
            row | {"registered_at": effective(before.get(row["device_id"]), at, since) if history else ALWAYS} for row in changes(history)
        ]
        if rows:
            append_rows(path_of(lake, TABLE), pa.Table.from_pylist(rows, schema=DEVICES))
        return len(rows)


def effective(before: Version | None, at: datetime, since: datetime | None = None) -> datetime:
    """Return `at`, or just after the newest version of the device where that is for a later instant: what is said last must hold."""
    return max(at, before["registered_at"] + MICROSECOND) if before else since or at


def as_version(device: Device, origin: str) -> Version:
    """The row of a device, but for its instant."""
    return vars(device) | {"groups": list(device.groups), "is_known": True, "origin": origin}


def same(left: Version | None, right: Version) -> bool:
    """Whether both say the same of the device, whoever says it and whenever."""
    return left is not None and all(left[name] == right[name] for name in ("zone", "groups", "label", "is_known"))


def newest(history: Iterable[Version]) -> dict[str, Version]:
    """The version of each device that holds in the end."""
    return {version["device_id"]: version for version in sorted(history, key=lambda version: version["registered_at"])}
