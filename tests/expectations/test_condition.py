"""What each operator and function of a condition means; that `verify`, by code of its own, gives the same; and what is refused."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations.condition import condition, expression
from expectations.rule import Kind
from orchestration.audit.verify.conditions import evaluated
from tests.rows import at

NAN, INFINITY = float("nan"), float("inf")
SCHEMA = pa.schema(
    [
        *(("value", pa.float64()), ("other", pa.float64()), ("count", pa.int64()), ("unit", pa.string()), ("zone", pa.string())),
        *(("event_time", pa.timestamp("us")), ("ingested_at", pa.timestamp("us", "UTC")), ("ok", pa.bool_())),
        *(("groups", pa.list_(pa.string())), ("attributes", pa.map_(pa.string(), pa.string()))),
    ]
)
COLUMNS = {
    **dict.fromkeys(("value", "other", "count"), Kind.NUMBER),
    **dict.fromkeys(("unit", "zone"), Kind.TEXT),
    **dict.fromkeys(("event_time", "ingested_at"), Kind.TIMESTAMP),
    "ok": Kind.BOOLEAN,
    "groups": Kind.TEXTS,
    "attributes": Kind.ATTRIBUTES,
}
NUMBERS = (None, NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -2.5, 0.5, 1e308, -1e308, 5e-324, 1e-9, 9007199254740993.0, 3.0)
COUNTS = (None, 0, 1, -7, 2**63 - 1, -(2**63), 2**53 + 1, 12)
TEXTS = (
    *(None, "", " ", "a", "A", "abc", "oven_1", "oven-1", "50%", "a\\b", "it's", "ünï", "ß", "İ", "日本", "🤦🏼‍♂️", "é", "x\ny", "\t7\n"),
    *("3", " 12.5 ", "+5", ".5", "5.", "1e5", "1e400", "-1e-400", "9" * 400, "12345678901234567890", "1_000", "1,5", "0x10", "NaN", "inf"),
    *("true", "T", "yes", "0", "no", "2", "on", "\uff11\uff12", "1 2", "--1", "e5"),
    *("2026-01-01", "2026-01-01T10:30", "2026-01-01 10:30:15.5+02:00", "2026-03-29T02:30:00-0130", "2026-01-01T10:30:15.1234567Z"),
    *("2026-02-30", "1969-12-31T23:59:59.5Z", "0001-01-01", "9999-12-31T23:59:59.999999-23:59", "2026-01-01T24:00", "2026-01-01 Z"),
    *("2026-1-1", "infinity", "epoch", "2026-01-01T10:00+05", "2026-01-01T10:00 Europe/Berlin", " 2026-01-01", "2026-01-01T10:00+25:00"),
)
TIMES = (
    *(None, at("2026-01-01T10:30:15.5"), at("1969-12-31T23:59:59.5"), at("1900-02-28T12:00:00"), at("2026-03-29T01:00:00")),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), at("2000-02-29T00:00:00"), at("1970-01-01T00:00:00")),
)
LISTS: tuple[list[str | None] | None, ...] = (None, [], ["kitchen"], ["a", None], [""], ["a", "kitchen", "a"])
MAPS: tuple[list[tuple[str, str | None]] | None, ...] = (
    None,
    [],
    [("quality", "good")],
    [("quality", None)],
    [("level", "7"), ("quality", "")],
    [("since", "2026-01-01T00:00:00+02:00")],
)
MEANS: dict[str, Any] = {
    "null and true": "refused",
    "value > 1 and ok": None,
    "value > 1 and false": False,
    "value > 1 or true": True,
    "not value > 1": None,
    "coalesce(value, 3) = 3": True,
    "value is null": True,
    "value is not null": False,
    "value in (1, 2)": None,
    "1 not in (1, 2)": False,
    "value between 1 and 2": None,
    "1 between 1 and 2": True,
    "1 / 0": None,
    "0 / 0": None,
    "1 % 0": None,
    "-7 % 3": -1.0,
    "7.5 % 2": 1.5,
    "7 / 2": 3.5,
    "1e308 * 10": None,
    "1 / (1e308 * 10)": None,
    "-1e308 - 1e308": None,
    "1e308 * 10 * 0": None,
    "0.0 = -0.0": True,
    "0.1 + 0.2 = 0.3": False,
    "123456789012345678901234567890 = 1.2345678901234568e29": True,
    "try_cast('1e400' as double)": None,
    "try_cast(' 12.5 ' as double)": 12.5,
    "try_cast('1,5' as double)": None,
    "try_cast('NaN' as double)": None,
    "try_cast('' as double)": None,
    "cast('abc' as double)": None,
    "cast('2026-01-01T00:00:00+02:00' as timestamp) = timestamp '2025-12-31 22:00:00'": True,
    "timestamp '2026-01-01' = timestamp '2026-01-01 00:00:00Z'": True,
    "try_cast(lower('2026-01-01') as timestamp) = timestamp '2026-01-01 00:00:00'": True,
    "try_cast(lower('2026-02-30') as timestamp)": None,
    "try_cast(lower('2026-01-01 25:00') as timestamp)": None,
    "try_cast(lower('infinity') as timestamp)": None,
    "cast('yes' as boolean)": True,
    "cast('2' as boolean)": None,
    "cast(0.5 as boolean)": True,
    "cast(-0.0 as boolean)": False,
    "cast(true as double)": 1.0,
    "cast(1.0 as text)": "1.0",
    "cast(1e20 as text)": "1e+20",
    "cast(true as text)": "true",
    "cast(timestamp '2026-01-01 10:00:00.5' as text)": "2026-01-01 10:00:00.5",
    "date_part('hour', timestamp '2026-01-01 00:30:00+02:00')": 22.0,
    "date_part('isodow', timestamp '2026-01-04')": 7.0,
    "date_part('dow', timestamp '2026-01-04')": 0.0,
    "date_part('epoch', timestamp '1969-12-31 23:59:59.5')": -0.5,
    "date_part('second', timestamp '1969-12-31 23:59:59.5')": 59.0,
    "date_part('week', timestamp '2027-01-01')": 53.0,
    "length('ünï')": 3.0,
    "length('')": 0.0,
    "length(groups)": None,
    "substring('ünï', 2, 1)": "n",
    "substring('abc', 2)": "bc",
    "substring('abc', 9)": "",
    "substring('abc', 2, 0)": "",
    "upper('ü')": "Ü",
    "lower('ÄB')": "äb",
    "trim('  a b ')": "a b",
    "'50%' like '50\\%'": True,
    "'500' like '50\\%'": False,
    "'Oven' like 'oven'": False,
    "'fridge-1' not like 'fridge-%'": False,
    "'oven-1' not like 'fridge-%'": True,
    "unit not like 'fridge-%'": None,
    "'a' not in ('a')": False,
    "1 not between 0 and 2": False,
    "'a\nb' like 'a%b'": True,
    "'oven_1' like '%\\_1'": True,
    "'a\\b' like 'a\\\\b'": True,
    "regexp_matches('oven-12', '[0-9]+$')": True,
    "regexp_matches('oven', '^(?i)OV')": True,
    "'B' < 'a'": True,
    "'z' < 'é'": True,
    "round(2.5)": 3.0,
    "round(-2.5)": -3.0,
    "round(0.49999999999999994)": 0.0,
    "round(2.345, 2)": 2.35,
    "round(1e308, 15)": None,
    "floor(-0.5)": -1.0,
    "ceil(-0.5) = 0": True,
    "abs(-3)": 3.0,
    "least(1, value, 3)": 1.0,
    "greatest(value, null)": None,
    "greatest('a', 'b')": "b",
    "nullif(3, 3.0)": None,
    "nullif('a', 'b')": "a",
    "case when value > 1 then 'hot' end": None,
    "case when value > 1 then 'hot' else 'cold' end": "cold",
    "case unit when 'W' then 1 else 2 end": 2.0,
    "case 'W' when 'W' then 1 else 2 end": 1.0,
    "attributes['quality']": None,
    "'kitchen' in groups": None,
    "false < true": True,
}
"""Over a row of nulls, in Python's values; and one that is refused for its null."""
OF_ROWS = """
value = other; value <> other; value < other; value <= other; value > other; value >= other; value = count; value > 1; value in (0, 1, -2.5)
value not in (0, count); value between other and 3; value not between -1 and count; value is null; not value > 1; value > 1 and other > 1
value > 1 or other > 1 or ok; value + other; value - other; value * other; value / other; value % other; -value; -(value + other)
value + count; 1 / (value * other); (value / other) / (other / value); value * other * count % 7; abs(value); abs(value - other)
round(value); round(value, 2); round(value + other, 1); floor(value); ceil(value); least(value, other); greatest(value, other, count)
coalesce(value, other, 0); nullif(value, other); least(value / other, 3) > 1; cast(value as text)
cast(count as text); cast(value as boolean); cast(ok as double)
cast(ok as text); count = 9007199254740993; count % 10; case when value > 1 then value when ok then other else count end
case value when other then 'same' when 1 then 'one' end; ok; not ok; ok = true; ok and value is not null; ok is null; coalesce(ok, false)
value between -1e308 and 1e308
"""
OF_TEXTS = """
unit = zone; unit < zone; unit >= zone; unit <> 'a'; unit in ('a', zone); unit not in ('a', 'b'); unit between 'A' and zone; unit is null
unit like '%a%'; unit like 'oven\\_1'; unit like '50\\%'; unit like 'a\\\\%'; unit not like '_'; regexp_matches(unit, '^[a-z]+')
regexp_matches(unit, '(?i)A'); regexp_matches(unit, '\\d$'); length(unit); lower(unit); upper(unit); trim(unit); substring(unit, 2)
substring(unit, 1, 2); substring(unit, 3, 0); try_cast(unit as double); try_cast(unit as double) > 3; try_cast(unit as double) / 3
try_cast(unit as boolean); cast(unit as timestamp); date_part('hour', try_cast(unit as timestamp)); try_cast(trim(unit) as double)
coalesce(unit, 'none'); nullif(unit, ''); least(unit, zone); greatest(unit, 'b', zone); case unit when 'a' then 'A' else zone end
try_cast(unit as timestamp) > timestamp '2026-01-01'; cast(try_cast(unit as timestamp) as text); cast(unit as text) = unit
"""
OF_TIMES = """
event_time = ingested_at; event_time < ingested_at; event_time >= timestamp '1970-01-01 00:00:00'; event_time is null
event_time between timestamp '1969-01-01' and ingested_at; event_time in (timestamp '2000-02-29', ingested_at)
date_part('epoch', event_time) - date_part('epoch', ingested_at); date_part('year', event_time); date_part('quarter', event_time)
date_part('month', event_time); date_part('week', event_time); date_part('day', event_time); date_part('doy', event_time)
date_part('dow', event_time); date_part('isodow', event_time); date_part('hour', event_time); date_part('minute', event_time)
date_part('second', event_time); date_part('epoch', ingested_at); cast(event_time as text); cast(ingested_at as text)
least(event_time, ingested_at); greatest(event_time, ingested_at); coalesce(event_time, ingested_at); nullif(event_time, ingested_at)
extract(hour from ingested_at); case when event_time > ingested_at then event_time end
"""
OF_LISTS = """
'kitchen' in groups; 'a' not in groups; unit in groups; length(groups); groups is null; groups is not null; length(groups) > 1
attributes['quality']; attributes['quality'] = 'good'; attributes['quality'] is null; try_cast(attributes['level'] as double) > 3
try_cast(attributes['since'] as timestamp); attributes is null; coalesce(attributes['quality'], 'good') = 'good'
"""


def expressions(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


def plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def answers(texts: Sequence[str], rows: Sequence[dict[str, Any]]) -> tuple[list[list[Any]], list[list[Any]]]:
    """By what silver asks, and by what verify asks."""
    with duckdb.connect(config={"threads": 1}) as store:
        # What is asked may not depend on the zone of the machine.
        store.execute("set TimeZone = 'Asia/Kolkata'")
        store.register("rows", pa.Table.from_pylist(list(rows), SCHEMA))
        columns = ([expression(text, COLUMNS).sql for text in texts], [evaluated(text, SCHEMA) for text in texts])
        ours, theirs = ([store.sql(f"select {sql} as x from rows").fetchall() for sql in sqls] for sqls in columns)
    return [[plain(value) for (value,) in rows] for rows in ours], [[plain(value) for (value,) in rows] for rows in theirs]


@pytest.mark.parametrize(("text", "expected"), [(text, expected) for text, expected in MEANS.items() if expected != "refused"])
def test_both_evaluators_say_what_the_page_says(text: str, expected: Any) -> None:
    ours, theirs = answers([text], [{}])
    assert (ours, theirs) == ([[expected]], [[expected]])


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (OF_ROWS, [{"value": a, "other": b, "count": c, "ok": d} for a, b, c, d in product(NUMBERS, NUMBERS, COUNTS[:6:2], (True, None))]),
        (OF_ROWS, [{"value": a, "other": 2.0, "count": c, "ok": d} for a, c, d in product(NUMBERS, COUNTS, (True, False, None))]),
        (OF_TEXTS, [{"unit": a, "zone": b} for a, b in product(TEXTS, (None, "a", "", "ünï"))]),
        (OF_TIMES, [{"event_time": a, "ingested_at": b} for a, b in product(TIMES, TIMES)]),
        (OF_LISTS, [{"groups": a, "attributes": b, "unit": "a"} for a, b in product(LISTS, MAPS)]),
    ],
    ids=["numbers", "counts", "texts", "times", "lists"],
)
def test_both_evaluators_agree_on_every_row(texts: str, rows: list[dict[str, Any]]) -> None:
    asked = expressions(texts)
    rows = [row | {name: row[name].replace(tzinfo=None) for name in ("event_time",) if row.get(name)} for row in rows]
    for text, ours, theirs in zip(asked, *answers(asked, rows), strict=True):
        assert ours == theirs, text


WRITTEN = ("0", "1", "-2.5", "1e308", "3", "0.1", "100")
NUMBER: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["value", "other", "count", "length(unit)", "date_part('hour', event_time)", "try_cast(unit as double)", *WRITTEN]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "round", "floor", "ceil", "-"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["least", "greatest", "coalesce", "nullif"]), inner, inner),
        st.builds("round({}, {})".format, inner, st.integers(0, 15)),
    ),
    max_leaves=4,
)
TEXT: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["unit", "zone", "attributes['quality']", "'a'", "''", "'50%'", "'ünï'", "cast(value as text)"]),
    lambda inner: st.one_of(
        st.builds("{}({})".format, st.sampled_from(["lower", "upper", "trim"]), inner),
        st.builds("substring({}, {}, {})".format, inner, st.integers(1, 4), st.integers(0, 3)),
        st.builds("coalesce({}, {})".format, inner, inner),
    ),
    max_leaves=3,
)
CONDITION: st.SearchStrategy[str] = st.recursive(
    st.one_of(
        *(st.builds("{} {} {}".format, kind, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), kind) for kind in (NUMBER, TEXT)),
        st.builds("{} between {} and {}".format, NUMBER, NUMBER, NUMBER),
        st.builds("{} in ({}, {})".format, TEXT, TEXT, TEXT),
        st.builds("{} is {}null".format, st.one_of(NUMBER, TEXT), st.sampled_from(["", "not "])),
        st.builds("{} like {}".format, TEXT, st.sampled_from(["'%a%'", "'_'", "'50\\%'"])),
        st.sampled_from(["ok", "'a' in groups", "event_time < ingested_at", "try_cast(unit as timestamp) < ingested_at"]),
    ),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("not ({})".format, inner),
        st.builds("(case when {} then {} else {} end)".format, inner, inner, inner),
    ),
    max_leaves=4,
)
ROW = st.fixed_dictionaries(
    {
        "value": st.one_of(st.sampled_from(NUMBERS), st.floats()),
        "other": st.one_of(st.sampled_from(NUMBERS), st.floats()),
        "count": st.one_of(st.sampled_from(COUNTS), st.integers(-(2**63), 2**63 - 1)),
        "unit": st.one_of(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)),
        "zone": st.sampled_from(TEXTS),
        "event_time": st.one_of(st.none(), st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))),  # noqa: DTZ001  as silver has them
        "ingested_at": st.one_of(st.none(), st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))),  # noqa: DTZ001
        "ok": st.one_of(st.none(), st.booleans()),
        "groups": st.sampled_from(LISTS),
        "attributes": st.sampled_from(MAPS),
    }
)


@settings(max_examples=25)
@given(text=CONDITION, rows=st.lists(ROW, min_size=1, max_size=8))
def test_any_condition_has_the_same_verdict_of_both_for_any_row(text: str, rows: list[dict[str, Any]]) -> None:
    assert condition(text, COLUMNS).kind is Kind.BOOLEAN
    ours, theirs = answers([text], rows)
    assert ours == theirs
