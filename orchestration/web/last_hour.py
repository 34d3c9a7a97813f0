"""The last hour of each node, minute by minute, and the newest batch of each query. In memory: read on from history at each look."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestration.location import Location
from orchestration.supervisor.history import newer
from orchestration.utc import from_iso

MINUTES = 60


class LastHour:
    """Rows a minute are those of batches that runs have noted. Lags are those that this page has seen, so they begin with its process.

    `batches`: the facts of the newest batch of each query.
    """

    def __init__(self) -> None:
        self.batches = dict[str, Mapping[str, Any]]()
        self._read = dict[Path, int]()
        self._rows = defaultdict[str, dict[int, float]](dict)
        self._lags = defaultdict[str, dict[int, float]](dict)

    def note(self, lake: Location, now: datetime, lags: Iterable[tuple[str, float | None]]) -> None:
        for facts in newer(lake, self._read):
            if "flow" in facts:
                self.batches[facts["flow"]] = facts
                minutes, minute = self._rows[facts["flow"]], _minute(from_iso(facts["at"]))
                minutes[minute] = minutes.get(minute, 0.0) + facts.get("rows", 0)
        for name, lag in lags:
            minutes, minute = self._lags[name], _minute(now)
            minutes[minute] = max(minutes.get(minute, 0.0), lag or 0.0)
        for minutes in (*self._rows.values(), *self._lags.values()):
            for minute in [minute for minute in minutes if minute <= _minute(now) - MINUTES]:
                del minutes[minute]

    def rates(self, name: str, now: datetime) -> Sequence[float]:
        """Rows of each minute, the newest last; it is not over yet."""
        return _listed(self._rows[name], now)

    def lags(self, name: str, now: datetime) -> Sequence[float]:
        """Seconds, the most of each minute, the newest last."""
        return _listed(self._lags[name], now)


def _minute(instant: datetime) -> int:
    return int(instant.timestamp() // 60)


def _listed(minutes: Mapping[int, float], now: datetime) -> list[float]:
    return [minutes.get(minute, 0.0) for minute in range(_minute(now) - MINUTES + 1, _minute(now) + 1)]
