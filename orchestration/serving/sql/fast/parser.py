"""The tree of a query, by sqlglot, with nothing in it but the parts that the fast engine can give a meaning.

Calls stay calls by the name that was written (sqlglot would merge `mean` with `avg`, and Spark names columns by it). Its optimizer is
not used: it gives columns other names than Spark, and takes an alias in WHERE, where Spark ends with an error.
"""

from collections.abc import Sequence
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from orchestration.serving.sql.fast.errors import SqlError, unsupported

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Neg)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
PREDICATES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Is)
SPARSE = (*COMPARISONS, *PREDICATES, exp.Not, exp.And, exp.Or)
"""Inside a comparison they need parentheses: Spark and sqlglot bind them differently."""
STRINGS = {TokenType.STRING, TokenType.RAW_STRING}
BEGINNINGS = {TokenType.L_PAREN, TokenType.UNION, TokenType.ALL, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.DISTINCT}
PARTS = {
    kind: {*parts.split()}
    for kinds, _, parts in (
        line.partition(":")
        for line in """
        Add Sub Mul IntDiv Mod EQ NEQ LT LTE GT GTE NullSafeEQ NullSafeNEQ And Or Is Filter Extract Limit Offset: this expression
        Div DPipe: this expression safe typed
        Like ILike RegexpLike: this expression negate
        Boolean Var Not Neg Paren Where Having From DataTypeParam: this
        Bracket Anonymous DataType TableAlias: this expressions columns nested
        Tuple Order With Distinct Hint: expressions
        Union Intersect Except: this expression distinct order limit offset with_
        Select: expressions from_ joins laterals where group having distinct order limit offset with_ hint
        Subquery: this alias order limit offset with_
        Values: expressions alias order limit offset
        Alias CTE: this alias
        Table: this db alias
        Between: this low high
        Case: this ifs default
        If: this true
        Column: this table db
        Group: expressions all
        Identifier: this quoted
        In: this expressions query
        Interval: this unit
        Join: this side kind on using
        JoinHint: this expressions
        Lateral: this view alias
        Literal: this is_string
        Ordered: this desc nulls_first
        Star: except_
        TryCast: this to safe
        Window: this partition_by order spec over
        WindowSpec: kind start start_side end end_side
        Null:
        """.strip().splitlines()
    )
    for kind in kinds.split()
}
"""Kinds of nodes, and what they may hold."""
INSTEAD = {
    exp.Exists: ("EXISTS", "use IN, or a left semi or left anti join"),
    exp.Rollup: ("GROUP BY ROLLUP", "write a UNION ALL of several GROUP BYs"),
    exp.GroupingSets: ("GROUP BY GROUPING SETS", "write a UNION ALL of several GROUP BYs"),
    exp.Escape: ("LIKE with ESCAPE", "escape by a backslash"),
}


class Parser(SparkParser):
    """Spark's grammar, with calls as they were written; a sign or NOT before a value can be told from what it is behind it."""

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST",)}
    FUNCTION_PARSERS["EXTRACT"] = lambda self: self._parse_part()
    NO_PAREN_FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    UNARY_PARSERS: ClassVar = {
        TokenType.PLUS: lambda self: self.expression(exp.Anonymous(this="unary+", expressions=[self._parse_unary()])),
        TokenType.NOT: lambda self: self.expression(exp.Not(this=exp.Paren(this=self._parse_equality()))),
        TokenType.DASH: SparkParser.UNARY_PARSERS[TokenType.DASH],
    }
    TYPE_LITERAL_PARSERS: ClassVar = {
        exp.DType.DATE: lambda self, this, _: self.expression(exp.Anonymous(this="date text", expressions=[this])),
        exp.DType.TIMESTAMPTZ: lambda self, this, _: self.expression(exp.Anonymous(this="timestamp text", expressions=[this])),
    }

    def _parse_part(self) -> exp.Expr:
        """EXTRACT with its unit as it was written."""
        unit = self._parse_var(any_token=True)
        self._match_text_seq("FROM")
        return self.expression(exp.Extract(this=unit, expression=self._parse_bitwise()))


def parsed(query: str) -> exp.Expr:
    """The one query of a text; a semicolon may end it. SqlError where it is not understood, or holds what has no meaning here."""
    dialect = Spark()
    try:
        tokens = _merged(dialect.tokenize(query), query)
        if tokens and tokens[0].token_type not in {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}:
            raise _unsupported_at("anything but a query", tokens[0])
        trees = Parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE).parse(tokens, query)
    except ParseError as error:
        raise _lost(error, query) from None
    except (SqlglotError, ValueError):
        raise SqlError("what begins here is not closed; if Spark understands it, ask Spark: leave out --engine fast") from None
    if not tokens:
        raise SqlError("the query ends here")
    if len(trees) != 1 or not isinstance(tree := trees[0], exp.Query | exp.Values):
        raise unsupported("anything but one query", None)
    for node in tree.walk():
        _require_supported(node, query)
    return tree


def _merged(tokens: Sequence[Token], query: str) -> list[Token]:
    """One token for each literal: of strings beside each other, of a number with a point before or letters behind it.

    And `TABLE x` is `SELECT * FROM x`. What begins otherwise than a query, sqlglot would take for a command and say so on stderr.
    """
    made: list[Token] = []
    for token in tokens:
        before, kind = made[-1] if made else None, token.token_type
        is_first = not before or before.token_type in BEGINNINGS
        if is_first and kind is TokenType.TABLE:
            kinds = ((TokenType.SELECT, "select"), (TokenType.STAR, "*"), (TokenType.FROM, "from"))
            made += [Token(each, text, token.line, token.col, token.start, token.end) for each, text in kinds]
        elif kind is TokenType.PIPE_GT or (kind is TokenType.FROM and (not before or before.token_type is TokenType.L_PAREN)):
            raise _unsupported_at("a query that begins with FROM", token)
        elif before and _is_one(before, token, query):
            kind = TokenType.STRING if kind in STRINGS else TokenType.NUMBER
            made[-1] = Token(kind, query[before.start : token.end + 1], token.line, token.col, before.start, token.end)
        else:
            kind = TokenType.STRING if kind in STRINGS else kind
            made.append(Token(kind, token.text, token.line, token.col, token.start, token.end))
    return made


def _is_one(before: Token, token: Token, query: str) -> bool:
    if before.token_type in STRINGS:
        return token.token_type in STRINGS
    if before.token_type is TokenType.DOT and before.start and query[before.start - 1] in " \t\r\n(,+-*/%<>=":
        return token.token_type is TokenType.NUMBER and token.start == before.end + 1
    is_made_up = token.token_type is TokenType.DCOLON and query[token.start] != ":"  # 1L is 1::bigint for sqlglot
    return before.token_type is TokenType.NUMBER and (is_made_up or token.start <= before.end)


def _unsupported_at(what: str, token: Token) -> SqlError:
    error = unsupported(what, None)
    error.at = token.start
    return error


def _lost(error: ParseError, query: str) -> SqlError:
    """With the place that sqlglot gives, by line and the column of the last character."""
    first = error.errors[0]
    word = str(first.get("highlight") or "")
    lines = query.split("\n")
    before = sum(len(line) + 1 for line in lines[: (first.get("line") or 1) - 1])
    found = SqlError(f"{word[:40]!r} is not understood here; if Spark understands it, ask Spark: leave out --engine fast")
    found.at = max(min(before + (first.get("col") or 1) - len(word), len(query)), 0)
    return found


def _require_supported(node: exp.Expr, query: str) -> None:
    has = {name for name, value in node.args.items() if value not in (None, False, [])}
    if not has <= PARTS.get(type(node).__name__, set()) or type(node).__name__ not in PARTS:
        what = next((part for part in INSTEAD if isinstance(node, part) or node.find(part)), None)
        raise unsupported(*INSTEAD[what][:1], node, INSTEAD[what][1]) if what else unsupported(_words(node, has), node)
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        raise unsupported("a table function", node)
    if isinstance(node, exp.Identifier) and "start" in node.meta and query[node.meta["start"]] in "'\"":
        raise unsupported("a string for a name", node)
    operands = [child for child in node.iter_expressions() if isinstance(child, SPARSE)]
    if operands and isinstance(node, (*ARITHMETIC, *COMPARISONS, *PREDICATES)):
        raise unsupported("comparisons in comparisons", node, "put them in parentheses")
    if isinstance(node, exp.DPipe) and isinstance(node.expression, exp.Add | exp.Sub):
        raise unsupported("|| before a sum", node, "put the sum in parentheses")


def _words(node: exp.Expr, has: set[str]) -> str:
    extra = sorted(name.strip("_").upper() for name in has - PARTS.get(type(node).__name__, has))
    return " and ".join(extra).replace("_", " ") or f"this {sqlglot.helper.camel_to_snake_case(type(node).__name__).replace('_', ' ')}"
