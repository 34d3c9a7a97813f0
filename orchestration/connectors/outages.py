"""Sources, sinks and channels that cannot be reached, and since when: a file each in the lake, `outages/<kind>/<name>.json`.

Written by the process that holds the lake, and for a `collected` source also by the collector, which alone asks its server; `tidemark
status` reads them in another one, and asks no source and no sink.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from orchestration.connectors.sources.source import Notice
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.state_file import StateFile
from orchestration.utc import EPOCH, from_iso, to_iso

FOLDER = "outages"
MOST_ODD = 20
SINCE = re.compile(r'"since":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"')
Kind: TypeAlias = Literal["source", "collected", "sink", "channel", "problems", "gate"]
"""`problems`: a channel, asked by the process that tells of problems. `gate`: a table whose rows cannot be checked."""


@dataclass(frozen=True)
class Outage:
    """`since`: the first attempt that failed, in ISO 8601, UTC. `reason`: of that one."""

    since: str
    reason: str


@dataclass(frozen=True)
class Odd:
    """Files of a source that somebody has to look at: how many, and of the first of them the reasons."""

    count: int
    reasons: dict[str, str]


class Outages:
    """Report outages of the sources, the sinks or the channels of one run: once when one begins, once when it ends.

    Calls about one of them come from one thread at a time.
    """

    def __init__(self, lake: Location, kind: Kind, notify: Callable[[Notice], None]) -> None:
        self._lake, self._kind, self._notify = lake, kind, notify
        self._is_down: dict[str, bool] = {}

    def failed(self, name: str, reason: str) -> None:
        if self._is_down.get(name):
            return
        self._is_down[name] = True
        outage = begin_outage(self._lake, self._kind, name, reason, datetime.now(UTC))
        self._notify(Notice(f"{self._kind} is down", {self._kind: name, "since": outage.since, "reason": outage.reason}))

    def answered(self, name: str) -> None:
        if self._is_down.get(name, True):
            _note_answer(self._lake, self._kind, name)
            if (ended := end_outage(self._lake, self._kind, name)) is not None:
                self._notify(Notice(f"{self._kind} is up again", {self._kind: name, "down_since": ended.since}))
        self._is_down[name] = False


def current_outage(lake: Location, kind: Kind, name: str) -> Outage | None:
    """None for what could be reached when it was tried last, or was never tried. A damaged file may still tell since when."""
    file = _file(lake, kind, name)
    try:
        return file.read()
    except TidemarkError as error:
        return Outage(_since(file.location.local), str(error))


def _since(damaged: Path) -> str:
    """Return the instant that a damaged file still holds, or else one that stays the same."""
    with suppress(OSError):
        if since := SINCE.search(damaged.read_text(errors="replace")):
            return since[1]
    return to_iso(EPOCH)


def begin_outage(lake: Location, kind: Kind, name: str, reason: str, now: datetime) -> Outage:
    """The one that is there goes on, also one that an earlier process has begun. Where the lake cannot be written, the reason says so."""
    if (outage_before := current_outage(lake, kind, name)) is not None:
        return outage_before
    outage = Outage(to_iso(now), reason)
    try:
        _file(lake, kind, name).write(outage)
    except OSError as error:  # whatever else writes will come upon it too
        return replace(outage, reason=f"{reason} {error}")
    return outage


def end_outage(lake: Location, kind: Kind, name: str) -> Outage | None:
    if (outage_before := current_outage(lake, kind, name)) is not None:
        _file(lake, kind, name).remove()
    return outage_before


def note_odd(lake: Location, source: str, odd: Mapping[str, str]) -> None:
    """Note what somebody has to look at of a source, in the place of what was noted before; the first of it, and how much there is."""
    file = _odd(lake, source)
    with suppress(OSError):  # whatever else writes will come upon it too
        if odd:
            file.write(Odd(len(odd), dict(sorted(odd.items())[:MOST_ODD])))
        else:
            file.remove()


def noted_odd(lake: Location, source: str) -> Odd | None:
    return _odd(lake, source).read()


def answers_since(lake: Location, kind: Kind, name: str) -> datetime | None:
    """Return when it answered a run for the first time, or for the first time after an outage; None where it never did."""
    try:
        return from_iso(_answer(lake, kind, name).read_text())
    except (FileNotFoundError, ValueError):  # empty, as earlier versions made it: the next run writes it
        return None


def _note_answer(lake: Location, kind: Kind, name: str) -> None:
    file = _answer(lake, kind, name)
    with suppress(OSError):  # whatever else writes will come upon it too
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(datetime.now(UTC).isoformat())


def _answer(lake: Location, kind: Kind, name: str) -> Path:
    return (lake / FOLDER / kind / f"{name}.answers").local


def _file(lake: Location, kind: Kind, name: str) -> StateFile[Outage]:
    return StateFile((lake / FOLDER / kind / f"{name}.json").on_host, Outage, "It tells only since when.")


def _odd(lake: Location, source: str) -> StateFile[Odd]:
    return StateFile((lake / FOLDER / "odd" / f"{source}.json").on_host, Odd, "Remove it: a run notes it again.")
