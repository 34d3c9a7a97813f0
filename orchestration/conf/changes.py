"""Changes of a conf: each setting that differs between two confs, and when it holds in a lake that goes on."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from orchestration.conf.diagnostic import printable
from orchestration.conf.document import read_document
from orchestration.conf.texts import Texts, meaning, settings_in

NOT_SET = "not set"
LONGEST = 80
"""Letters of a value that are shown."""
SHOWN = 20
"""Changes of one group that are listed; the others are counted."""
OF_PIPELINE = ("references", "sinks", "schedules", "channels")
"""Settings of the pipeline whose entries are objects with names."""
SettingPath = tuple[str, ...]
"""File, then keys."""


class Consequence(StrEnum):
    """When a changed setting holds."""

    FROM_NOW = "holds from now on"
    """The tables do not depend on it, or keep what was recorded when it came."""
    FOR_ALL = "holds for what comes from now on, and for all after `tidemark replay`"
    """Rows of earlier bronze batches stay as they were made until they are made anew."""
    NEW_LAKE = "not possible without a new lake"
    """It is part of what every table and checkpoint of the lake is known by."""


@dataclass(frozen=True)
class Change:
    """One setting, or one entry that is new or gone. `is_held_back`: the lake goes on with the value before until a replay."""

    path: SettingPath
    was: str
    now: str
    consequence: Consequence
    is_held_back: bool = False

    @property
    def setting(self) -> str:
        return ".".join(self.path[1:])

    def __str__(self) -> str:
        if is_entry(self.path) and NOT_SET in {self.was, self.now}:
            sentence = f"{self.setting} is {'new' if self.was == NOT_SET else 'gone'}"
        else:
            sentence = f"{self.setting} was {self.was}, and is {self.now} now"
        return printable(f"{sentence}; not before a replay" if self.is_held_back else sentence)


def changes(before: Texts, after: Texts, held_back: Collection[SettingPath] = ()) -> list[Change]:
    """Compare two confs, setting by setting, in the order of files. `held_back`: paths of what the lake cannot go on with."""
    old, new = settings_in(before), settings_in(after)
    differing = (item for name in dict.fromkeys((*new, *old)) for item in _differing((name,), old.get(name, {}), new.get(name, {})))
    held = [one for one in held_back if consequence_of(one) is not Consequence.NEW_LAKE]
    return [
        Change(path, _shown(was, path), _shown(now, path), consequence_of(path), any(one[: len(path)] == path[: len(one)] for one in held))
        for path, was, now in differing
    ]


def consequence_of(path: SettingPath) -> Consequence:
    """Return when a setting holds that has changed in a lake that goes on."""
    match path:
        case "pipeline", "pipeline":
            return Consequence.NEW_LAKE
        case "pipeline", "policy", key:
            is_for_all = key != "lateness_seconds"  # what was late is recorded
        case "pipeline", "engine", "shuffle_partitions" | "state_store":
            is_for_all = True
        case "sources", _, key, *_:
            is_for_all = key in {*meaning(), "ahead_seconds"}
        case ("metrics", _) | ("groups", _) | ("rules", *_):
            is_for_all = True
        case "metrics", _, key, *_:
            is_for_all = key != "label"
        case "groups", _, "anomalies", _, *_:
            is_for_all = False  # gold.models has what holds from which window on, and a replay keeps it
        case "groups", _, key, *_:
            is_for_all = key not in {"label", "lateness_seconds", "idle_close_seconds"}
        case "devices", _, key:
            is_for_all = key in {"groups", "since"}
        case "flows", _, _, *_:
            is_for_all = True
        case _:
            is_for_all = False
    return Consequence.FOR_ALL if is_for_all else Consequence.FROM_NOW


def grouped(listed: Iterable[Change], folder: Path | None = None) -> Iterator[str]:
    """Yield lines for people: what a group of changes means, then each of it; with file and line where `folder` is the conf."""
    by_consequence = [(consequence, [change for change in listed if change.consequence is consequence]) for consequence in Consequence]
    for consequence, of_group in by_consequence:
        if of_group:
            yield f"{consequence}:"
            yield from (f"  {line_of(folder, change.path)}{change}" for change in of_group[:SHOWN])
            if len(of_group) > SHOWN:
                yield f"  and {len(of_group) - SHOWN} more"


def place_of(folder: Path, path: SettingPath) -> tuple[Path, int]:
    """Return the file and the line of a setting; of one that is gone, of what it was in."""
    name, *keys = path
    name, keys = ("alerts", keys) if keys[:1] == ["channels"] else (name, [*path]) if name != "pipeline" else (name, keys)
    document, _ = read_document(folder / f"{name}.yml")
    return folder / f"{name}.yml", document.line(keys) if document else 1


def line_of(folder: Path | None, path: SettingPath) -> str:
    """Begin a line about a setting, as mistakes of a conf do; nothing where no folder is known."""
    if folder is None:
        return ""
    file, line = place_of(folder, path)
    shown = file.relative_to(here) if file.is_relative_to(here := Path.cwd()) else file
    return f"{shown}:{line}: "


def _differing(path: SettingPath, was: Any, now: Any) -> Iterator[tuple[SettingPath, Any, Any]]:
    if json.dumps(was) == json.dumps(now):
        return
    if (is_entry(path) and not (was and now)) or not (was or now):  # `{}` is a setting, as of anomalies
        yield path, was, now
        return
    was, now = ({} if value is None and isinstance(other, dict) else value for value, other in ((was, now), (now, was)))
    if not isinstance(was, dict) or not isinstance(now, dict):
        yield path, was, now
        return
    if is_order(path) and was.keys() == now.keys() and [*was] != [*now]:  # the place of a metric in a row is its part
        yield path, [*was], [*now]
    for key in dict.fromkeys((*now, *was)):
        yield from _differing((*path, key), was.get(key), now.get(key))


def is_entry(path: SettingPath) -> bool:
    """Whether an object with a name of its own stands there, such as a metric or a sink."""
    return len(path) == 2 + (path[0] == "pipeline") and (path[0] != "pipeline" or path[1] in OF_PIPELINE)


def is_order(path: SettingPath) -> bool:
    """Whether the order of keys says something."""
    return len(path) == 3 and (path[0], path[2]) == ("sources", "metrics")


def _shown(value: Any, path: SettingPath) -> str:
    if value in (None, []):
        return NOT_SET
    if path[2:3] == ("code",):  # the source of a decoder of the user's
        return f"one with the digest {sha256(json.dumps(value).encode()).hexdigest()[:8]}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
