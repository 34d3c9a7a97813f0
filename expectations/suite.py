"""Suites: what must be true of one kind of table. Data for Great Expectations, without Spark and I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list")


class Severity(StrEnum):
    """How serious a failure is; the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Expectation:
    """`type` and `kwargs` are those of Great Expectations; `description` is one sentence that is true of a good table."""

    type: str
    description: str
    severity: Severity
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about; none if it is about the whole table."""
        named = [self.kwargs[argument] for argument in COLUMN_ARGUMENTS if argument in self.kwargs]
        return tuple(column for names in named for column in ([names] if isinstance(names, str) else names))

    @property
    def is_about_table(self) -> bool:
        """Whether it can be evaluated on a table without rows."""
        return self.type.startswith("expect_table_")


@dataclass(frozen=True)
class Suite:
    """`table`: a name, or a pattern with `*` for the tables of all device groups.

    `columns`: by name, computed before the expectations, in the language of conditions. `columns_in_sql`: computed behind them, in DuckDB's
    SQL, from more than one row or from lists. `sample`: columns to show of a row that fails.
    `together_with`: tables whose rows are evaluated together with those of `table`; a column that one of them lacks is null there.
    """

    name: str
    table: str
    expectations: tuple[Expectation, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    columns_in_sql: Mapping[str, str] = field(default_factory=dict)
    sample: tuple[str, ...] = ()
    together_with: tuple[str, ...] = ()

    def applies_to(self, table: str) -> bool:
        """Whether the table of this name is of this kind."""
        return fnmatchcase(table, self.table)


def suite(name: str, document: Mapping[str, Any]) -> Suite:
    """The suite that a document describes, which is one: orchestration/conf/suite_settings.py says what a document may hold."""
    made = tuple(Expectation(**entry | {"severity": Severity(entry["severity"])}) for entry in document["expectations"])
    of_columns = {key: tuple(document.get(key, ())) for key in ("sample", "together_with")}
    return Suite(name, **{**document, **of_columns, "expectations": made})
