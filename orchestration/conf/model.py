"""The whole configuration of one lake, after checking: frozen, plain, free of Spark."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from expectations.rule import Rule
from gold.alerts.spec import Alert, NoticePolicy
from gold.flows.spec import FlowSpec
from gold.schema import OF_EACH_STREAM
from gold.windows.spec import Group, Late
from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.devices import Device
from orchestration.conf.pipeline_settings import (
    Engine,
    GateMode,
    Maintenance,
    PageSettings,
    Quality,
    Reference,
    ScheduleSettings,
    SqlServerSettings,
)
from orchestration.conf.place import GroupWindows, Place
from orchestration.conf.reference_tables import ReferenceSettings
from orchestration.conf.sink_settings import SinkSettings
from orchestration.conf.transport_settings import Collected, KafkaSettings, Transport
from orchestration.location import Location
from orchestration.stores.object_store import ObjectStore
from silver.metric import Metric
from silver.policy import Bounds, Policy
from silver.spec import PayloadFormat

__all__ = [
    "Conf",
    "Device",
    "Engine",
    "GateMode",
    "Maintenance",
    "Quality",
    "Reference",
    "Source",
]


@dataclass(frozen=True)
class Source:
    """`transport`: how events come. `is_paused`: bronze reads nothing of it. Bounds are None where those of the policy hold."""

    name: str
    payload_format: PayloadFormat
    transport: Transport
    is_paused: bool = False
    lateness_seconds: int | None = None
    ahead_seconds: int | None = None


@dataclass(frozen=True)
class Conf:
    """`folder` is the conf folder; relative paths in conf start at its parent. `store` has the lakes at s3://.

    `dbt_project` None: that of Tidemark alone.
    """

    folder: Path
    pipeline: str
    lake: Location
    policy: Policy
    engine: Engine
    sources: dict[str, Source]
    metrics: dict[str, Metric]
    devices: dict[str, Device]
    groups: dict[str, Group]
    rules: tuple[Rule, ...]
    store: ObjectStore = field(default_factory=ObjectStore)
    flows: dict[str, FlowSpec] = field(default_factory=dict)
    maintenance: Maintenance = field(default_factory=Maintenance)
    quality: Quality = field(default_factory=Quality)
    dbt_project: Path | None = None
    references: dict[str, ReferenceSettings] = field(default_factory=dict)
    sinks: dict[str, SinkSettings] = field(default_factory=dict)
    schedules: dict[str, ScheduleSettings] = field(default_factory=dict)
    page: PageSettings = field(default_factory=PageSettings)
    sql_server: SqlServerSettings | None = None
    traces: str | None = None
    alerts: Mapping[str, Alert] = field(default_factory=dict)
    notice_policies: dict[str, NoticePolicy] = field(default_factory=dict)
    channels: dict[str, ChannelSettings] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """Lines for `tidemark check`: what is probably wrong."""

    @property
    def command(self) -> str:
        """How a command for this conf begins, for people in the folder that this process is in."""
        return "tidemark" if self.folder == Path("conf").absolute() else shlex.join(["tidemark", "--conf", str(self.folder)])

    def group_of(self, table: str) -> Group | None:
        """The group that gold.<group>_<kind> names; None for another table."""
        return self.groups.get(table.removeprefix("gold.").rpartition("_")[0]) if table.startswith("gold.") else None

    @property
    def place(self) -> Place:
        """For processes that answer SQL."""
        return Place(self.lake, self.stream_of, self.table_of_flow, self.group_windows.copy)

    @property
    def tailed_sources(self) -> list[Source]:
        """Sources whose events fast alerts see as they arrive."""
        return [
            source for source in self.sources.values() if isinstance(source.transport, Collected | KafkaSettings) and not source.is_paused
        ]

    @cached_property
    def bounds(self) -> dict[str, Bounds]:
        """The bounds of each source; those of the policy where it sets none."""
        lateness, ahead = self.policy.lateness_seconds, self.policy.max_future_seconds
        return {
            name: Bounds(
                lateness if source.lateness_seconds is None else source.lateness_seconds,
                ahead if source.ahead_seconds is None else source.ahead_seconds,
            )
            for name, source in self.sources.items()
        }

    @cached_property
    def ahead_seconds(self) -> dict[str, int]:
        """Sources that may be ahead of their arrival by another bound than that of the policy."""
        of_policy = self.policy.max_future_seconds
        return {name: bounds.ahead_seconds for name, bounds in self.bounds.items() if bounds.ahead_seconds != of_policy}

    def bounds_of(self, metrics: Iterable[str]) -> set[Bounds]:
        """Bounds of the sources that may bring readings of one of these metrics."""
        wanted = set(metrics)
        return {self.bounds[name] for name, source in self.sources.items() if any(map(source.payload_format.may_bring, wanted))}

    def ahead_of(self, stream: str) -> int | None:
        """How far beyond its arrival a reading may move the watermark of a stream of gold: not at all where sources differ in how far they
        may be ahead, so that what is measured now is in time. None: as far as it is."""
        bounds = self.bounds_of(metric for group in self.streams[stream] for metric in group.metrics)
        return 0 if len({of_source.ahead_seconds for of_source in bounds}) > 1 else None

    @cached_property
    def group_windows(self) -> dict[str, GroupWindows]:
        """Inputs of the windows of each group."""
        return {
            name: GroupWindows(tuple(self.metrics[metric] for metric in group.metrics), group.late is Late.KEEP_ASIDE)
            for name, group in self.groups.items()
        }

    @cached_property
    def stream_of(self) -> dict[str, str]:
        """The stream of each group."""
        return {name: group.stream for name, group in self.groups.items()}

    @property
    def incrementals(self) -> list[str]:
        """Names of what follows gold slice by slice, each with a folder of its own: flows, anomalies of streams, and alerts."""
        return [*self.flows, *(f"anomalies/{stream}" for stream in self.judged_streams), *(f"alerts/{name}" for name in self.alerts)]

    @property
    def tables_of_incrementals(self) -> list[str]:
        """Tables that flows and alerts write."""
        return [*dict.fromkeys(f"gold.{flow.table}" for flow in self.flows.values()), *(["gold.alerts"] if self.alerts else [])]

    @cached_property
    def table_of_flow(self) -> dict[str, str]:
        """The kind of table that each flow writes."""
        return {name: flow.table for name, flow in self.flows.items()}

    def kinds_of(self, stream: str) -> list[str]:
        """List the kinds of tables that a stream and what follows it write."""
        return [*OF_EACH_STREAM, *(["anomalies"] if stream in self.judged_streams else [])]

    @property
    def judged_streams(self) -> list[str]:
        """Streams with a group whose vectors are judged."""
        return [stream for stream, groups in self.streams.items() if any(group.anomalies for group in groups)]

    @cached_property
    def streams(self) -> dict[str, list[Group]]:
        """Groups by the stream that they share."""
        by_stream: dict[str, list[Group]] = {}
        for group in self.groups.values():
            by_stream.setdefault(group.stream, []).append(group)
        return by_stream
