# ruff: noqa: E501
r"""What may be called, and means the same in both engines. A test compares each line with Spark.

A line is `names (types) -> type: SQL | name`. `a|b` is either type; `number` any number, as a double; `T` any type, all T of a line in the
one that Spark mixes them in; `K` the same for what is compared by `=`, `O` for what has an order: written strings become instants there.
`E` is the element of the array before it. What begins with # is written out: `#text` a string, `#0` a whole number from 0 on, others see
functions._written. `..` repeats the last type. `$1` is the first argument, `$*` all of them, `$+` all but the first, `$$` all with || between;
`$d` is where DISTINCT stands, `$t` where FILTER or OVER stand, NAME the name as written.
The last part is how Spark names a column without alias, `NAME($*)` if nothing is said.
"""

import re
from dataclasses import dataclass
from functools import cache

from orchestration.serving.sql.fast.literals import MICROS

OPERATORS = r"""
+ - * (int, int) -> int: $1 NAME $2 | ($1 NAME $2)
+ - * (bigint, bigint) -> bigint: $1 NAME $2 | ($1 NAME $2)
+ - * (number, number) -> double: $1 NAME $2 | ($1 NAME $2)
+ (date, int) -> date: $1 + $2 | date_add($1, $2)
- (date, int) -> date: $1 - $2 | date_sub($1, $2)
% (int, int) -> int: $1 % $2 | ($1 % $2)
% (bigint, bigint) -> bigint: $1 % $2 | ($1 % $2)
% (number, number) -> double: case when $2 = 0 and $1 is not null then 1 // cast($2 <> 0 as int) else $1 % $2 end | ($1 % $2)
/ (number, number) -> double: case when $2 = 0 and $1 is not null then 1 // cast($2 <> 0 as int) else $1 / $2 end | ($1 / $2)
div (bigint, bigint) -> bigint: $1 // $2 | ($1 div $2)
unary- (int|bigint|decimal|double) -> same: - $1 | (- $1)
= (K, K) -> boolean: $1 = $2 | ($1 = $2)
<> (K, K) -> boolean: $1 <> $2 | (NOT ($1 = $2))
<=> (K, K) -> boolean: $1 is not distinct from $2 | ($1 <=> $2)
distinct (K, K) -> boolean: $1 is distinct from $2 | (NOT ($1 <=> $2))
< > <= >= (O, O) -> boolean: $1 NAME $2 | ($1 NAME $2)
between (O, O, O) -> boolean: $1 between $2 and $3
in (K, K..) -> boolean: $1 in ($+) | ($1 IN ($+))
and (condition, condition) -> boolean: $1 and $2 | ($1 AND $2)
or (condition, condition) -> boolean: $1 or $2 | ($1 OR $2)
not (condition) -> boolean: not $1 | (NOT $1)
isnull (any) -> boolean: $1 is null | ($1 IS NULL)
isnotnull (any) -> boolean: $1 is not null | ($1 IS NOT NULL)
istrue (boolean) -> boolean: $1 is true | ($1 <=> true)
isfalse (boolean) -> boolean: $1 is false | ($1 <=> false)
|| concat (plain, plain..) -> string: $$ | concat($*)
[] (array, index) -> element: $1[case when $2 < 0 or $2 >= len($1) then cast('no index ' || $2 || ' in an array of ' || len($1) as int) else $2 + 1 end] | $1[$2]
[] (map, #text) -> value: $1[$2] | $1[$2]
"""
FUNCTIONS = r"""
unary+ (int|bigint|decimal|double) -> same: $1 | (+ $1)
mod (int, int) -> int: $1 % $2
mod (bigint, bigint) -> bigint: $1 % $2
like (string, #like) -> boolean: $1 like $2 escape '\' | $1 LIKE $2
ilike (string, #like) -> boolean: lower_of($1) like lower_of($2) escape '\'
rlike (string, #regex) -> boolean: regexp_matches($1, $2) | RLIKE($1, $2)
concat (plain, plain..) -> string: $$
coalesce ifnull nvl (T, T..) -> T: coalesce($*)
if (condition, T, T) -> T: case when $1 then $2 else $3 end | (IF($*))
nvl2 (any, T, T) -> T: case when $1 is not null then $2 else $3 end
nullif (O, O) -> same: nullif($1, $2)
greatest least (L, L..) -> T: NAME($*)
concat_ws (#text, string|void..) -> string: concat_ws($*)
upper ucase (string) -> string: upper_of($1)
lower lcase (string) -> string: lower_of($1)
reverse (string) -> string: reverse_of($1)
length len char_length character_length (string) -> int: cast(length($1) as int)
length len octet_length (binary) -> int: cast(octet_length($1) as int)
octet_length (string) -> int: cast(strlen($1) as int)
trim ltrim rtrim (string) -> string: NAME($1, ' ')
startswith (string, string) -> boolean: starts_with($1, $2)
endswith (string, string) -> boolean: ends_with($1, $2)
contains (string, string) -> boolean: contains($1, $2)
instr (string, string) -> int: cast(instr($1, $2) as int)
locate position (string, string) -> int: cast(instr($2, $1) as int) | NAME($*, 1)
left right (string, #0) -> string: NAME($1, $2)
substring substr (string, #1) -> string: substr($1, $2) | NAME($*, 2147483647)
substring substr (string, #1, #0) -> string: substr($1, $2, $3)
split_part (string, #filled, #1) -> string: split_part($1, $2, $3)
replace (string, #filled, string) -> string: replace($1, $2, $3)
lpad rpad (string, #long) -> string: NAME($1, $2, ' ') | ?
lpad rpad (string, #long, #filled) -> string: NAME($1, $2, $3)
repeat (string, #long) -> string: repeat($1, $2)
md5 (string) -> string: md5($1)
hex (binary) -> string: hex($1)
abs (int|bigint|double) -> same: abs($1)
sign (number) -> double: case when isnan($1) then $1 else cast(sign($1) as double) end
signum (number) -> double: case when isnan($1) then $1 else cast(sign($1) as double) end | SIGNUM($1)
floor ceil (bigint) -> bigint: $1 | UPPER($1)
ceiling (bigint) -> bigint: $1
floor ceil (double) -> bigint: cast(NAME($1) as bigint) | UPPER($1)
ceiling (double) -> bigint: cast(ceil($1) as bigint)
round (int|bigint) -> same: $1 | round($1, 0)
round (int|bigint, #digits) -> same: $1
round (double) -> double: round($1) | round($1, 0)
round (double, #digits) -> double: case when $2 = 0 then round($1) when abs($1) < 0.5 / 10 ** ($2) then 0e0 when abs($1) < 1e15 then ROUNDED else $1 end
sqrt (number) -> double: case when $1 < 0 then 'NaN' else sqrt($1) end | SQRT($1)
exp (number) -> double: exp($1) | EXP($1)
ln (number) -> double: case when $1 <= 0 then null else ln($1) end
log10 log2 (number) -> double: case when $1 <= 0 then null else NAME($1) end | UPPER($1)
pow (number, #0) -> double: power($1, $2)
power (number, #0) -> double: power($1, $2) | POWER($*)
isnan (double) -> boolean: coalesce(isnan($1), false)
nanvl (double, double) -> double: case when isnan($1) then $2 else $1 end
pi () -> double: pi() | PI()
pmod (int, #1) -> int: (($1 % $2) + $2) % $2
pmod (bigint, #1) -> bigint: (($1 % $2) + $2) % $2
try_divide (number, number) -> double: $1 / nullif($2, 0)
year quarter month day dayofmonth dayofyear weekofyear (time) -> int: cast(NAME($1) as int)
dayofweek (time) -> int: cast(dayofweek($1) + 1 as int)
weekday (time) -> int: cast(isodow($1) - 1 as int)
hour minute second (clock) -> int: cast(NAME($1) as int)
extract (#clockpart, clock) -> int: cast(date_part($1, $2) as int) | extract($1 FROM $2)
extract (#datepart, time) -> int: cast(date_part($1, $2) as int) | extract($1 FROM $2)
date_part (#clockpart, clock) -> int: cast(date_part($1, $2) as int)
date_part (#datepart, time) -> int: cast(date_part($1, $2) as int)
date_trunc (#unit, time) -> timestamp: aware(date_trunc($1, $2))
trunc (time, #dateunit) -> date: cast(date_trunc($2, $1) as date)
date_format (time, #format) -> string: strftime($1, $2)
to_date (time) -> date: cast($1 as date)
to_date (written) -> date: $1
to_timestamp (instant) -> timestamp: $1
unix_seconds (timestamp) -> bigint: epoch_us(date_trunc('second', naive($1))) // 1000000
unix_timestamp (timestamp) -> bigint: epoch_us($1) // 1000000 | unix_timestamp($1, yyyy-MM-dd HH:mm:ss)
unix_millis (timestamp) -> bigint: epoch_us(date_trunc('millisecond', naive($1))) // 1000
unix_micros (timestamp) -> bigint: epoch_us($1)
timestamp_seconds (bigint) -> timestamp: make_timestamptz($1 * 1000000)
timestamp_millis (bigint) -> timestamp: make_timestamptz($1 * 1000)
timestamp_micros (bigint) -> timestamp: make_timestamptz($1)
datediff date_diff (time, time) -> int: cast(cast($1 as date) - cast($2 as date) as int)
timestampdiff datediff (#elapsed, instant, instant) -> bigint: (epoch_us($3) - epoch_us($2)) // $1 | timestampdiff($*)
date_add (time, int) -> date: cast($1 as date) + $2
date_sub (time, int) -> date: cast($1 as date) - $2
unix_date (date) -> int: cast($1 - date '1970-01-01' as int)
current_timestamp now () -> timestamp: now()
current_date () -> date: current_date
size cardinality array_size (array) -> int: cast(len($1) as int)
size cardinality (map) -> int: cast(cardinality($1) as int)
get (array, index) -> element: case when $2 >= 0 then $1[$2 + 1] end
element_at (array, #1) -> element: $1[case when $2 > len($1) then cast('no index ' || ($2 - 1) || ' in an array of ' || len($1) as int) else $2 end]
try_element_at (array, #1) -> element: $1[$2]
element_at try_element_at (map, #text) -> value: $1[$2]
array_contains (array, E) -> boolean: case when $1 is null or $2 is null then null when list_contains($1, $2) then true when list_count($1) < len($1) then null else false end
map_keys (map) -> keys: map_keys($1)
map_values (map) -> values: map_values($1)
"""
AGGREGATES = """
count (any) -> bigint: count($d $1)$t
count_if (boolean) -> bigint: count(case when $1 then 1 end)$t
sum (int|bigint) -> bigint: cast(sum($d $1)$t as bigint)
sum (double) -> double: sum($d $1)$t
avg mean (number) -> double: avg($d $1)$t
min max (L) -> same: NAME($1)$t
bool_or any some (boolean) -> boolean: bool_or($1)$t
bool_and every (boolean) -> boolean: bool_and($1)$t
stddev std stddev_samp (number) -> double: stddev_samp($1)$t
stddev_pop (number) -> double: stddev_pop($1)$t
variance var_samp (number) -> double: var_samp($1)$t
var_pop (number) -> double: var_pop($1)$t
covar_pop covar_samp (number, number) -> double: NAME($1, $2)$t
corr (number, number) -> double: case when count($1 + $2)$t > 1 then corr($1, $2)$t end
median (number) -> double: MEDIAN
percentile (number, #share) -> double: QUANTILE | NAME($*, 1)
max_by (any, L) -> same: arg_max_null($1, $2)$t
min_by (any, L) -> same: arg_min_null($1, $2)$t
"""
CASTS = r"""
boolean (boolean|void) -> boolean: cast($1 as boolean) | CAST($1 AS UPPER)
int bigint (void|boolean|int|bigint|#whole) -> NAME: cast($1 as NAME) | CAST($1 AS UPPER)
int bigint (double) -> NAME: cast(trunc($1) as NAME) | CAST($1 AS UPPER)
double (void|number|#real) -> double: cast($1 as double) | CAST($1 AS UPPER)
string (void|string|boolean|int|bigint|date) -> string: cast($1 as varchar) | CAST($1 AS UPPER)
string (binary) -> string: decode($1) | CAST($1 AS UPPER)
string (timestamp) -> string: regexp_replace(strftime(naive($1), '%Y-%m-%d %H:%M:%S.%f'), '\.?0+$', '') | CAST($1 AS UPPER)
binary (binary|void) -> binary: cast($1 as blob) | CAST($1 AS UPPER)
binary (string) -> binary: encode($1) | CAST($1 AS UPPER)
date (date|void|#date) -> date: cast($1 as date) | CAST($1 AS UPPER)
date (timestamp) -> date: cast(naive($1) as date) | CAST($1 AS UPPER)
timestamp (timestamp|date|void|#timestamp) -> timestamp: cast($1 as timestamptz) | CAST($1 AS UPPER)
"""
OF_WINDOWS = """
row_number rank dense_rank () -> int: cast(NAME()$t as int)
percent_rank cume_dist () -> double: NAME()$t
ntile (#1) -> int: cast(ntile($1)$t as int)
lag lead (any) -> same: NAME($1)$t
lag lead (any, #1) -> same: NAME($1, $2)$t
first_value last_value (any) -> same: NAME($1)$t
nth_value (any, #1) -> same: nth_value($1, $2)$t
"""
# By its shortest decimal text, half away from 0, as Spark does; DuckDB's own rounds what it has multiplied.
ROUNDED = "cast(cast(cast($1 as varchar) as decimal(38, $2)) as double)"
# Between two infinite values DuckDB's own answers NaN, where Spark answers one of them.
QUANTILE = (
    "case when bool_or(isinf($1))$t then cast('quantile of infinite values: ' || count($1)$t as double) else quantile_cont($1, $2)$t end"
)
SHORT = {"ROUNDED": ROUNDED, "QUANTILE": QUANTILE, "MEDIAN": QUANTILE.replace("$2", "0.5")}
IN_WINDOWS = {"count", "sum", "avg", "mean", "min", "max"}
UNFRAMED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
"""Need an order and take no frame."""
INSTEAD = {
    **dict.fromkeys(("approx_percentile", "percentile_approx"), "use percentile"),
    "approx_count_distinct": "use count(distinct ..)",
    "first": "use min_by",
    "last": "use max_by",
    "any_value": "use min or max",
}
"""Aggregates that are known to answer otherwise."""
UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("quarter", "week", "hour", "minute", "second")},
}
"""What date_trunc cuts to, by its names in Spark."""
DATE_UNITS = {name: unit for name, unit in UNITS.items() if unit in {"year", "quarter", "month", "week"}}
DATE_PARTS = {
    **{unit: unit for unit in ("year", "quarter", "month", "week", "day", "doy")},
    "years": "year",
    "months": "month",
    "days": "day",
}
CLOCK_PARTS = {"hour": "hour", "minute": "minute", "hours": "hour", "minutes": "minute"}
ELAPSED = {unit: str(micros) for unit, micros in MICROS.items() if micros >= 1_000_000}
CHOICES = {"unit": UNITS, "dateunit": DATE_UNITS, "datepart": DATE_PARTS, "clockpart": CLOCK_PARTS, "elapsed": ELAPSED}
RANGES = {"long": range(10_001), "digits": range(5)}
LINE = re.compile(r"(?P<names>[^(]+) \((?P<takes>[^)]*)\) -> (?P<type>\S+): (?P<sql>.+?)(?: \| (?P<column>[^|]+))?")


@dataclass(frozen=True)
class Signature:
    """One line for one name."""

    takes: tuple[str, ...]
    type: str
    sql: str
    column: str


@cache
def signatures(lines: str) -> dict[str, list[Signature]]:
    """By the name of the function; the first that takes the arguments counts."""
    known: dict[str, list[Signature]] = {}
    for line in filter(None, lines.splitlines()):
        parts = LINE.fullmatch(line)
        assert parts is not None, line
        takes = tuple(filter(None, parts["takes"].split(", ")))
        for name in parts["names"].split():
            sql, column = SHORT.get(parts["sql"], parts["sql"]).replace("ROUNDED", ROUNDED), parts["column"] or "NAME($*)"
            column = column.replace("UPPER", name.upper()).replace("NAME", name)
            known.setdefault(name, []).append(Signature(takes, parts["type"].replace("NAME", name), sql.replace("NAME", name), column))
    return known
