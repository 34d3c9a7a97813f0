"""The policy of pipeline.yml: what silver promises; and the settings of silver as a whole. Frozen, free of Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.rule import Rule
from expectations.settings import Seconds, Setting, Whole
from silver.metric import Metric
from silver.spec import PayloadFormat

UNASSIGNED_GROUP = "unassigned"
_UNKNOWN = (
    "`quarantine`: kept in silver.quarantine. `unassigned`: accepted into the group `unassigned`, which groups.yml must then declare."
)


class Unknown(StrEnum):
    """The fate of a reading of a device or metric that nobody declared."""

    QUARANTINE = "quarantine"
    UNASSIGNED = "unassigned"


@dataclass(frozen=True)
class Policy(Setting):
    """Promises of the silver layer."""

    lateness_seconds: Seconds = Field(ge=0, examples=[600])
    """How long a reading may arrive after a newer one, of whatever device, and still count. A reading further behind is late. A source may
    have bounds of its own."""
    max_future_seconds: Seconds = Field(default=300, ge=0)
    """An event time further than this beyond its arrival comes from a wrong clock: the reading is quarantined before it can move the
    watermark."""
    max_payload_bytes: Whole = Field(default=1_048_576, ge=1, le=2_147_483_647)
    """A longer message is quarantined without being read."""
    max_age_seconds: Whole = Field(default=315_576_000, ge=0, le=100_000_000_000)
    """An event time further than this before its arrival comes from a clock that was never set: the reading is quarantined. The default is
    ten years; set more to bring in an older archive."""
    unknown_device: Unknown = Field(
        default=Unknown.QUARANTINE, description=f"What becomes of a reading of a device that nobody declared. {_UNKNOWN}"
    )
    unknown_metric: Unknown = Field(
        default=Unknown.QUARANTINE, description=f"What becomes of a reading of a metric that nobody declared. {_UNKNOWN}"
    )


@plain_dataclass(frozen=True, order=True)
class Bounds:
    """How far a reading may be behind the newest one of its lane, and ahead of its arrival. Sources with equal bounds are a lane."""

    lateness_seconds: int
    ahead_seconds: int


@plain_dataclass(frozen=True)
class SilverConfig:
    """`shapes` is by name of source, `metrics` the catalogue by name; `rules` are those of conf/rules.yml.

    `ahead_seconds`: by source, where it is not `max_future_seconds` of the policy.

    `load_registry_formats`: the shapes of sources with the schemas of their registries; asked for each batch, as ids come up while a stream
    runs.
    """

    shapes: Mapping[str, PayloadFormat]
    policy: Policy
    metrics: Mapping[str, Metric]
    rules: tuple[Rule, ...] = ()
    load_registry_formats: Callable[[], Mapping[str, PayloadFormat]] | None = None
    ahead_seconds: Mapping[str, int] = field(default_factory=dict)


class FormerConfig(NamedTuple):
    """The settings by which bronze batches before `end`, and not before that of the one before it, are read."""

    end: int
    config: SilverConfig
