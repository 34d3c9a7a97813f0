"""Every kind of expectation that a suite may use gives the right answer on DuckDB, once on rows that pass and once on rows that fail."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from expectations.suite import suite
from orchestration.quality.kinds import REFUSED, accepted, kind_refused
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import open_store
from orchestration.quality.validation import great_expectations, outcomes

ROWS = """
  select n, n + 1 as next, if(n = 4, 99, n) as odd, if(n = 5, null, n * 1.5) as v, printf('x%03d', n) as s,
    case when n = 7 then null when n % 2 = 1 then 'a' else 'b' end as k, if(n < 3, 'dup', 'd' || n) as d, n <= 10 as b,
    timestamptz '2026-01-01' + n * interval 1 minute as at,
    case n when 1 then 'nan'::double when 2 then 'inf'::double when 3 then '-inf'::double when 4 then null else n end as f
  from (select n::bigint as n from range(1, 21) rows(n))
"""
ROOT = Path(__file__).parents[3]
COLUMNS = ["n", "next", "odd", "v", "s", "k", "d", "b", "at", "f"]
GREATEST = 1.7976931348623157e308
Case = tuple[dict[str, Any], bool, str]
"""What is expected, whether it is true, and what is found: how many rows, or which value; '' where that does not matter."""


def on(column: str, **kwargs: Any) -> dict[str, Any]:
    return {"column": column} | kwargs


def pair(a: str, b: str, **kwargs: Any) -> dict[str, Any]:
    return {"column_A": a, "column_B": b} | kwargs


def rows(count: int) -> str:
    return f"{count or 'none'} of 20 rows"


def between(column: str, value: float, told: str) -> list[Case]:
    """Of kinds that compare one number of a column with bounds."""
    return [
        (on(column, min_value=value, max_value=value), True, told),
        (on(column, min_value=value, strict_min=True), False, told),
        (on(column, max_value=value - 1e-3), False, told),
    ]


HALVES = {"values": ["a", "b"], "weights": [0.5, 0.5]}
CASES: dict[str, list[Case]] = {
    "expect_column_distinct_values_to_be_in_set": [(on("k", value_set=["a", "b", "c"]), True, ""), (on("k", value_set=["a"]), False, "")],
    "expect_column_distinct_values_to_contain_set": [(on("k", value_set=["a"]), True, ""), (on("k", value_set=["a", "z"]), False, "")],
    "expect_column_distinct_values_to_equal_set": [
        (on("k", value_set=["a", "b"]), True, ""),
        (on("k", value_set=["a", "b", "z"]), False, ""),
    ],
    "expect_column_kl_divergence_to_be_less_than": [
        (on("k", partition_object=HALVES, threshold=0.1), True, ""),
        (on("k", partition_object=HALVES | {"weights": [0.99, 0.01]}, threshold=0.1), False, ""),
        (on("n", partition_object={"bins": [0, 10, 21], "weights": [0.45, 0.55]}, threshold=0.1), True, ""),
    ],
    "expect_column_max_to_be_between": [*between("v", 30, "30"), (on("f", max_value=10), False, "")],
    "expect_column_mean_to_be_between": [*between("n", 10.5, "10.5"), (on("f", max_value=10), False, "")],
    "expect_column_median_to_be_between": [*between("n", 10.5, "10.5"), *between("v", 16.5, "16.5")],
    "expect_column_min_to_be_between": between("v", 1.5, "1.5"),
    "expect_column_most_common_value_to_be_in_set": [
        (on("d", value_set=["dup"]), True, "[dup]"),
        (on("d", value_set=["d3"]), False, "[dup]"),
    ],
    "expect_column_pair_values_a_to_be_greater_than_b": [
        (pair("next", "n"), True, rows(0)),
        (pair("odd", "n", or_equal=True), True, rows(0)),
        (pair("odd", "n"), False, rows(19)),
        (pair("f", "n", or_equal=True, ignore_row_if="either_value_is_missing"), False, rows(1)),  # NaN is the greatest
    ],
    "expect_column_pair_values_to_be_equal": [(pair("n", "n"), True, rows(0)), (pair("odd", "n"), False, rows(1))],
    "expect_column_pair_values_to_be_in_set": [
        (pair("n", "next", value_pairs_set=[(n, n + 1) for n in range(1, 21)]), True, rows(0)),
        (pair("n", "next", value_pairs_set=[(n, n + 1) for n in range(1, 20)]), False, rows(1)),
    ],
    "expect_column_proportion_of_non_null_values_to_be_between": between("v", 0.95, "0.95"),
    "expect_column_proportion_of_unique_values_to_be_between": between("d", 0.95, "0.95"),
    "expect_column_quantile_values_to_be_between": [
        (on("n", quantile_ranges={"quantiles": [0.1, 0.5, 0.9], "value_ranges": [[1, 3], [10, 11], [17, 19]]}), True, ""),
        (on("n", quantile_ranges={"quantiles": [0.5], "value_ranges": [[1, 2]]}), False, ""),
    ],
    "expect_column_stdev_to_be_between": [
        (on("n", min_value=5.91, max_value=5.92), True, "5.916079783"),
        (on("n", min_value=6), False, "5.916079783"),
    ],
    "expect_column_sum_to_be_between": between("n", 210, "210"),
    "expect_column_to_exist": [(on("n"), True, ""), (on("next", column_index=1), True, ""), (on("nobody"), False, "")],
    "expect_column_type_to_be": [(on("n", type_="BIGINT"), True, "BIGINT"), (on("n", type_="VARCHAR"), False, "BIGINT")],
    "expect_column_unique_value_count_to_be_between": between("k", 2, "2"),
    "expect_column_value_lengths_to_be_between": [
        (on("s", min_value=4, max_value=4), True, rows(0)),
        (on("d", max_value=2), False, rows(13)),
    ],
    "expect_column_value_lengths_to_equal": [(on("s", value=4), True, rows(0)), (on("d", value=3), False, rows(7))],
    "expect_column_values_to_be_between": [
        (on("v", min_value=1, max_value=30), True, rows(0)),
        (on("v", min_value=3, max_value=20), False, rows(8)),
        (on("v", min_value=3, max_value=20, mostly=0.5), True, rows(8)),
        (on("v", min_value=1.5, strict_min=True), False, rows(1)),
        (on("f", min_value=-GREATEST, max_value=GREATEST), False, rows(3)),
        (on("at", min_value="2026-01-01T00:02:00"), False, rows(1)),  # in UTC
    ],
    "expect_column_values_to_be_in_set": [
        (on("k", value_set=["a", "b"]), True, rows(0)),
        (on("k", value_set=["a"]), False, rows(10)),
        (on("b", value_set=[True]), False, rows(10)),
        (on("k", value_set=["a"], mostly=0.4), True, rows(10)),
    ],
    "expect_column_values_to_be_null": [(on("v"), False, rows(19)), (on("v", mostly=0.05), True, rows(19))],
    "expect_column_values_to_be_unique": [(on("n"), True, rows(0)), (on("d"), False, rows(2))],
    "expect_column_values_to_match_like_pattern": [
        (on("s", like_pattern="x%"), True, rows(0)),
        (on("d", like_pattern="du%"), False, rows(18)),
    ],
    "expect_column_values_to_match_like_pattern_list": [
        (on("d", like_pattern_list=["d%", "x"]), True, rows(0)),
        (on("d", like_pattern_list=["du%", "d3"]), False, rows(17)),
    ],
    "expect_column_values_to_match_regex": [
        (on("s", regex="^x[0-9]{3}$"), True, rows(0)),
        (on("s", regex="^x"), True, rows(0)),
        (on("d", regex="up"), False, rows(18)),
    ],
    "expect_column_values_to_match_regex_list": [
        (on("d", regex_list=["^dup", "^d[0-9]+$"]), True, rows(0)),
        (on("d", regex_list=["^dup", "^d3$"]), False, rows(17)),
    ],
    "expect_column_values_to_not_be_in_set": [(on("k", value_set=["z"]), True, rows(0)), (on("k", value_set=["a"]), False, rows(9))],
    "expect_column_values_to_not_be_null": [(on("n"), True, rows(0)), (on("v"), False, rows(1))],
    "expect_column_values_to_not_match_like_pattern": [
        (on("s", like_pattern="d%"), True, rows(0)),
        (on("d", like_pattern="du%"), False, rows(2)),
    ],
    "expect_column_values_to_not_match_like_pattern_list": [
        (on("s", like_pattern_list=["d%"]), True, rows(0)),
        (on("d", like_pattern_list=["du%", "d3"]), False, rows(3)),
    ],
    "expect_column_values_to_not_match_regex": [(on("s", regex="^d"), True, rows(0)), (on("d", regex="^dup"), False, rows(2))],
    "expect_column_values_to_not_match_regex_list": [
        (on("s", regex_list=["^d"]), True, rows(0)),
        (on("d", regex_list=["^dup", "^d3$"]), False, rows(3)),
    ],
    "expect_compound_columns_to_be_unique": [({"column_list": ["d", "n"]}, True, rows(0)), ({"column_list": ["d", "b"]}, False, rows(2))],
    "expect_multicolumn_sum_to_equal": [
        ({"column_list": ["n", "next"], "sum_total": 3, "mostly": 0.05}, True, rows(19)),
        ({"column_list": ["n", "next"], "sum_total": 3}, False, rows(19)),
    ],
    "expect_multicolumn_values_to_be_equal": [
        ({"column_list": ["n", "n"]}, True, rows(0)),
        ({"column_list": ["n", "odd"]}, False, rows(1)),
    ],
    "expect_select_column_values_to_be_unique_within_record": [
        ({"column_list": ["n", "next"]}, True, rows(0)),
        ({"column_list": ["n", "odd"]}, False, rows(19)),
    ],
    "expect_table_column_count_to_be_between": [({"min_value": 10, "max_value": 10}, True, "10"), ({"min_value": 11}, False, "10")],
    "expect_table_column_count_to_equal": [({"value": 10}, True, "10"), ({"value": 12}, False, "10")],
    "expect_table_columns_to_match_ordered_list": [({"column_list": COLUMNS}, True, ""), ({"column_list": COLUMNS[::-1]}, False, "")],
    "expect_table_columns_to_match_set": [({"column_set": COLUMNS[::-1]}, True, ""), ({"column_set": ["n"]}, False, "")],
    "expect_table_row_count_to_be_between": [({"min_value": 20, "max_value": 20}, True, "20"), ({"min_value": 21}, False, "20")],
    "expect_table_row_count_to_equal": [({"value": 20}, True, "20"), ({"value": 19}, False, "20")],
}


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, list[tuple[Case, Outcome]]]]:
    """All at once, as in one suite: the answer to one must not depend on its neighbours."""
    asked = [(kind, case) for kind, cases in CASES.items() for case in cases]
    entries = [{"type": kind, "kwargs": kwargs, "severity": "info", "description": "."} for kind, (kwargs, _, _) in asked]
    with closing(open_store()) as store:
        store.execute(f"create table rows as {ROWS}")
        found = outcomes(store, "rows", suite("all", {"table": "rows", "expectations": entries}), {})
    of_kind: dict[str, list[tuple[Case, Outcome]]] = {}
    for (kind, case), outcome in zip(asked, found, strict=True):
        of_kind.setdefault(kind, []).append((case, outcome))
    yield of_kind


def test_each_kind_that_is_accepted_is_tried_both_ways() -> None:
    assert CASES.keys() == accepted()
    assert [kind for kind, cases in CASES.items() if {is_true for _, is_true, _ in cases} != {True, False}] == []


@pytest.mark.parametrize("kind", CASES)
def test_a_kind_gives_the_right_answer(answers: dict[str, list[tuple[Case, Outcome]]], kind: str) -> None:
    found = [(outcome.is_success, outcome.observed if told else "") for (_, _, told), outcome in answers[kind]]
    assert found == [(is_true, told) for _, is_true, told in CASES[kind]]
    errors = [outcome.observed for _, outcome in answers[kind] if "could not be evaluated" in outcome.observed]
    assert errors == []


def test_a_kind_that_is_refused_exists_and_is_told_with_the_way_out() -> None:
    known = great_expectations().expectations.registry.list_registered_expectation_implementations()
    assert REFUSED.keys() <= set(known)
    assert all("; " in str(kind_refused(kind)) for kind in REFUSED)


def test_what_cannot_be_answered_does_not_spoil_its_neighbours() -> None:
    kwargs = [on("s", regex="["), on("s", regex="^x"), on("s", regex="^y")]
    entries = [{"type": "expect_column_values_to_match_regex", "kwargs": each, "severity": "info", "description": "."} for each in kwargs]
    with closing(open_store()) as store:
        store.execute(f"create table rows as {ROWS}")
        found = outcomes(store, "rows", suite("three", {"table": "rows", "expectations": entries}), {})
    assert [outcome.is_success for outcome in found] == [False, True, False]
    assert ["could not be evaluated" in outcome.observed for outcome in found] == [True, False, False]


def test_two_stores_with_tables_of_one_name_are_told_apart() -> None:
    has_rows = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 1}, "severity": "info", "description": "."}
    found = []
    for count in (1, 2):
        with closing(open_store()) as store:
            store.execute(f"create table rows as select 1 as a from range({count})")
            found += outcomes(store, "rows", suite("one", {"table": "rows", "expectations": [has_rows]}), {})
    assert [outcome.observed for outcome in found] == ["1", "2"]


def test_without_grpcio_a_program_without_a_file_ends_with_an_error() -> None:
    code = "import sys; sys.modules['grpc'] = None; from orchestration.quality.validation import great_expectations; great_expectations()"
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert (ended.returncode, "put the program in a file" in ended.stderr) == (1, True)
