"""Every type of DuckDB, in every format of an answer, has the digits and the zone of its value; so it has in sinks of JSON."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from orchestration.column_texts import json_rows
from orchestration.errors import TidemarkError
from orchestration.rendering import plain, values
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.encoding import ARROW, CSV, JSON, encoded
from orchestration.serving.sql.output import write, write_parquet
from orchestration.web.queries import table_of
from tests.lakes import conf

BERLIN_DAY = "date_trunc('day', timestamptz '2026-03-28 12:00Z' at time zone 'Europe/Berlin')"
VALUES: list[tuple[str, str]] = [
    ("true", "true"),
    ("(-128)::tinyint", "-128"),
    ("255::utinyint", "255"),
    ("(-32768)::smallint", "-32768"),
    ("65535::usmallint", "65535"),
    ("(-2147483648)::integer", "-2147483648"),
    ("4294967295::uinteger", "4294967295"),
    ("9007199254740993", "9007199254740993"),
    ("18446744073709551615::ubigint", "18446744073709551615"),
    ("170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"),
    ("340282366920938463463374607431768211455::uhugeint", '"340282366920938463463374607431768211455"'),
    ("'12345678901234567890123456789012345678901'::bignum", '"12345678901234567890123456789012345678901"'),
    ("21.7::float", "21.7"),
    ("3.4028235e38::float", "3.4028235e+38"),
    ("'-infinity'::float", '"-Infinity"'),
    ("21.7::double", "21.7"),
    ("'nan'::double", '"NaN"'),
    ("null::double", "null"),
    ("'infinity'::double", '"Infinity"'),
    ("0.10::decimal(4, 2)", "0.10"),
    ("1.00::decimal(9, 2)", "1.00"),
    ("12345678901234567890.123456789::decimal(38, 9)", "12345678901234567890.123456789"),
    ("100000000000000000.25::decimal(20, 2)", "100000000000000000.25"),
    ("0.000000001::decimal(38, 9)", "0.000000001"),
    ("'say \"é\"'", '"say \\"é\\""'),
    ("'a\\xFF'::blob", '"a\\\\xff"'),
    ("'0101'::bit", '"0101"'),
    ("'c0ffee00-0000-0000-0000-000000000001'::uuid", '"c0ffee00-0000-0000-0000-000000000001"'),
    ("'warm'::enum('cold', 'warm')", '"warm"'),
    ("'{\"a\": 1.10}'::json", '"{\\"a\\": 1.10}"'),
    ("'1'::variant", '"1"'),
    ("interval '1 month 2 days 00:00:03.5'", '"1 month 2 days 00:00:03.5"'),
    ("date '2026-03-28'", '"2026-03-28"'),
    ("date 'infinity'", '"infinity"'),
    ("date '20000-01-01'", '"20000-01-01"'),
    ("date '0044-03-15 (BC)'", '"-0043-03-15"'),
    ("time '24:00:00'", '"24:00:00"'),
    ("'12:00:00.123456789'::time_ns", '"12:00:00.123456789"'),
    ("'12:00:00+02'::timetz", '"12:00:00+02"'),
    (BERLIN_DAY, '"2026-03-28T00:00:00"'),
    ("timestamp '2026-03-28 00:00:00.5'", '"2026-03-28T00:00:00.500000"'),
    ("timestamp '-infinity'", '"-infinity"'),
    ("timestamp '294246-01-01'", '"294246-01-01T00:00:00"'),
    ("timestamp '0044-03-15 (BC) 12:00:00'", '"-0043-03-15T12:00:00"'),
    ("timestamp_s '2026-03-28 00:00:01'", '"2026-03-28T00:00:01"'),
    ("timestamp_s 'infinity'", '"infinity"'),
    ("timestamp_ms '2026-03-28 00:00:00.25'", '"2026-03-28T00:00:00.250000"'),
    ("timestamp_ns '2026-03-28 00:00:00.123456789'", '"2026-03-28T00:00:00.123456789"'),
    ("timestamp_ns 'infinity'", '"infinity"'),
    ("timestamptz '2026-03-28 00:00:00+01'", '"2026-03-27T23:00:00Z"'),
    ("timestamptz 'infinity'", '"infinity"'),
    ("timestamptz '-infinity'", '"-infinity"'),
    ("timestamptz '12026-03-28 00:00:00Z'", '"12026-03-28T00:00:00Z"'),
    ("[21.7::float, null]", "[21.7, null]"),
    (f"[{BERLIN_DAY}, null]", '["2026-03-28T00:00:00", null]'),
    ("[timestamptz 'infinity', '2026-03-28 00:00Z']", '["infinity", "2026-03-28T00:00:00Z"]'),
    ("[[date '-infinity'], null]", '[["-infinity"], null]'),
    ("array_value(21.7::float, 'nan'::float)", '[21.7, "NaN"]'),
    (
        "{'t': timestamp '12026-03-28', 'f': 21.7::float, 'd': 1.10, 'n': null::float}",
        '{"t": "12026-03-28T00:00:00", "f": 21.7, "d": 1.10, "n": null}',
    ),
    ("map {timestamp '2026-03-28': 1.10}", '{"2026-03-28T00:00:00": 1.10}'),
    ("union_value(n := 21.7::float)", '"21.7"'),
    ("timestamptz_ns '2026-03-28 00:00:00.123456789+01'", '"2026-03-27T23:00:00.123456789Z"'),
    ("row(21.7::float, 'a')", '{"element1": 21.7, "element2": "a"}'),
    ("[5::hugeint]", "[5]"),
    ("'POINT (1 2)'::geometry", '"POINT (1 2)"'),
    ("null", "null"),
]
"""Expressions, and what they are in JSON: numbers with all their digits, instants with Z, local times without it."""
NOT_OF_VALUES = {"TYPE"}


@pytest.fixture(scope="module")
def engine() -> DuckDbEngine:
    return DuckDbEngine(conf(Path("/nowhere")), Limits())


def with_digits(content: str | bytes) -> object:
    return json.loads(content, parse_float=Decimal)


@pytest.mark.parametrize(("expression", "expected"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_value_of_each_type_is_the_same_in_every_format(
    engine: DuckDbEngine, capsys: pytest.CaptureFixture[str], expression: str, expected: str
) -> None:
    answer = engine.ask(Question(f"select {expression} as x, 1 as n"))
    value = json.loads(expected)
    text = "" if value is None else value if isinstance(value, str) else expected

    def printed(format: str) -> str:
        write(answer, format)
        return capsys.readouterr().out

    assert printed("json") == f'[{{"x": {expected}, "n": 1}}]\n'
    assert with_digits(encoded(answer, JSON, "n").body)["rows"] == [[with_digits(expected), 1]]  # type: ignore[index]
    assert with_digits(json_rows(answer.rows)[0]) == with_digits(f'{{"x": {expected}, "n": 1}}')
    for content in (printed("csv"), encoded(answer, CSV, "n").body.decode()):
        assert [*csv.reader(io.StringIO(content))] == [["x", "n"], [text, "1"]]
    assert printed("table").split("\n")[3].strip().removesuffix("1").rstrip() == text


@pytest.mark.parametrize("expression", [expression for expression, _ in VALUES])
def test_parquet_and_arrow_hold_the_value_as_it_is(engine: DuckDbEngine, expression: str) -> None:
    answer, file = engine.ask(Question(f"select {expression} as x")), io.BytesIO()
    assert plain(values(table_of(encoded(answer, ARROW, "n"))["x"])) == plain(values(answer.rows["x"]))
    if expression == "timestamp_s 'infinity'":
        with pytest.raises(TidemarkError, match="parquet cannot hold this answer"):
            write_parquet(answer, file)
        return
    write_parquet(answer, file)
    assert plain(values(pq.read_table(file)["x"])) == plain(values(answer.rows["x"]))


def test_every_type_of_duckdb_is_among_the_values() -> None:
    connection = duckdb.connect()
    names = {name for (name,) in connection.sql("select distinct logical_type from duckdb_types()").fetchall()}
    relation = connection.sql("select " + ", ".join(f"{expression} as x{n}" for n, (expression, _) in enumerate(VALUES)))
    assert {str(kind.id).upper() for kind in relation.types} >= {name.upper() for name in names - NOT_OF_VALUES}


@pytest.mark.parametrize("accept", [ARROW, CSV, JSON])
def test_the_least_and_the_greatest_value_of_each_type_can_be_sent(engine: DuckDbEngine, accept: str) -> None:
    answer = engine.ask(Question("from test_all_types()"))
    assert len(encoded(answer, accept, "n").body) > 1_000
    [least, greatest, absent] = [
        dict(zip(answer.rows.column_names, row, strict=True)) for row in zip(*map(values, answer.rows.columns), strict=True)
    ]
    assert (plain(least["timestamp_tz"]), plain(greatest["timestamp"])) == ("-290308-12-22T00:00:00Z", "294247-01-10T04:00:54.775806")
    assert {*absent.values()} == {None}
