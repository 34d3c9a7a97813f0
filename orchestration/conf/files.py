"""The files of a conf folder and the settings that each declares."""

from dataclasses import dataclass as plain_dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from expectations.rule import Rule
from expectations.settings import Identifier, Named, Setting, Trimmed
from expectations.suite import Suite
from gold.alerts.spec import AlertSettings
from gold.flows.spec import FlowSpec
from gold.windows.spec import Group
from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.conf_tests import ConfTests
from orchestration.conf.devices import Device
from orchestration.conf.pipeline_settings import PipelineFile
from orchestration.conf.source_settings import SourcesFile
from silver.metric import Metric


@dataclass(frozen=True)
class MetricsFile(Setting):
    """The metrics that devices measure."""

    metrics: Named[dict[Trimmed, Metric]] = Field(min_length=1, examples=[{"temperature": {"aggregation": "average", "step_seconds": 600}}])
    """Metrics by name, as the events (or the sources of wide rows) name them."""


def _with_defaults(devices: Any) -> Any:
    """A device may be its id alone."""
    return {name: {} if device is None else device for name, device in devices.items()} if isinstance(devices, dict) else devices


@dataclass(frozen=True)
class DevicesFile(Setting):
    """The devices that are declared from the start; `tidemark devices load FILE` adds others."""

    devices: Annotated[
        Named[dict[Trimmed, Annotated[Device | None, Field(examples=[{"groups": ["kitchen"]}])]] | None], BeforeValidator(_with_defaults)
    ] = Field(examples=[{"oven-01": {"groups": ["kitchen"]}}])
    """Devices by id, as the source names them."""


@dataclass(frozen=True)
class GroupsFile(Setting):
    """Device groups."""

    groups: Named[dict[Identifier, Annotated[Group, Field(examples=[{"metrics": ["temperature"]}])]] | None] = Field(
        examples=[{"kitchen": {"metrics": ["temperature"]}}]
    )
    """Groups by name; each is shown as `gold.<group>_aggregates` and `gold.<group>_vectors`."""


@dataclass(frozen=True)
class RulesFile(Setting):
    """Conditions that a reading must meet, beside the built-in rules."""

    rules: Named[dict[Identifier, Rule] | None] = Field(examples=[{"value_is_positive": {"holds": "value >= 0"}}])
    """Rules by name. The name says what is true of a good reading; silver.quarantine shows it."""


@dataclass(frozen=True)
class FlowsFile(Setting):
    """Questions that need more than a window. There may be no such file."""

    flows: Named[dict[Identifier, FlowSpec] | None] = Field(examples=[{"baking": {"sessions": {"metric": "power", "gap_seconds": 300}}}])
    """Flows by name; each is shown as `gold.<flow>`."""


@dataclass(frozen=True)
class AlertsFile(Setting):
    """Alerts, and who is notified. The file may be absent."""

    alerts: Named[
        dict[Identifier, Annotated[AlertSettings, Field(examples=[{"reading": "temperature", "when": "value > 280"}])]] | None
    ] = Field(default=None, examples=[{"oven_too_hot": {"reading": "temperature", "when": "value > 280"}}])
    """Alerts by name."""
    channels: dict[Identifier, ChannelSettings] = Field(default_factory=dict, examples=[{"night_shift": {"apprise": "${env:PAGER_URL}"}}])
    """Who is told, by name. Absent: nobody; what changed is in gold.alerts."""


@plain_dataclass(frozen=True)
class Settings:
    """The files of one conf folder, without mistakes."""

    pipeline: PipelineFile
    sources: SourcesFile
    metrics: MetricsFile
    devices: DevicesFile
    groups: GroupsFile
    rules: RulesFile
    flows: FlowsFile
    alerts: AlertsFile


FILES = tuple(get_type_hints(Settings))
OPTIONAL = ("rules", "flows", "alerts")
"""Files that may be absent: then there are none of what they declare."""
ENTRIES = (*FILES[1:], "references", "sinks", "channels")
"""Settings whose entries are objects of their own, each with a name."""
MODELS: dict[str, type[Setting]] = {**get_type_hints(Settings), "suite": Suite, "tests": ConfTests}
