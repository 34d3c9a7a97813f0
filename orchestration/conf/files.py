"""The files of a conf folder and the settings that each declares."""

from dataclasses import dataclass as plain_dataclass
from typing import get_type_hints

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Identifier, Named, Setting
from gold.flow_spec import FlowSpec
from orchestration.conf.alert_settings import AlertsFile
from orchestration.conf.pipeline_settings import PipelineFile
from orchestration.conf.plant_settings import DevicesFile, GroupsFile, MetricsFile, RulesFile
from orchestration.conf.source_settings import SourcesFile
from orchestration.conf.suite_settings import SuiteFile


@dataclass(frozen=True)
class FlowsFile(Setting):
    """Questions that need more than a window. There may be no such file."""

    flows: Named[dict[Identifier, FlowSpec] | None] = Field(examples=[{"baking": {"sessions": {"metric": "power", "gap_seconds": 300}}}])
    """Flows by name; each is shown as `gold.<flow>`."""


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
MODELS: dict[str, type[Setting]] = {**get_type_hints(Settings), "suite": SuiteFile}
