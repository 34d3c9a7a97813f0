"""One test of a conf: what comes of its messages, and where that is something else than expected."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from orchestration.audit.conf_tests.alerts import alert_rows
from orchestration.audit.conf_tests.given import NOWHERE, arrived, batches
from orchestration.audit.conf_tests.gold import THE_END, Gold
from orchestration.conf.conf_tests import COLUMNS, ConfTest, instant
from orchestration.conf.model import Conf
from orchestration.connectors.sources.births import by_own_births
from orchestration.jobs.silver_in_process import Silver, silver_of
from orchestration.storage.delta import python_rows
from orchestration.storage.payload_formats import payload_formats
from orchestration.storage.references import present
from orchestration.storage.registry import with_declared
from orchestration.utc import to_micros
from silver.enrich import ReferenceData
from silver.judging import Judge, conditions
from silver.measurements import measured
from silver.policy import SilverConfig

Row = dict[str, Any]
NEAR = 1e-9


@dataclass(frozen=True)
class Difference:
    """A table that is not as expected: rows, or how many there are. `missing`, `unexpected`: rows with the columns that are compared."""

    table: str
    expected: int
    came: int
    missing: Sequence[Row] = ()
    unexpected: Sequence[Row] = ()


class ConfUnderTest:
    """A conf that runs tests. Making it takes as long as a few tests."""

    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        shapes = payload_formats(conf)
        self._config = SilverConfig(shapes, conf.policy, conf.metrics, conf.rules, ahead_seconds=conf.ahead_seconds)
        self._judge = Judge(self._config, conditions(self._config))
        self._reference_data = ReferenceData(with_declared([], conf.devices.values()), present(conf))

    def rows(self, test: ConfTest, folder: Path, tables: Sequence[str]) -> dict[str, list[Row]]:
        """Rows of each of these tables (see COLUMNS) that come of the messages of a test; `folder`: that of its file."""
        return self.rows_of_events(self._events(test, folder), instant(test.until) if test.until else None, tables)

    def rows_of_events(self, events: pa.Table, until: datetime | None, tables: Sequence[str]) -> dict[str, list[Row]]:
        """Rows of each of these tables that come of events of bronze. `until`: as of a test."""
        events, config = self._with_births(events)
        judge = self._judge if config == self._config else Judge(config, conditions(config))
        silver = silver_of(self._conf, events, judge.judged(events, self._reference_data))
        came = {name: [*map(_shown, python_rows(getattr(silver, name)))] for name in Silver._fields}
        if came.keys() >= {*tables}:
            return came
        with closing(Gold(self._conf, silver)) as gold:
            made: dict[str, Callable[[], Iterable[pa.Table]]] = {
                "windows": gold.windows,
                "vectors": gold.vectors,
                "flows": lambda: gold.flows(to_micros(until or THE_END)),
                "alerts": lambda: alert_rows(self._conf, events, silver, gold, until),
            }
            return came | {name: [row for table in made[name]() for row in python_rows(table)] for name in made if name in tables}

    def differences(self, test: ConfTest, folder: Path) -> list[Difference]:
        """Return each table that is not as the test expects."""
        expected = {name: rows for name in COLUMNS if (rows := getattr(test.expect, name)) is not None}
        came = self.rows(test, folder, [*expected])
        return [one for name, rows in expected.items() if (one := difference(name, rows, came[name])) is not None]

    def _events(self, test: ConfTest, folder: Path) -> pa.Table:
        pieces = arrived(self._conf, test, folder)
        untimed = [piece for at, piece in pieces if at is None]
        at_first = NOWHERE
        if untimed:
            events = batches(self._conf, [(NOWHERE, piece) for piece in untimed])
            times = [at for piece in measured(events, self._config) for at in piece["event_time"].to_pylist()]
            at_first = max(filter(None, times), default=NOWHERE)
        return batches(self._conf, [(at or at_first, piece) for at, piece in pieces])

    def _with_births(self, events: pa.Table) -> tuple[pa.Table, SilverConfig]:
        shapes = dict(self._config.shapes)
        for name, shape in shapes.items():
            if shape.written_in == "sparkplug_b":
                events, shapes[name] = by_own_births(events, shape)
        return events, replace(self._config, shapes=shapes)


def difference(table: str, expected: int | Sequence[Row], came: Sequence[Row]) -> Difference | None:
    """Compare a count, or rows in any order by the columns that each expected row names. None: there is none."""
    if isinstance(expected, int):
        return None if len(came) == expected else Difference(table, expected, len(came))
    left, missing = list(came), list[Row]()
    for row in expected:
        same = next((one for one in left if all(is_equal(value, one.get(name)) for name, value in row.items())), None)
        if same is None:
            missing.append(row)
        else:
            left.remove(same)
    names = dict.fromkeys(name for row in (*missing, *expected) for name in row) or dict.fromkeys(list(left[0])[:8] if left else [])
    unexpected = [{name: row.get(name) for name in names} for row in left]
    return Difference(table, len(expected), len(came), missing, unexpected) if missing or unexpected else None


def is_equal(expected: Any, came: Any) -> bool:
    """Whether a value is what a test expects: numbers to a billionth, instants in any offset, of attributes those that are named."""
    match expected, came:
        case str(), datetime():
            return _instant_or_none(expected) == came
        case _, bytes():
            return bool(expected == came.decode("utf-8", "backslashreplace"))
        case dict(), dict():
            return all(is_equal(value, came.get(name)) for name, value in expected.items())
        case list(), list() | tuple():
            return len(came) == len(expected) and all(map(is_equal, expected, came))
        case float() | int(), float() | int():
            return math.isclose(expected, came, rel_tol=NEAR, abs_tol=1e-12)
    return bool(expected == came)


def _instant_or_none(text: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    return None


def _shown(row: Row) -> Row:
    """A row of silver as tests name its columns."""
    row = dict(row)
    if "attributes" in row:
        row["attributes"] = dict(row["attributes"] or {})
    return row | ({"rules": sorted(row["broken_rules"])} if "broken_rules" in row else {})
