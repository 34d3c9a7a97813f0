"""Expressions, read with the precedence that Spark's grammar gives them."""

from collections.abc import Callable
from functools import partial

from orchestration.query.fast.literals import interval, number, string, type_name
from orchestration.query.fast.reader import Reader
from orchestration.query.fast.syntax import Call, Case, Cast, Expression, InQuery, Literal, Name, Order, Over, Star, Subquery
from orchestration.query.fast.telling import differs

COMPARISONS = ("<=>", "<>", "!=", "==", "<=", ">=", "=", "<", ">")
SAME_SIGN = {"==": "=", "!=": "<>"}
BOUNDS = ("unbounded preceding", "unbounded following", "current row")


def expression(reader: Reader) -> Expression:
    """OR binds least, then AND, then NOT, then one predicate of values."""
    return _chain(reader, ("or",), partial(_chain, words=("and",), part=_negated))


def _chain(reader: Reader, words: tuple[str, ...], part: Callable[[Reader], Expression]) -> Expression:
    left = part(reader)
    while reader.next.word in words:
        sign = reader.move()
        left = Call(SAME_SIGN.get(sign.word, sign.word), (left, part(reader)), sign.at)
    return left


def _negated(reader: Reader) -> Expression:
    at = reader.next.at
    if reader.take("not") or reader.take("!"):
        return Call("not", (_negated(reader),), at)
    if reader.comes("exists", "("):
        raise differs("EXISTS", at, "use IN, or a left semi or left anti join")
    return _predicate(reader)


def _predicate(reader: Reader) -> Expression:
    value = _value(reader)
    at = reader.next.at
    if reader.take("is"):
        return _is(reader, value, at)
    is_not = reader.take("not")
    match reader.next.word:
        case "between":
            found = _between(reader, value)
        case "in":
            return _in(reader, value, is_not)
        case "like" | "ilike" | "rlike" | "regexp":
            word = reader.move()
            found = Call("rlike" if word.word == "regexp" else word.word, (value, _value(reader)), word.at)
            if reader.comes("escape"):
                raise differs("LIKE with ESCAPE", reader.next.at, "escape by a backslash")
        case _:
            if is_not:
                raise reader.lost("BETWEEN, IN or LIKE was expected")
            return value
    return Call("not", (found,), at) if is_not else found


def _is(reader: Reader, value: Expression, at: int) -> Expression:
    is_not = reader.take("not")
    if reader.take("distinct", "from"):
        same = Call("<=>", (value, _value(reader)), at)
        return same if is_not else Call("not", (same,), at)
    word = reader.next.word
    if word not in {"null", "true", "false", "unknown"}:
        raise reader.lost("NULL, TRUE, FALSE or DISTINCT FROM was expected")
    reader.move()
    if word in {"null", "unknown"}:
        return Call(f"is {'not ' if is_not else ''}{word}", (value,), at)
    return Call(f"is {word}", (value,), at) if not is_not else Call("not", (Call(f"is {word}", (value,), at),), at)


def _between(reader: Reader, value: Expression) -> Call:
    at = reader.move().at
    least = _value(reader)
    reader.need("and")
    return Call("between", (value, least, _value(reader)), at)


def _in(reader: Reader, value: Expression, is_not: bool) -> Expression:
    at = reader.move().at
    reader.need("(")
    if reader.comes("select") or reader.comes("with"):
        query = reader.read_query(reader)
        reader.need(")")
        return InQuery(value, query, is_not, at)
    found = Call("in", (value, *_listed(reader)), at)
    return Call("not", (found,), at) if is_not else found


def _value(reader: Reader) -> Expression:
    """Comparisons bind least, then sums, then products, then signs."""
    sums = partial(_chain, words=("+", "-", "||"), part=partial(_chain, words=("*", "/", "%", "div"), part=_signed))
    return _chain(reader, COMPARISONS, sums)


def _signed(reader: Reader) -> Expression:
    sign = reader.next
    if sign.word == "-" and reader.after().kind == "number":
        reader.move()
        return _behind(reader, number(reader, sign.at, "-"))
    if sign.word in {"-", "+"}:
        reader.move()
        return Call(f"unary {sign.word}", (_signed(reader),), sign.at)
    return _behind(reader, _primary(reader))


def _behind(reader: Reader, value: Expression) -> Expression:
    """What may follow any value: [..], .field, ::type."""
    while True:
        at = reader.next.at
        if reader.take("["):
            value = Call("[]", (value, _value(reader)), at)
            reader.need("]")
        elif reader.take("::"):
            value = Cast(value, type_name(reader), at)
        else:
            return value


def _primary(reader: Reader) -> Expression:  # noqa: PLR0911
    token, follows = reader.next, reader.after()
    if token.kind == "number":
        return number(reader, token.at)
    if token.kind in {"string", "raw"}:
        return string(reader)
    if token.word in {"true", "false", "null"}:
        reader.move()
        value = {"true": True, "false": False}.get(token.word)
        return Literal("void" if value is None else "boolean", value, "NULL" if value is None else token.word, token.at)
    if token.word in {"date", "timestamp"} and follows.kind in {"string", "raw"}:
        reader.move()
        return Literal(f"{token.word} text", reader.string(), "", token.at)
    if token.word == "interval":
        return interval(reader)
    if token.word == "case":
        return _case(reader)
    if token.word in {"cast", "extract"} and follows.word == "(":
        return _cast(reader) if token.word == "cast" else _extract(reader)
    if reader.take("("):
        return _in_parentheses(reader, token.at)
    if token.word == "*":
        reader.move()
        return Star((), token.at, _without(reader))
    if follows.word == "(" and token.kind == "name" and (reader.is_name() or token.word in {"left", "right", "any", "some"}):
        return _call(reader)
    return _name(reader)


def _case(reader: Reader) -> Case:
    at = reader.move().at
    operand = None if reader.comes("when") else expression(reader)
    branches = []
    while reader.take("when"):
        when = expression(reader)
        reader.need("then")
        branches.append((when if operand is None else Call("=", (operand, when), at), expression(reader)))
    otherwise = expression(reader) if reader.take("else") else None
    reader.need("end")
    if not branches:
        raise reader.lost("WHEN was expected before")
    return Case(tuple(branches), otherwise, at)


def _cast(reader: Reader) -> Cast:
    at = reader.move().at
    reader.need("(")
    value = expression(reader)
    reader.need("as")
    kind = type_name(reader)
    reader.need(")")
    return Cast(value, kind, at)


def _extract(reader: Reader) -> Call:
    at = reader.move().at
    reader.need("(")
    field = reader.move().text
    reader.need("from")
    value = _value(reader)
    reader.need(")")
    return Call("extract", (Literal("string", field, field, at), value), at)


def _in_parentheses(reader: Reader, at: int) -> Expression:
    if reader.comes("select") or reader.comes("with"):
        found: Expression = Subquery(reader.read_query(reader), at)
    else:
        found = expression(reader)
        if reader.comes(","):
            raise differs("a row of several values", at, "compare them one by one")
    reader.need(")")
    return found


def _name(reader: Reader) -> Expression:
    at = reader.next.at
    parts = [reader.name()]
    while reader.take("."):
        if reader.take("*"):
            return Star(tuple(parts), at, _without(reader))
        parts.append(reader.name())
    return Name(tuple(parts), at)


def _without(reader: Reader) -> tuple[str, ...]:
    """Columns that `*` leaves out."""
    if not reader.take("except", "("):
        return ()
    names = [reader.name()]
    while reader.take(","):
        names.append(reader.name())
    reader.need(")")
    return tuple(names)


def _call(reader: Reader) -> Call:
    token = reader.move()
    reader.need("(")
    is_distinct = reader.take("distinct")
    arguments = () if reader.take(")") else _listed(reader)
    where, over = None, None
    if reader.take("filter"):
        reader.need("(", "where")
        where = expression(reader)
        reader.need(")")
    if reader.take("over"):
        over = _over(reader)
    return Call(token.word, arguments, token.at, is_distinct, where, over)


def _listed(reader: Reader) -> tuple[Expression, ...]:
    """Up to the closing parenthesis, which is taken."""
    found = [expression(reader)]
    while reader.take(","):
        found.append(expression(reader))
    reader.need(")")
    return tuple(found)


def expressions(reader: Reader) -> tuple[Expression, ...]:
    """With commas between."""
    found = [expression(reader)]
    while reader.take(","):
        found.append(expression(reader))
    return tuple(found)


def _over(reader: Reader) -> Over:
    if not reader.comes("("):
        raise differs("a named window", reader.next.at, "write it out in OVER (..)")
    reader.need("(")
    partition = expressions(reader) if reader.take("partition", "by") else ()
    order = orders(reader) if reader.take("order", "by") else ()
    frame = _frame(reader) if reader.next.word in {"rows", "range"} else None
    reader.need(")")
    return Over(partition, order, frame)


def _frame(reader: Reader) -> str:
    unit = reader.move().word
    if unit == "range":
        raise differs("a window frame of RANGE", reader.next.at, "count it in ROWS")
    if not reader.take("between"):
        return f"{unit} {_bound(reader)}"
    first = _bound(reader)
    reader.need("and")
    return f"{unit} between {first} and {_bound(reader)}"


def _bound(reader: Reader) -> str:
    for bound in BOUNDS:
        if reader.take(*bound.split()):
            return bound
    count, word = reader.number(), reader.next.word
    if word not in {"preceding", "following"}:
        raise reader.lost("PRECEDING or FOLLOWING was expected")
    reader.move()
    return f"{count} {word}"


def orders(reader: Reader) -> tuple[Order, ...]:
    """Of ORDER BY."""
    found: list[Order] = []
    while not found or reader.take(","):
        value = expression(reader)
        is_descending = reader.take("desc") or (reader.take("asc") and False)
        is_nulls_first = reader.take("nulls", "first") or (not reader.take("nulls", "last") and not is_descending)
        found.append(Order(value, is_descending, is_nulls_first))
    return tuple(found)
