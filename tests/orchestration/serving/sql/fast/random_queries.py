"""Queries of the subset that the fast engine answers, made at random over `ops.edges`."""

from hypothesis import strategies as st

WHOLE, DOUBLES = ("i", "l", "m", "id"), ("d", "e")
TEXTS, INSTANTS, DATES = ("s", "r"), ("t", "u"), ("y",)
UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


def _nested(base: st.SearchStrategy[str], *more: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(base, base, *more)


def _call(form: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda made: form.format(*made))


def whole(depth: int) -> st.SearchStrategy[str]:
    """Whole numbers."""
    base = st.one_of(st.sampled_from(WHOLE), st.integers(-9, 99).map(str))
    if depth == 0:
        return base
    inner, text, instant = whole(depth - 1), texts(depth - 1), instants(depth - 1)
    return _nested(
        base,
        _call("({} {} {})", inner, st.sampled_from("+-*"), inner),
        _call("({} {} {})", inner, st.sampled_from(("%", "div")), st.sampled_from(("2", "7", "-3"))),
        _call("coalesce({}, {})", inner, inner),
        _call("abs({})", inner),
        _call("greatest({}, {})", inner, inner),
        _call("length({})", text),
        _call("instr({}, 'e')", text),
        _call("{}({})", st.sampled_from(("year", "month", "day", "dayofweek", "dayofyear", "weekofyear", "quarter")), instant),
        _call("unix_seconds({})", instant),
        _call("timestampdiff({}, {}, {})", st.sampled_from(("second", "hour", "day")), instant, instant),
        _call("if({}, {}, {})", conditions(depth - 1), inner, inner),
        _call("case when {} then {} end", conditions(depth - 1), inner),
        _call("cast({} as int)", conditions(depth - 1)),
        _call("nullif({}, {})", inner, inner),
        _call("size({})", st.sampled_from(("a", "g", "v"))),
    )


def doubles(depth: int) -> st.SearchStrategy[str]:
    """Numbers with a point."""
    base = st.one_of(st.sampled_from(DOUBLES), st.sampled_from(("1.5D", "-0.25D", "0D", "2e3", "double('nan')")))
    if depth == 0:
        return base
    inner, number = doubles(depth - 1), whole(depth - 1)
    return _nested(
        base,
        _call("({} {} {})", inner, st.sampled_from("+-*"), st.one_of(inner, number)),
        _call("({} / {})", st.one_of(inner, number), st.sampled_from(("2", "0.5", "-3e0"))),
        _call("try_divide({}, {})", inner, inner),
        _call("round({}, {})", inner, st.sampled_from("0123")),
        _call("{}({})", st.sampled_from(("abs", "sqrt", "sign")), inner),
        _call("{}({}, {})", st.sampled_from(("greatest", "least", "coalesce", "nanvl", "nullif")), inner, inner),
        _call("get(a, {})", number),
        _call("(- {})", inner),
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    """Strings."""
    base = st.one_of(st.sampled_from(TEXTS), st.sampled_from(("''", "'e'", "'%'", "'Ä ß'", "'it\\'s'", '"a\\\\b"')))
    if depth == 0:
        return base
    inner = texts(depth - 1)
    return _nested(
        base,
        _call("({} || {})", inner, inner),
        _call("{}({})", st.sampled_from(("upper", "lower", "trim", "reverse", "ltrim")), inner),
        _call("{}({}, {})", st.sampled_from(("left", "right")), inner, st.sampled_from("023")),
        _call("substring({}, {}, {})", inner, st.sampled_from("123"), st.sampled_from("013")),
        _call("replace({}, 'e', {})", inner, inner),
        _call("lpad({}, 4, '*')", inner),
        _call("coalesce({}, {})", inner, inner),
        _call("cast({} as string)", st.one_of(whole(depth - 1), instants(depth - 1), conditions(depth - 1))),
        _call("date_format({}, 'yyyy-MM-dd')", instants(depth - 1)),
        _call("concat_ws('-', {}, {})", inner, inner),
    )


def instants(depth: int) -> st.SearchStrategy[str]:
    """Timestamps."""
    base = st.one_of(st.sampled_from(INSTANTS), st.just("timestamp '2026-01-05T12:34:56.5Z'"))
    if depth == 0:
        return base
    inner = instants(depth - 1)
    return _nested(
        base,
        _call("date_trunc('{}', {})", st.sampled_from(UNITS), inner),
        _call("({} {} interval {} {})", inner, st.sampled_from("+-"), st.integers(0, 50).map(str), st.sampled_from(UNITS)),
        _call("coalesce({}, {})", inner, inner),
        _call("cast(y as timestamp)"),
        _call("if({}, {}, {})", conditions(depth - 1), inner, inner),
    )


def conditions(depth: int) -> st.SearchStrategy[str]:
    """True, false or null."""
    base = st.sampled_from(("f", "true", "i > 1", "d > 0", "s = 'Oven'", "t >= '2026-01-01'", "a is null", "y < date '2026-01-01'"))
    if depth == 0:
        return base
    inner, sign = conditions(depth - 1), st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    return _nested(
        base,
        *(_call("({} {} {})", kind(depth - 1), sign, kind(depth - 1)) for kind in (whole, doubles, texts, instants)),
        _call("({} < {})", whole(depth - 1), doubles(depth - 1)),
        _call("({} {} {})", inner, st.sampled_from(("and", "or")), inner),
        _call("(not {})", inner),
        _call("({} is {})", inner, st.sampled_from(("null", "not null", "true", "not false"))),
        _call("({} between {} and {})", doubles(depth - 1), doubles(depth - 1), doubles(depth - 1)),
        _call("({} in ({}, {}, 7))", whole(depth - 1), whole(depth - 1), whole(depth - 1)),
        _call("({} like {})", texts(depth - 1), st.sampled_from(("'%e%'", "'_v%'", "''", "'o%'", "'%\\\\%%'"))),
        _call("({} rlike {})", texts(depth - 1), st.sampled_from(("'^[a-zA-Z]+$'", "'e|x'", "'.n'", "'\\\\s'"))),
        _call("array_contains(g, {})", texts(depth - 1)),
        _call("isnan({})", doubles(depth - 1)),
    )


def _any(depth: int) -> st.SearchStrategy[str]:
    return st.one_of(*(kind(depth) for kind in (whole, doubles, texts, instants, conditions)))


def _rows() -> st.SearchStrategy[str]:
    listed = st.lists(_any(3), min_size=3, max_size=5).map(lambda made: ", ".join(f"{each} as c{n}" for n, each in enumerate(made)))
    return _call("select id, {} from ops.edges where {} or id < 9 order by id", listed, conditions(2))


def _groups() -> st.SearchStrategy[str]:
    key = st.one_of(conditions(1), texts(1), whole(1), doubles(1))
    aggregate = st.one_of(
        _call("{}({})", st.sampled_from(("count", "min", "max")), _any(1)),
        _call("{}({})", st.sampled_from(("sum", "avg", "stddev", "median")), whole(1)),
        _call("count(distinct {})", st.one_of(whole(1), doubles(1), texts(1))),
        _call("{}({}) filter (where {})", st.sampled_from(("sum", "min")), st.one_of(whole(1), doubles(1)), conditions(1)),
        _call("percentile({}, 0.3)", whole(1)),
        st.just("count(*)"),
    )
    return _call(
        "select {0} as k, {2} as a, {3} as b from ops.edges where {1} or id < 9 group by k order by a, b, k",
        key,
        conditions(1),
        aggregate,
        aggregate,
    )


def _joins() -> st.SearchStrategy[str]:
    kind = st.sampled_from(("join", "left join", "right join", "full join", "left semi join", "left anti join"))
    sign = st.sampled_from(("=", "<=>", "<"))
    on = st.one_of(
        *(_call("p.{} {} q.{}", st.sampled_from(names), sign, st.sampled_from(names)) for names in (WHOLE, DOUBLES, TEXTS, INSTANTS))
    )
    return _call("select p.id from ops.edges p {} ops.edges q on {} and p.id < 8 order by 1", kind, on)


def _windows() -> st.SearchStrategy[str]:
    function = st.one_of(
        st.sampled_from(("row_number()", "rank()", "dense_rank()", "ntile(3)", "cume_dist()")),
        _call("lag({}, 2)", _any(1)),
        _call("{}({})", st.sampled_from(("sum", "min", "max", "count", "avg")), whole(1)),
        _call("{}({})", st.sampled_from(("min", "max", "first_value")), st.one_of(doubles(1), texts(1))),
    )
    return _call(
        "select id, {} over (partition by {} order by {}, id) as x from ops.edges order by id",
        function,
        st.one_of(conditions(1), doubles(1)),
        _any(1),
    )


def _sets() -> st.SearchStrategy[str]:
    word = st.sampled_from(("union", "union all", "intersect", "except"))
    return st.one_of(
        *(
            _call("select {} as x from ops.edges {} select {} from ops.edges order by x", kind(1), word, kind(1))
            for kind in (whole, doubles, texts)
        )
    )


made = st.one_of(_rows(), _rows(), _rows(), _groups(), _groups(), _joins(), _windows(), _sets())
"""In an order that both engines give, but for rows that are equal in all that is shown."""
