"""What the view of quality shows: gates that are closed, each expectation over time, and rows that fail beside their payloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.engine.lake import Lake
from orchestration.quality.failed_rows import FAILED_ROW_SCHEMA, FAILED_ROWS
from orchestration.quality.history import Point, Streak, streak, trends
from orchestration.quality.release import release_version
from orchestration.quality.report import Bar, bars
from orchestration.rendering import short
from orchestration.storage import quality_tables
from orchestration.storage.gate_state import GateState, closed_gates
from orchestration.web.quarantine import LONGEST_PAYLOAD
from orchestration.web.queries import Look
from orchestration.web.security import whole

MOST_TABLES = 100


@dataclass(frozen=True)
class Checked:
    """An expectation on a table. `place`: its number on this page. `bars`: of the last runs, as in the report."""

    place: int
    table: str
    suite: str
    expectation: str
    description: str
    newest: Point
    streak: Streak | None
    bars: Sequence[Bar]

    @property
    def key(self) -> str:
        return "/".join((self.table, self.suite, self.expectation, self.description))


@dataclass(frozen=True)
class CheckedTable:
    """Those of one table, those first that fail."""

    name: str
    checked: Sequence[Checked]

    @property
    def failing(self) -> int:
        return sum(of.streak is not None for of in self.checked)


@dataclass(frozen=True)
class QualityFacts:
    """`tables`: those first of which most fails, MOST_TABLES of `count`. `chosen`: the key of the one whose failing rows are shown."""

    at: datetime
    gates: Sequence[GateState]
    tables: Sequence[CheckedTable]
    count: int
    chosen: Checked | None
    failed: Sequence[Mapping[str, Any]]


def quality(look: Look) -> QualityFacts:
    """`of`: the key of an expectation; else the first that fails."""
    lake = Lake(look.conf)
    found = [_checked(place, key, points) for place, (key, points) in enumerate(sorted(trends(look.conf.lake).items()))]
    found.sort(key=lambda of: (of.streak is None, of.place))
    by_table: dict[str, list[Checked]] = {}
    for of in found:
        by_table.setdefault(of.table, []).append(of)
    tables = sorted((CheckedTable(*of) for of in by_table.items()), key=lambda of: (-of.failing, of.name))
    wanted = look.asked.get("of", "")
    chosen = next((of for of in found if of.key == wanted), next((of for of in found if of.streak), None))
    gates = [*closed_gates(look.conf, lake.table_path)]
    return QualityFacts(look.now, gates, tables[:MOST_TABLES], len(tables), chosen, _failed(look, chosen) if chosen else ())


def release(look: Look, form: dict[str, str]) -> None:
    """Let versions of a `table` through, up to this `version`; ConfError where they are not held back, or without a `reason`."""
    table, version, reason = (form.get(name, "") for name in ("table", "version", "reason"))
    release_version(Lake(look.conf), table, whole(version, -1), reason, look.now)


def _checked(place: int, key: Sequence[str], points: Sequence[Point]) -> Checked:
    table, suite, expectation, description = key
    return Checked(place, table, suite, expectation, description or expectation, points[-1], streak(points), bars(points))


def _failed(look: Look, of: Checked) -> list[dict[str, Any]]:
    """Rows of the newest run that found some."""
    where = [("table_name", "=", of.table), ("suite", "=", of.suite), ("expectation", "=", of.expectation)]
    kept = quality_tables.read(look.conf.lake, FAILED_ROWS, FAILED_ROW_SCHEMA, where=where).to_pylist()
    rows = [row for row in kept if (row["description"] or of.expectation) == of.description]
    newest = max((row["run_id"] for row in rows), default=None)
    shown = (row for row in rows if row["run_id"] == newest)
    return [row | {"row_values": dict(row["row_values"]), "payload": short(row["payload"], LONGEST_PAYLOAD)} for row in shown]
