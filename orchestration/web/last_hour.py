"""Rates and lags of the last hour by node, minute by minute, for sparklines. In memory: read on from history, and noted at each look."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from orchestration.location import Location
from orchestration.supervisor.history import newer
from orchestration.utc import from_iso

MINUTES = 60


class LastHour:
    """Rows a minute are those of batches that runs have noted. Lags are those that this page has seen, so they begin with its process."""

    def __init__(self) -> None:
        self._read = dict[Path, int]()
        self._rows = defaultdict[str, dict[int, float]](dict)
        self._lags = defaultdict[str, dict[int, float]](dict)

    def note(self, lake: Location, now: datetime, lags: Iterable[tuple[str, float | None]]) -> None:
        for facts in newer(lake, self._read):
            if "flow" in facts:
                _add(self._rows[facts["flow"]], from_iso(facts["at"]), float(facts.get("rows", 0)))
        for name, lag in lags:
            minute = _minute(now)
            self._lags[name][minute] = max(self._lags[name].get(minute, 0.0), lag or 0.0)
        for minutes in (*self._rows.values(), *self._lags.values()):
            for minute in [minute for minute in minutes if minute <= _minute(now) - MINUTES]:
                del minutes[minute]

    def rates(self, name: str, now: datetime) -> Sequence[float]:
        """Rows of each minute, the newest last."""
        return _listed(self._rows[name], now)

    def lags(self, name: str, now: datetime) -> Sequence[float]:
        """Seconds, the most of each minute, the newest last."""
        return _listed(self._lags[name], now)


def _minute(instant: datetime) -> int:
    return int(instant.timestamp() // 60)


def _add(minutes: dict[int, float], instant: datetime, rows: float) -> None:
    minutes[_minute(instant)] = minutes.get(_minute(instant), 0.0) + rows


def _listed(minutes: dict[int, float], now: datetime) -> list[float]:
    return [minutes.get(minute, 0.0) for minute in range(_minute(now) - MINUTES + 1, _minute(now) + 1)]
