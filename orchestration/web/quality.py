"""The view of quality: gates that are closed, each expectation over time, and rows that fail beside their payloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from expectations.suite import Severity
from orchestration.engine.lake import Lake
from orchestration.quality import quality_tables
from orchestration.quality.failed_rows import FAILED_ROW_SCHEMA, FAILED_ROWS
from orchestration.quality.history import Point, Streak, streak, trends
from orchestration.quality.quality_tables import release_version
from orchestration.quality.report import Bar, bars
from orchestration.rendering import short
from orchestration.storage.gate_state import GateState, closed_gates
from orchestration.web.quarantine import LONGEST_PAYLOAD
from orchestration.web.queries import ViewRequest
from orchestration.web.security import text_of, whole

LONGEST_REASON = 1_000
MOST_TABLES = 100


@dataclass(frozen=True)
class Checked:
    """An expectation on a table. `index`: its number on this page. `bars`: of the last runs, as in the report."""

    index: int
    table: str
    suite: str
    expectation: str
    description: str
    newest: Point
    streak: Streak | None
    bars: Sequence[Bar]

    @property
    def verdict(self) -> str:
        return "no rows to check" if self.newest.is_success is None else "holds" if self.newest.is_success else "fails"

    @property
    def key(self) -> str:
        return "/".join((self.table, self.suite, self.expectation, self.description))


@dataclass(frozen=True)
class CheckedTable:
    """The expectations of one table, failing ones first."""

    name: str
    checked: Sequence[Checked]

    @property
    def failing(self) -> int:
        return sum(one.streak is not None for one in self.checked)


@dataclass(frozen=True)
class QualityFacts:
    """`tables`: those first of which most fails, MOST_TABLES of `count`. `chosen`: the key of the one whose failing rows are shown."""

    at: datetime
    gates: Sequence[GateState]
    tables: Sequence[CheckedTable]
    count: int
    chosen: Checked | None
    failed: Sequence[Mapping[str, Any]]


def quality(request: ViewRequest) -> QualityFacts:
    """`of`: the key of an expectation; else the first that fails."""
    lake = Lake(request.conf)
    checked = [_checked(index, key, points) for index, (key, points) in enumerate(sorted(trends(request.conf.lake).items()))]
    order = [severity.value for severity in Severity]
    checked.sort(key=lambda one: (one.streak is None, order.index(one.newest.severity), one.index))
    by_table: dict[str, list[Checked]] = {}
    for one in checked:
        by_table.setdefault(one.table, []).append(one)
    tables = sorted((CheckedTable(*entry) for entry in by_table.items()), key=lambda table: (-table.failing, table.name))
    wanted = request.params.get("of", "")
    chosen = next((one for one in checked if one.key == wanted), next((one for one in checked if one.streak), None))
    gates = [*closed_gates(request.conf, lake.table_path)]
    return QualityFacts(request.now, gates, tables[:MOST_TABLES], len(tables), chosen, _failed(request, chosen) if chosen else ())


def release(request: ViewRequest, form: dict[str, str]) -> None:
    """Let versions of a `table` through, up to this `version`; ConfError where they are not held back, or without a `reason`."""
    table, version, reason = (text_of(form, name, LONGEST_REASON) for name in ("table", "version", "reason"))
    release_version(Lake(request.conf), table, whole(version, -1), reason, request.now)


def _checked(index: int, key: Sequence[str], points: Sequence[Point]) -> Checked:
    table, suite, expectation, description = key
    return Checked(index, table, suite, expectation, description or expectation, points[-1], streak(points), bars(points))


def _failed(request: ViewRequest, checked: Checked) -> list[dict[str, Any]]:
    """Rows of the newest run that checked some."""
    where = [("table_name", "=", checked.table), ("suite", "=", checked.suite), ("expectation", "=", checked.expectation)]
    kept = quality_tables.read(request.conf.lake, FAILED_ROWS, FAILED_ROW_SCHEMA, where=where).to_pylist()
    rows = [row for row in kept if (row["description"] or checked.expectation) == checked.description]
    newest = max((row["run_id"] for row in rows), default=None)
    shown = (row for row in rows if row["run_id"] == newest)
    return [row | {"row_values": dict(row["row_values"]), "payload": short(row["payload"], LONGEST_PAYLOAD)} for row in shown]
