"""What a suite computes means the same in DuckDB as in Spark, over values at the edges; what does not is refused."""

import math
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest
import sqlglot
from pyspark.sql import SparkSession

from expectations.translation import SAME, to_duckdb
from orchestration.quality.store import copy_rows, open_store
from orchestration.quality.suites import packaged
from tests.rows import at

DDL = "id INT, n BIGINT, m INT, v DOUBLE, w DOUBLE, s STRING, t TIMESTAMP, a ARRAY<DOUBLE>, g ARRAY<STRING>, b BOOLEAN, p BINARY"
NAN, INFINITY = float("nan"), float("inf")
ROWS: list[tuple[Any, ...]] = [
    (1, 7, 3, 1.5, 2.0, "Oven", at("2026-01-01T23:59:59.999999"), [1.0, None, 2.0], ["a", "b"], True, b"abc"),
    (2, -7, 3, -1.5, -0.0, "oven_1", at("2026-03-29T00:59:59"), [], [], False, b""),
    (3, 7, -3, NAN, 1.0, "", at("2026-03-29T01:00:00"), [NAN], ["a"], None, b"\xff"),
    (4, 0, 0, INFINITY, -INFINITY, "50%", at("2026-10-25T00:30:00"), [None], ["b", None], True, None),
    (5, None, None, None, None, None, None, None, None, None, None),
    (6, 2, 1, 2.5, NAN, "ü ß", at("1969-12-31T18:30:00.5"), [3.0, 1.0], ["A"], False, b"x"),
    (7, -1, 2, -2.5, 0.5, " 12 ", at("2000-02-29T00:00:00"), [INFINITY], ["b", "a"], True, b"\n"),
    (8, 9, 4, 0.1, 3.0, "a\\b'c", at("2026-12-31T00:00:00"), [0.1, 0.1], ["a", "a"], None, "ü".encode()),
]
ANSWERED = """
n + m; n - m; n * m; -n; abs(n); n % 3; n % -3; mod(n, 3); v % 2; n div 2; n / 2; v / -2; try_divide(v, w); (n + 1) * 2; pi(); exp(m)
v > 1; v >= w; v < w; v <= 2; v = w; v <> w; v != w; v <=> w; v between 0 and 2; isnan(v); not isnan(v); v is null; v is not null
v in (1.5, 2.5); not b; b and v > 0; b or v is null; v = double('nan'); abs(v) = double('infinity'); 1e-9 * v; power(m, 2)
greatest(v, w); least(v, w); greatest(n, m); coalesce(v, 0); nullif(n, 7); nvl(s, 'x'); if(b, 1, 2)
case when v > 1 then 'hot' else 'cold' end; round(v); round(v, 1); cast(n as double); cast(v > 1 as int); s = 'oven'; s < 'p'; length(s)
octet_length(p); lower(s); trim(s); reverse(s); substring(s, 2, 2); substring(s, -2); left(s, 2); right(s, 2); replace(s, 'o', '0')
instr(s, 'e'); locate('e', s); s like 'o%'; s like 'oven\\\\_1'; s like '%\\\\%'; s not like 'o%'; s ilike 'O%'; s rlike '^o'
s rlike 'ven'; startswith(s, 'o'); endswith(s, 'n'); contains(s, 'v'); regexp_extract(s, '([a-z]+)', 1)
regexp_replace(s, '[aeiou]', ''); year(t); quarter(t); month(t); day(t); hour(t); minute(t); second(t); dayofweek(t); dayofyear(t)
weekofyear(t); to_date(t); cast(t as date); date_trunc('hour', t); date_trunc('day', t); date_trunc('week', t); unix_micros(t)
unix_millis(t); unix_seconds(t); t > timestamp '2026-03-29 01:00:00'; t + interval 1 hour; t - interval 1 day
datediff(t, timestamp '2026-01-01'); t between '2026-01-01' and '2026-06-01'; size(a); size(g); size(filter(a, x -> x > 1))
size(filter(a, x -> isnan(x))); size(filter(a, x -> x is null)); transform(a, x -> x * 2); array_max(a); array_min(a)
size(array_intersect(g, array('a', 'b'))); sort_array(g); if(size(a) > 0, a[0], null); if(size(g) > 0, element_at(g, 1), null)
slice(g, 1, 1); aggregate(a, 0D, (x, y) -> x + y); sum(w) over (partition by b); avg(m) over (partition by b); count(v) over ()
median(m) over (); lag(v) over (order by id)
"""
REFUSED = """
sign(v); n % m; n / m; n div m; mod(n, m); pmod(n, 3); floor(v); ceil(v); sqrt(v); ln(v); log(10, v); bround(v); upper(s); concat(s, v)
s || v; octet_length(s, 1) + hash(s); substring(s, 0, 2); substring(s, m); weekday(t); unix_timestamp(t); date_add(t, 1)
date_format(t, 'yyyy'); array_contains(g, 'a'); array_distinct(g); array_position(g, 'a'); array_except(g, array('a'))
array_union(g, array('a')); exists(g, x -> x = 'a'); cast(v as string); cast(v as int); try_cast(s as int); cast(b as int)
get_json_object(s, '$.a'); to_timestamp(s); crc32(p); md5(s); rand(); concat_ws(',', a); current_timestamp(); (select 1); explode(a)
s like 'a' escape '/'
"""


def expressions(text: str) -> list[str]:
    return [each.strip() for line in text.strip().splitlines() for each in line.split(";")]


def plain(value: Any) -> Any:
    """As JSON would tell it, so that both sides have the same types; NaN equal to itself, floats to 12 digits."""
    match value:
        case int() | str() | None:
            return value
        case float():
            return "nan" if math.isnan(value) else float(f"{value:.12g}")
        case datetime():
            return value.timestamp()
        case list():
            return [plain(each) for each in value]
        case _:
            return str(value)


def test_duckdb_answers_what_spark_answers(spark: SparkSession) -> None:
    asked = expressions(ANSWERED)
    in_spark = spark.createDataFrame(ROWS, DDL).coalesce(1).selectExpr("id", *(f"{each} as c{n}" for n, each in enumerate(asked)))
    with closing(open_store()) as store:
        copy_rows(store, "rows", spark.createDataFrame(ROWS, DDL).toArrow())
        columns = ", ".join(f"{to_duckdb(each)} as c{n}" for n, each in enumerate(asked))
        in_duckdb = store.sql(f"select id, {columns} from rows").to_arrow_table()
    of_both = [sorted(rows.to_pylist(), key=lambda row: int(row["id"])) for rows in (in_spark.toArrow(), in_duckdb)]
    answers = [{each: [plain(row[f"c{n}"]) for row in rows] for n, each in enumerate(asked)} for rows in of_both]
    assert answers[1] == answers[0]


def test_every_kind_of_node_that_is_accepted_is_compared() -> None:
    trees = [sqlglot.parse_one(each, read="spark") for each in expressions(ANSWERED)]
    assert {type(node).__name__ for tree in trees for node in tree.walk()} >= SAME


@pytest.mark.parametrize("sql", expressions(REFUSED))
def test_what_would_differ_is_refused_with_the_way_out(sql: str) -> None:
    with pytest.raises(ValueError, match="is more than quality checks can compute; "):
        to_duckdb(sql)


def test_what_the_packaged_suites_compute_is_translated() -> None:
    assert all(to_duckdb(sql) for each in packaged() for sql in each.columns.values())
