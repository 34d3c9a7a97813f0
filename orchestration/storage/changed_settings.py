"""Settings that say what a payload means, where they changed after silver had begun: readings of earlier batches stay as they were read.

The checkpoint of silver.readings knows the settings that it began with; `changed_settings.json` in the lake says since when others count.
A replay reads all of bronze by today's settings, and its checkpoint begins with these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestration.conf.model import Conf
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import LakeStore

FILE = "changed_settings.json"
FLOW = "silver.readings"
FROM_REGISTRIES = {"schemas", "registry"}


@dataclass(frozen=True)
class Change:
    """`bronze_batch`: the first that was read by the value `now`."""

    setting: str
    was: str
    now: str
    bronze_batch: int

    def __str__(self) -> str:
        return (
            f"{self.setting} was {self.was}, and is {self.now} since bronze batch {self.bronze_batch}: readings of earlier batches stay as"
            " they were read; `tidemark replay` reads them anew"
        )


@dataclass(frozen=True)
class _Changes:
    """The file: changes since silver of that generation began."""

    generation: int
    changes: list[Change]


def settings_of_readings(conf: Conf) -> dict[str, str]:
    """Collect, by name, all that decides what an event of each source measures."""
    settings: dict[str, str] = {}
    for name, source in conf.sources.items():
        shape = {key: value for key, value in asdict(source.payload_format).items() if key not in FROM_REGISTRIES}
        settings |= dict(_flat(name, shape))
    for name, metric in conf.metrics.items():
        settings |= dict(_flat(name, {"unit": metric.unit, "conversions": asdict(metric)["conversions"]}))
    return settings


def note_changes(lake: LakeStore, began_with: Mapping[str, str]) -> list[Change]:
    """Write down which settings are others than those that silver began with, and since when; all that are written."""
    changes = {change.setting: change for change in _written(lake)}
    following = next_bronze_batch(source_offsets(lake.table_path("bronze.events")))
    for setting, now in settings_of_readings(lake.conf).items():
        was = began_with.get(setting, now)
        if (changes[setting].now if setting in changes else was) != now:
            changes[setting] = Change(setting, was, now, following)
    if changes:
        _file(lake).write(_Changes(lake.generation.holder(FLOW), [*changes.values()]))
    return changed_settings(lake)


def changed_settings(lake: LakeStore) -> list[Change]:
    """List the changed settings by which readings of earlier batches would be others; none after a replay."""
    return [change for change in _written(lake) if change.bronze_batch > 0]


def _written(lake: LakeStore) -> list[Change]:
    content = _file(lake).read()
    return content.changes if content and content.generation == lake.generation.holder(FLOW) else []


def _file(lake: LakeStore) -> StateFile[_Changes]:
    return StateFile(lake.conf.lake / FILE, _Changes, "Remove it: it only says since when settings have changed.")


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, "not set" if value in (None, "", ()) else str(value)
