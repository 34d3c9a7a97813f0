"""Settings of devices.yml and rules.yml."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import EntryName, GroupName, Identifier, OrAbsent, Predicate, Setting, Text, Unique


@dataclass(frozen=True)
class Device(Setting):
    """One device."""

    device_id: EntryName
    groups: Unique[GroupName] = Field(default=(), examples=[["kitchen", "building"]])
    """Groups of groups.yml that the device belongs to."""
    zone: OrAbsent[Text] = Field(default=None, examples=["hall-1"])
    """The zone that it stands in; used where the event does not say."""
    label: OrAbsent[Text] = Field(default=None, examples=["Deck oven, left"])
    """For people."""


@dataclass(frozen=True)
class RuleSettings(Setting):
    """One rule."""

    holds: Predicate = Field(examples=["value >= 0", "metric <> 'temperature' or value <> 85"])
    """Condition over a reading (device_id, metric, value, unit, event_time, zone, groups, attributes, source, ingested_at), true for a good
    one; expectations/README.md has the language. What cannot be computed for a reading is null, and null counts as broken."""


@dataclass(frozen=True)
class RulesFile(Setting):
    """Conditions that a reading must meet, beside the built-in rules."""

    rules: dict[Identifier, RuleSettings] | None = Field(examples=[{"value_is_positive": {"holds": "value >= 0"}}])
    """Rules by name. The name says what is true of a good reading; silver.quarantine shows it."""
