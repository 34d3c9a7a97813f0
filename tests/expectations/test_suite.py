"""Suites as data: what a document may say, and that what is shipped is sound."""

from typing import Any

import pytest

from expectations.suite import Severity, suite
from orchestration.quality.suites import packaged

NOT_NULL = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "device_id"},
    "severity": "critical",
    "description": "Every reading names its device.",
}
TABLES = ["bronze.events", "silver.readings", "silver.quarantine", "gold.kitchen_aggregates", "gold.kitchen_vectors"]


def document(**changes: Any) -> dict[str, Any]:
    return {"table": "silver.readings", "expectations": [NOT_NULL]} | changes


def test_a_document_becomes_a_suite() -> None:
    made = suite("readings", document(columns={"a": "1"}, sample=["device_id"], together_with=["silver.quarantine"]))
    assert made.expectations[0].severity is Severity.CRITICAL
    assert (made.columns, made.sample, made.together_with) == ({"a": "1"}, ("device_id",), ("silver.quarantine",))


@pytest.mark.parametrize(
    ("kwargs", "columns"),
    [
        ({"column": "value", "min_value": 0}, ("value",)),
        ({"column_A": "window_end", "column_B": "window_start"}, ("window_end", "window_start")),
        ({"column_list": ["device_id", "metric"]}, ("device_id", "metric")),
        ({"min_value": 1}, ()),
    ],
)
def test_an_expectation_knows_its_columns(kwargs: dict[str, Any], columns: tuple[str, ...]) -> None:
    assert suite("any", document(expectations=[NOT_NULL | {"kwargs": kwargs}])).expectations[0].columns == columns


def test_a_pattern_covers_the_tables_of_every_group_and_no_others() -> None:
    vectors = suite("vectors", document(table="gold.*_vectors"))
    assert [table for table in [*TABLES, "gold.vectors_aggregates"] if vectors.applies_to(table)] == ["gold.kitchen_vectors"]


@pytest.mark.parametrize("table", TABLES)
def test_every_layer_has_a_shipped_suite_with_a_critical_expectation(table: str) -> None:
    severities = {each.severity for shipped in packaged() if shipped.applies_to(table) for each in shipped.expectations}
    assert Severity.CRITICAL in severities


def test_shipped_expectations_are_sentences_and_none_is_told_twice() -> None:
    for shipped in packaged():
        told = [each.description for each in shipped.expectations]
        assert len(set(told)) == len(told), shipped.name
        assert [sentence for sentence in told if not sentence.endswith(".")] == []
