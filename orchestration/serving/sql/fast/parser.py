"""The tree of a query, by sqlglot, with nothing in it but the parts that the fast engine can give a meaning.

Calls stay calls by the name that was written (sqlglot would merge `mean` with `avg`, and Spark names columns by it). Its optimizer is
not used: it folds names that Spark shows as they were written, takes an alias in WHERE, and does not know the digits of decimals.
"""

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from orchestration.serving.sql.fast.errors import ASK_SPARK, SqlError, unsupported

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
PREDICATES = (*COMPARISONS, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Is)
BINDING = (*PREDICATES, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Neg)
"""Predicates inside them need parentheses: Spark and sqlglot bind them differently."""
STRINGS = {TokenType.STRING, TokenType.RAW_STRING}
BEGINNINGS = {TokenType.L_PAREN, TokenType.UNION, TokenType.ALL, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.DISTINCT}
STATEMENTS = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}
PARTS = {
    kind: {*parts.split()}
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
    for kinds, _, parts in [line.partition(":")]
    for kind in kinds.split()
}
"""Kinds of nodes, and what they may hold."""


class Parser(SparkParser):
    """Spark's grammar, with calls as they were written; a sign or NOT before a value can be told from what it is behind it."""

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {"CAST": SparkParser.FUNCTION_PARSERS["CAST"], "EXTRACT": lambda self: self._parse_part()}
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
        tokens = _tokens(dialect, query)
        if not tokens:
            raise SqlError("the query ends here")
        trees = Parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE).parse(tokens, query)
    except ParseError as error:  # its place is a line, and the column of the last character
        word = str(error.errors[0].get("highlight") or "")
        before = sum(len(line) + 1 for line in query.split("\n")[: (error.errors[0].get("line") or 1) - 1])
        at = max(min(before + (error.errors[0].get("col") or 1) - len(word), len(query)), 0)
        raise SqlError(f"{word[:40]!r} is not understood here; if Spark understands it, {ASK_SPARK}", at=at) from None
    except (SqlglotError, ValueError):
        raise SqlError(f"what begins here is not closed; if Spark understands it, {ASK_SPARK}") from None
    if len(trees) != 1 or not isinstance(tree := trees[0], exp.Query | exp.Values):
        raise unsupported("anything but one query", None)
    for node in tree.walk():
        _require_supported(node, query)
    return tree


def _tokens(dialect: Spark, query: str) -> list[Token]:
    """Strings beside each other as one, `TABLE x` as `SELECT * FROM x`. sqlglot would take other statements for commands, and warn."""
    made: list[Token] = []
    for token in dialect.tokenize(query):
        kind, before = token.token_type, made[-1].token_type if made else None
        if kind is TokenType.PIPE_GT or (kind is TokenType.FROM and before in {None, TokenType.L_PAREN}):
            raise unsupported("a query that begins with FROM", None, at=token.start)
        kinds: tuple[tuple[TokenType, str], ...] = ((kind, token.text),)
        start = token.start
        if kind is TokenType.TABLE and (before is None or before in BEGINNINGS):
            kinds = ((TokenType.SELECT, "select"), (TokenType.STAR, "*"), (TokenType.FROM, "from"))
        elif before is None and kind not in STATEMENTS:
            raise unsupported("anything but a query", None, at=start)
        elif kind in STRINGS and before in STRINGS:
            start = made.pop().start
            kinds = ((TokenType.STRING, query[start : token.end + 1]),)
        elif kind in STRINGS:
            kinds = ((TokenType.STRING, token.text),)
        made += [Token(each, text, token.line, token.col, start, token.end) for each, text in kinds]
    return made


def _require_supported(node: exp.Expr, query: str) -> None:
    kind, has = type(node).__name__, {name for name, value in node.args.items() if value not in (None, False, [])}
    extra = has - PARTS.get(kind, set())
    if kind not in PARTS or extra:
        parts = " and ".join(sorted(name.strip("_").upper().replace("_", " ") for name in extra)) if kind in PARTS else f"this {node.key}"
        raise unsupported(parts, node, "use IN, or a left semi or anti join" if node.find(exp.Exists) else "")
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        raise unsupported("a table function", node)
    if isinstance(node, exp.Identifier) and "start" in node.meta and query[node.meta["start"]] in "'\"":
        raise unsupported("a string for a name", node)
    if isinstance(node, BINDING) and any(isinstance(child, (*PREDICATES, exp.Not, exp.Connector)) for child in node.iter_expressions()):
        raise unsupported("comparisons in comparisons", node, "put them in parentheses")
    if isinstance(node, exp.DPipe) and isinstance(node.expression, exp.Add | exp.Sub):
        raise unsupported("|| before a sum", node, "put the sum in parentheses")
