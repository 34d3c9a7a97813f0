"""Suggest what to write instead of syntax that conditions do not have."""

from sqlglot import exp

SEE = "see expectations/README.md for all that they have"
ONE_ROW = "write what is true of one row; a window, a flow or columns_in_sql of a suite compare rows"
STEADY = "ask for columns alone; ingested_at is when the event came"
PATTERN = "write regexp_matches(unit, 'pattern')"
PART = "write unit like '%part%'"
IN_LIST = "write 'kitchen' in groups"
IN_SECONDS = "write date_part('epoch', event_time), which is in seconds since 1970"
CASES = "write case when .. then .. else .. end"
FINITE = "write value between -1e308 and 1e308, which is true of finite numbers alone"
AT_ONCE = "write the comparison out, with + - * / and round"
APART = "compare the parts one by one"
INSTANT = "write timestamp '2026-01-31 00:00:00', or try_cast(attributes['since'] as timestamp)"
AS_ATTRIBUTE = "read the part as an attribute of the source, in sources.yml"
IN_PARTS = "write date_part('{0}', event_time)"

FUNCTIONS = {
    **dict.fromkeys(("rand", "random", "uuid", "now", "today", "current_timestamp", "current_date", "getdate", "gen_random_uuid"), STEADY),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "nanvl"), FINITE),
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "regexp_full_match", "regexp_extract", "regexp_replace", "regexp_count"), PATTERN),
    **dict.fromkeys(("contains", "instr", "locate", "position", "strpos", "charindex"), PART),
    **dict.fromkeys(("startswith", "starts_with", "prefix"), "write unit like 'start%'"),
    **dict.fromkeys(("endswith", "ends_with", "suffix"), "write unit like '%end'"),
    **dict.fromkeys(("ltrim", "rtrim", "btrim"), "write trim(unit)"),
    **dict.fromkeys(("left", "right", "substr", "substring_index"), "write substring(unit, 1, 3), which takes 3 letters from the first on"),
    **dict.fromkeys(("array_contains", "list_contains", "array_position", "list_has", "exists", "any_match", "arrays_overlap"), IN_LIST),
    **dict.fromkeys(("size", "cardinality", "array_size", "array_length", "len"), "write length(groups)"),
    **dict.fromkeys(
        ("filter", "transform", "aggregate", "list_filter", "list_transform", "forall"), "write 'kitchen' in groups; a list has no more"
    ),
    **dict.fromkeys(("element_at", "split", "split_part", "get_json_object", "json_extract", "from_json"), AS_ATTRIBUTE),
    **dict.fromkeys(("concat", "concat_ws", "format_string", "printf"), APART),
    **dict.fromkeys(("if", "iff", "iif", "nvl2", "decode", "switch"), CASES),
    **dict.fromkeys(("isnull", "isnotnull"), "write value is null, or value is not null"),
    **dict.fromkeys(
        ("unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "to_unix_timestamp", "epoch", "epoch_ms", "epoch_us"), IN_SECONDS
    ),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "age", "date_sub", "date_add", "dateadd", "date_trunc"), IN_SECONDS),
    **{name: IN_PARTS.format(name) for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    "dayofmonth": IN_PARTS.format("day"),
    "weekofyear": IN_PARTS.format("week"),
    "dayofyear": IN_PARTS.format("doy"),
    **dict.fromkeys(("dayofweek", "weekday", "dayname"), "write date_part('isodow', event_time), which is 1 on Monday and 7 on Sunday"),
    **dict.fromkeys(("date_format", "strftime", "to_char"), "write date_part('hour', event_time) and its like"),
    **dict.fromkeys(("to_timestamp", "timestamp", "to_date", "date", "strptime", "make_timestamp", "from_unixtime"), INSTANT),
    **dict.fromkeys(("int", "integer", "bigint", "smallint", "trunc", "truncate"), "write floor(value), or round(value)"),
    **dict.fromkeys(("double", "float", "decimal"), f"write try_cast(unit as double); for infinity, {FINITE}"),
    **dict.fromkeys(("string", "varchar", "char"), "write cast(value as text)"),
    **dict.fromkeys(("try_divide", "try_add", "try_subtract", "try_multiply"), "write + - * /: what cannot be computed is null by itself"),
    **dict.fromkeys(("pow", "power", "square"), "write value * value"),
    **dict.fromkeys(("pmod", "fmod"), "write value % 10"),
    **dict.fromkeys(("sqrt", "exp", "ln", "log", "log10", "sin", "cos", "tan", "pi", "sign", "bround", "cbrt"), AT_ONCE),
}
"""Suggestions by the name of a function, in lower case."""
NODES: dict[tuple[type[exp.Expr], ...], tuple[str, str]] = {
    (exp.Query, exp.Subquery, exp.Exists): ("a subquery", ONE_ROW),
    (exp.Window, exp.AggFunc): ("more than one row", ONE_ROW),
    (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime): ("the current time", STEADY),
    (exp.Lambda, exp.JSONExtract): ("a lambda or a path", IN_LIST),
    (exp.DPipe, exp.Concat): ("joined texts", APART),
    (exp.Interval,): ("an interval", f"{IN_SECONDS}, and compare numbers"),
    (exp.If,): ("if", CASES),
    (exp.ILike,): ("ilike", "write lower(unit) like 'part%'"),
    (exp.Escape,): ("an escape of like", "write a backslash in front of % or _, which escapes them here"),
    (exp.SimilarTo, exp.Glob): ("a pattern of another language", PATTERN),
    (exp.NullSafeEQ, exp.NullSafeNEQ): ("a comparison of nulls", "write a = b or (a is null and b is null)"),
    (exp.IntDiv,): ("a division of whole numbers", "write floor(a / b)"),
    (exp.Pow,): ("a power", "write value * value"),
    (exp.Binary, exp.BitwiseNot): ("an operator", SEE),
    (exp.Array, exp.Struct, exp.Tuple): ("a list of its own", "write metric in ('a', 'b')"),
    (exp.Alias,): ("a name after an expression", "put an operator, or and or or, between the two"),
    (exp.Star, exp.Placeholder, exp.Parameter): ("a placeholder", "name a column"),
}
"""Descriptions and suggestions by the node of the parser."""
OWN = ("regexp_matches", "substring", "coalesce", "nullif", "greatest", "least", "length", "date_part", "round", "floor", "trim", "lower")
"""Functions that conditions have, for who misspells one."""
