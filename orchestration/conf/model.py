"""The whole configuration of one lake, after checking: frozen, plain, free of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from expectations.rule import Rule
from gold.spec import Group
from silver.spec import Metric, Policy, Shape


@dataclass(frozen=True)
class Source:
    """A landing folder.

    `path` is absolute; `files` is a glob on file names; a file is read once it has not changed for `settle_seconds`.
    """

    name: str
    path: Path
    shape: Shape
    files: str = "*"
    settle_seconds: float = 2.0


@dataclass(frozen=True)
class Device:
    """A device as conf/devices.yml declares it."""

    device_id: str
    groups: tuple[str, ...] = ()
    zone: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class Engine:
    """How Spark runs here; none of it changes a result."""

    driver_memory: str = "2g"
    cores: int = 2
    shuffle_partitions: int = 2
    state_store: str = "heap"  # heap | rocksdb
    trigger_seconds: float = 5.0
    max_batch_bytes: int = 268_435_456
    small_batch_bytes: int = 16_777_216


@dataclass(frozen=True)
class Maintenance:
    """How the lake is kept small; none of it changes a result. `every_seconds` 0: only by `tidemark maintain`.

    For `retain_seconds` after the next one was taken, a snapshot can be asked.
    """

    every_seconds: float = 3_600.0
    retain_seconds: float = 604_800.0


class GateMode(StrEnum):
    """What a failed critical expectation of a table does: nothing; it is told; gold does not read what has not passed."""

    OFF = "off"
    WARN = "warn"
    HOLD = "hold"


@dataclass(frozen=True)
class Reference:
    """A time that drift is measured against; `until` is not in it."""

    from_at: datetime
    until_at: datetime


@dataclass(frozen=True)
class Quality:
    """`schedule`: cron expression, in UTC, of every suite that `schedules` does not name; None: only by hand.

    `gates` are by table; one that is not named is off.
    """

    schedule: str | None = None
    schedules: Mapping[str, str | None] = field(default_factory=dict)
    gates: Mapping[str, GateMode] = field(default_factory=dict)
    webhook: str | None = None
    reference: Reference | None = None

    def schedule_of(self, suite: str) -> str | None:
        """When the suite of this name is checked; None: only by hand."""
        return self.schedules.get(suite, self.schedule)


@dataclass(frozen=True)
class Conf:
    """`folder` is the conf folder; relative paths in conf start at its parent. `dbt_project` None: that of Tidemark alone."""

    folder: Path
    pipeline: str
    lake: Path
    policy: Policy
    engine: Engine
    sources: dict[str, Source]
    metrics: dict[str, Metric]
    devices: dict[str, Device]
    groups: dict[str, Group]
    rules: tuple[Rule, ...]
    maintenance: Maintenance = Maintenance()
    quality: Quality = Quality()
    dbt_project: Path | None = None
