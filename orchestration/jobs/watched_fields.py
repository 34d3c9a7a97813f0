"""The fields of each source that a run has seen, so that it says once when a declared one no longer comes: `fields.json` in the lake."""

from dataclasses import dataclass, field

from orchestration.location import Location
from orchestration.storage.state_file import StateFile

FILE = "fields.json"


@dataclass
class WatchedMetric:
    """`without`: events since the last value; `longest`: between two values; `last_at`: of the last one; `told`: the sentence of it."""

    without: int = 0
    longest: int = 0
    last_at: str | None = None
    told: str | None = None


@dataclass
class WatchedSource:
    """`metrics`: by name, those of wide rows. `fields`: paths that conf does not name and events have."""

    metrics: dict[str, WatchedMetric] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)


@dataclass
class Watched:
    """`bronze_batch`: the last one that was looked at."""

    bronze_batch: int = -1
    sources: dict[str, WatchedSource] = field(default_factory=dict)


def watched_fields(lake: Location) -> StateFile[Watched]:
    """The file, which is not there where no run has looked yet."""
    return StateFile(lake / FILE, Watched, "Remove it: it only says which fields came last.")


def missing_fields(lake: Location) -> list[str]:
    """A sentence for each declared field that no longer comes."""
    watched = watched_fields(lake).read() or Watched()
    return [metric.told for source in watched.sources.values() for metric in source.metrics.values() if metric.told]
