"""Values survive the way to a client and back, in text and in binary, whatever their type."""

import math
from datetime import UTC, date, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.orchestration.serving.postgres.served import Served

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
FLOATS = st.floats(allow_nan=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-(2**63), 2**63 - 1),
    "float8": FLOATS,
    "numeric(38, 10)": st.decimals(-(10**20), 10**20, places=10),
    "text": TEXTS,
    "bytea": st.binary(max_size=20),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "time": st.times().filter(lambda value: value < time(23, 59, 59, 999_999)),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(UTC)),
    "interval": st.timedeltas(timedelta(-10_000), timedelta(10_000)),
    "uuid": st.uuids(),
    "int4[]": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=5),
    "float8[]": st.lists(FLOATS, max_size=5),
    "text[]": st.lists(st.none() | TEXTS, max_size=5),
}


@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_a_value_comes_back_as_it_was_sent(server: Served, kind: str, is_binary: bool) -> None:
    with server.connect() as connection:

        @settings(deadline=None)
        @given(values=st.lists(st.none() | VALUES[kind], min_size=1, max_size=3))
        @example([["\x1f", "\x85a\xa0"]] if kind == "text[]" else [None])
        def survives(values: list[Any]) -> None:
            marks = ", ".join(f"(%{'b' if is_binary else 't'}::{kind})" for _ in values)
            query = f"select v from (values {marks}) as t(v)"
            rows = connection.cursor(binary=is_binary).execute(query, values).fetchall()
            assert [value for (value,) in rows] == values

        survives()


@pytest.mark.parametrize("is_binary", [False, True])
def test_values_that_are_no_number_and_instants_beyond_all_are_themselves(server: Served, is_binary: bool) -> None:
    query = "select 'nan'::float8, '-infinity'::float8, 170141183460469231731687303715884105727::hugeint, null::int, ''"
    with server.connect() as connection:
        ((nan, infinite, huge, nothing, empty),) = connection.cursor(binary=is_binary).execute(query).fetchall()
    assert math.isnan(nan)
    assert (infinite, huge, nothing, empty) == (-math.inf, Decimal(2**127 - 1), None, "")


def test_values_without_a_type_of_postgresql_are_json(server: Served) -> None:
    with server.connect() as connection:
        ((struct, nested),) = connection.execute("select {'a': 1, 'b': [1, null]}, [[1], [2, 3]]").fetchall()
    assert (struct, nested) == ({"a": 1, "b": [1, None]}, [[1], [2, 3]])
