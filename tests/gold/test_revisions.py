"""Revisions: the latest of each key, the next one, and which rows differ from those before."""

import math
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.schema import VECTOR_KEY
from gold.windows.revisions import changed, latest, next_revision
from tests.rows import at

SCHEMA = pa.schema(
    [
        ("device_group", pa.string()),
        ("entity", pa.string()),
        ("window_end", pa.timestamp("us", "UTC")),
        ("vector", pa.list_(pa.float64())),
        ("missing", pa.list_(pa.string())),
    ]
)
OF_HISTORY = SCHEMA.append(pa.field("revision", pa.int32()))
CONTENT = ("vector", "missing")
KEYS = st.tuples(st.just("kitchen"), st.sampled_from(["oven", "fridge", "grill"]), st.sampled_from([at("12:00"), at("12:10"), at("12:20")]))
CONTENTS = st.tuples(
    st.one_of(st.none(), st.lists(st.sampled_from([1.5, -0.0, 0.0, math.nan, None]), max_size=2)), st.sampled_from([[], ["power"]])
)
Rows = dict[tuple[str, str, datetime], tuple[list[float | None] | None, list[str]]]
ROWS = st.dictionaries(KEYS, CONTENTS)
HISTORY = st.dictionaries(KEYS, st.lists(CONTENTS, min_size=1, max_size=3))


def table(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def of_rows(rows: Rows) -> pa.Table:
    return table([(*key, *content) for key, content in rows.items()])


def of_history(history: dict[tuple[str, str, datetime], list[Any]]) -> pa.Table:
    """The newest first, which is not the order in which they are written."""
    revisions = [(*key, *content, n) for key, contents in history.items() for n, content in enumerate(contents)]
    return table(revisions[::-1], OF_HISTORY)


def as_set(rows: pa.Table) -> set[str]:
    assert len(rows) == len({str(row) for row in rows.to_pylist()})
    return {str(row) for row in rows.to_pylist()}


@given(HISTORY)
def test_the_latest_of_each_key(history: dict[tuple[str, str, datetime], list[Any]]) -> None:
    expected = table([(*key, *contents[-1], len(contents) - 1) for key, contents in history.items()], OF_HISTORY)
    assert as_set(latest(of_history(history), VECTOR_KEY)) == as_set(expected)


@given(ROWS, HISTORY)
def test_the_next_revision_is_one_more_than_the_highest_and_1_of_a_new_key(rows: Rows, history: dict[Any, list[Any]]) -> None:
    expected = table([(*key, *content, len(history.get(key, [])) or 1) for key, content in rows.items()], OF_HISTORY)
    revised = next_revision(of_rows(rows), of_history(history), VECTOR_KEY)
    assert str(revised.to_pylist()) == str(expected.to_pylist())


@given(ROWS, ROWS)
def test_what_is_new_or_has_other_content_is_changed(rows: Rows, before: Rows) -> None:
    def plain(content: Any) -> str:  # 0 equals -0, NaN itself
        return str(content).replace("-0.0", "0.0")

    expected = {key: content for key, content in rows.items() if key not in before or plain(before[key]) != plain(content)}
    assert as_set(changed(of_rows(rows), of_rows(before), VECTOR_KEY, CONTENT)) == as_set(of_rows(expected))


def test_lists_are_compared_by_length_and_element() -> None:
    vectors: list[Any] = [None, [], [1.5], [1.5, None], [None, 1.5], [1.5, math.nan], [1.5, 0.0], [2.5, 0.0]]
    pairs = [(one, other) for one in vectors for other in vectors]
    of_side = [[{"entity": str(n), "vector": pair[side], "missing": []} for n, pair in enumerate(pairs)] for side in (0, 1)]
    rows, before = (pa.Table.from_pylist(side, SCHEMA.remove(2).remove(0)) for side in of_side)
    differing = changed(rows, before, ["entity"], CONTENT)["entity"].to_pylist()
    assert differing == [str(n) for n, (one, other) in enumerate(pairs) if one is not other]


@pytest.mark.parametrize("micros", [-62_135_600_400_000_000, 253_402_300_800_000_000], ids=["before the year 1", "after the year 9999"])
def test_windows_that_python_has_no_instant_for_are_compared_too(micros: int) -> None:
    ends = pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.table(
        [pa.array(["kitchen"]), pa.array(["oven"]), ends, pa.array([[1.0]]), pa.array([[]], pa.list_(pa.string()))], schema=SCHEMA
    )
    assert changed(rows, rows, VECTOR_KEY, CONTENT).num_rows == 0
    assert changed(rows, rows.slice(1), VECTOR_KEY, CONTENT).num_rows == 1
