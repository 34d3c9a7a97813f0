"""Settings of a suite of expectations, a file of `<conf>/expectations`."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Identifier, PlainText, Setting, Unique, UniqueSome, of_pattern
from expectations.suite import Severity

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
NOT_NULL = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "value"},
    "severity": "critical",
    "description": "Every reading has a value.",
}


@dataclass(frozen=True)
class ExpectationSettings(Setting):
    """One expectation."""

    type: ExpectationType = Field(examples=["expect_column_values_to_not_be_null", "expect_column_values_to_be_between"])
    """A kind of expectation of Great Expectations, or of Tidemark."""
    severity: Severity = Field(examples=["critical"])
    """How much its failure matters; a critical one ends `tidemark quality` with exit code 1."""
    description: Sentence = Field(examples=["No value is negative."])
    """One sentence that is true of a good table."""
    kwargs: dict[str, Any] = Field(default_factory=dict, examples=[{"column": "value", "min_value": 0}])
    """Its arguments, as Great Expectations names them; {$PARAMETER: name} is a value of conf."""


@dataclass(frozen=True)
class SuiteFile(Setting):
    """A suite: what must be true of one kind of table."""

    table: TablePattern = Field(examples=["silver.readings", "gold.*_aggregates"])
    """The table that is checked; `*` stands for every device group."""
    expectations: tuple[Annotated[ExpectationSettings, Field(examples=[NOT_NULL])], ...] = Field(min_length=1, examples=[[NOT_NULL]])
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
