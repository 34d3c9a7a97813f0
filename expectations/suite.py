"""Suites: what must be true of one kind of table. A suite is a file of `<conf>/expectations`, or one that Tidemark ships."""

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Hidden, Identifier, PlainText, Setting, Some, Unique, UniqueSome, of_pattern

TablePattern = Annotated[str, of_pattern(None, "write the name of a table", None, 1)]
TableName = Annotated[PlainText, Field(description="A table.", examples=["silver.late"])]
ColumnName = Annotated[PlainText, Field(description="A column of the table.", examples=["device_id"])]
Expression = Annotated[
    str,
    of_pattern(r"\S", "write an expression", 10_000, 1),
    Field(description="An expression.", examples=["case when metric = 'temperature' then value end"]),
]
ExpectationType = Annotated[str, of_pattern(None, "write a kind of expectation", None, 1)]
Sentence = Annotated[str, of_pattern(r"\S", "write a sentence", 1000, 1)]
COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list")
NOT_NULL = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "value"},
    "severity": "critical",
    "description": "Every reading has a value.",
}


class Severity(StrEnum):
    """How serious a failure is; the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Expectation(Setting):
    """One expectation."""

    type: ExpectationType = Field(examples=["expect_column_values_to_not_be_null", "expect_column_values_to_be_between"])
    """A kind of expectation of Great Expectations, or of Tidemark."""
    description: Sentence = Field(examples=["No value is negative."])
    """One sentence that is true of a good table."""
    severity: Severity = Field(examples=["critical"])
    """How much its failure matters; a critical one ends `tidemark quality` with exit code 1."""
    kwargs: dict[str, Any] = Field(default_factory=dict, examples=[{"column": "value", "min_value": 0}])
    """Its arguments, as Great Expectations names them; {$PARAMETER: name} is a value of conf."""

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
class Suite(Setting):
    """A suite: what must be true of one kind of table."""

    table: TablePattern = Field(examples=["silver.readings", "gold.*_aggregates"])
    """The table that is checked; `*` stands for every device group."""
    expectations: Some[tuple[Annotated[Expectation, Field(examples=[NOT_NULL])], ...]] = Field(examples=[[NOT_NULL]])
    """Statements that must be true."""
    together_with: UniqueSome[TableName] = Field(default=(), examples=[["silver.late"]])
    """Tables whose rows are checked as one with those of `table`; a column that one of them lacks is null there."""
    sample: Unique[ColumnName] = Field(default=(), examples=[["device_id", "event_time"]])
    """Columns that are shown of a row that fails."""
    columns: dict[Identifier, Expression] = Field(
        default_factory=dict, examples=[{"temperature": "case when metric = 'temperature' then value end"}]
    )
    """Columns computed before anything is expected, in this order, each in the language of conditions (expectations/README.md); null where
    an expectation has nothing to check."""
    columns_in_sql: dict[Identifier, Expression] = Field(
        default_factory=dict, examples=[{"mean_of_device": "avg(value) over (partition by device_id)"}]
    )
    """Columns computed behind those, each an expression of DuckDB's SQL: for what compares rows, or takes lists apart. No subquery."""
    name: Hidden[str] = ""

    def applies_to(self, table: str) -> bool:
        """Whether the table of this name is of this kind."""
        return fnmatchcase(table, self.table)


def suite(name: str, document: Mapping[str, Any]) -> Suite:
    """The suite of this name that a document without mistakes describes."""
    return Suite(**document, name=name)
