"""Queries for DuckDB that would take all memory, or all time."""

MEMORY_BOMBS = (
    "select repeat('x', 10000000000)",
    "select length(repeat('x', 4000000000))",
    "select sum(length(repeat('x', 100000000 + i))) from range(100) r(i)",
    "select range(1000000000000)",
    "select range(1000000000)",
    "select list(i) from range(1000000000) r(i)",
    "select count(*) from range(1000000000000) a, range(1000000000000) b",
    "select string_agg(i::varchar || repeat('x', 1000), '') from range(10000000) r(i)",
    "with recursive t(n, s) as (select 1, 'x' union all select n + 1, s || s from t) select max(length(s)) from t",
    "select format('{:>2000000000}', 'x')",
    "select printf('%2000000000d', 1)",
    "select repeat(x, 1000000) || repeat('y', i::int) from (values ('ab')) t(x), range(1000000) r(i) order by 1",
)
"""Each needs more memory than there may be."""
ENDLESS = (
    "select count(*) from range(1000000000000) a, range(10) b where hash(a.range) = b.range",
    "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
    "select levenshtein(repeat('a', 200000), repeat('b', 200000))",
    "select lpad('x', 2000000000, 'y')",
    "select sleep_ms(1000000)",
)
"""Each takes more time than there may be; DuckDB's own interrupt does not end all of them."""
