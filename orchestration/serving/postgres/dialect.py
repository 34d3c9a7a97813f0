"""Queries in PostgreSQL's words, as DuckDB reads them: sqlglot translates, and what it leaves of PostgreSQL is replaced in its tree.

All that ask the catalog are read so. A query of the lake is DuckDB's: it is read so only if DuckDB cannot bind it.
"""

import logging
import re
from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from orchestration.serving.postgres.parameters import array_literals
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.sql_words import Word, words

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it would log queries of clients; what it does not know is refused
REGISTERED = {
    "regclass": "to_regclass",
    "regproc": "to_regproc",
    "regprocedure": "to_regproc",
    "regtype": "to_regtype",
    "regnamespace": "to_regnamespace",
}
"""Types whose values are numbers that are written as names, and the macro that looks one up."""
TEXTS = {
    *("name", "char", "bpchar", "xid", "regrole", "money", "inet", "cidr", "aclitem", "cstring", "regoper", "regconfig", "pg_node_tree"),
    *("int2vector", "oidvector", "regdictionary", "regcollation", "refcursor", "citext", "regoperator"),
}
"""Types that DuckDB does not have, whose values are read as texts."""
PROCEDURES = re.compile(r"typ(input|output|receive|send|modin|modout|analyze)|amhandler|agg(fnoid|transfn)", re.IGNORECASE)
"""Columns that hold names of functions, which a query of pg_proc takes for their numbers."""
ARRAY_OF_OBJECTS = re.compile(r"(::\s*)((?:oid|reg\w+)\s*\[)", re.IGNORECASE)
"""A cast to an array of these types, which sqlglot knows only by their whole name."""
SETS = (exp.GenerateSeries, exp.Explode, exp.StringToArray)
"""Functions that have one column where they stand in FROM."""
SCHEMAS = {"pg_catalog": None, "information_schema": "_nformation_schema"}
"""DuckDB owns both names: the tables of the first are on the search path, the other has another name."""
RENAMED = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
}
OF_CATALOG = re.compile(
    r"pg_\w+|(to_)?reg(class|type|proc|procedure|namespace)|aclexplode|information_schema|current_setting|set_config|has_\w+_privilege"
    r"|txid_current|(obj|col)_description|format_type",
    re.IGNORECASE,
)
MAX_LETTERS = 65_536
"""The longest text that is translated: a tree takes some kilobytes a word."""
READS = {"select", "with", "values", "table", "("}


def significant(text: str) -> list[Word]:
    """Return the words of a text without its comments."""
    return [word for word in words(text) if word.kind != "comment"]


def is_of_catalog(listed: Sequence[Word]) -> bool:
    """Whether a query asks what there is, and not what it holds."""
    return any(word.kind in {"identifier", "keyword"} and OF_CATALOG.fullmatch(word.name) for word in listed)


def as_duckdb(text: str) -> str:
    """Translate a SELECT, also one behind EXPLAIN; all else stays. PostgresError where it cannot be parsed."""
    listed = significant(text)
    start = next((word.at for word in listed if word.text.lower() in READS and word.text != "("), None)
    start = listed[0].at if listed and listed[0].text == "(" else start
    if start is None or listed[0].name.lower() not in {*READS, "explain", ""}:
        return text
    if len(text) > MAX_LETTERS:
        raise PostgresError("54001", f"a query that is translated from PostgreSQL's words has at most {MAX_LETTERS:,} letters")
    try:
        tree = sqlglot.parse_one(ARRAY_OF_OBJECTS.sub(r"\1pg_catalog.\2", text[start:]), read="postgres")
        has_procedures = any(table.name.lower() == "pg_proc" for table in tree.find_all(exp.Table))
        # Inner nodes first: what replaces an outer one holds them.
        for node in reversed([*tree.walk()]):
            replacement = _replaced(node, has_procedures)
            if replacement is not node:
                tree = replacement if node is tree else tree
                node.replace(replacement)
        return text[:start] + tree.sql("duckdb", identify=True)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise PostgresError("42601", f"syntax error: {str(error).splitlines()[0]}") from error


def _replaced(node: exp.Expr, has_procedures: bool) -> exp.Expr:
    """Return what DuckDB reads in place of a node; the node itself, perhaps changed, where it reads that."""
    if isinstance(node, exp.Identifier) and not node.quoted:
        node.set("this", node.name.lower())
    elif isinstance(node, exp.Table | exp.Column):
        return _unqualified(node, has_procedures)
    elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        schema = node.this.name.lower() if isinstance(node.this, exp.Identifier) else ""
        if schema not in SCHEMAS:
            raise PostgresError("42883", f"function {node.sql('postgres')} does not exist")
        node.set("this", exp.to_identifier(SCHEMAS[schema]))
        return node if SCHEMAS[schema] else node.expression
    elif isinstance(node, exp.Anonymous) and node.name.lower() in RENAMED:
        node.set("this", RENAMED[node.name.lower()])
    elif isinstance(node, exp.EQ | exp.NEQ) and PROCEDURES.fullmatch(node.left.name) and node.right.name == "0":
        node.set("expression", exp.Literal.string("-"))
    elif isinstance(node, exp.Collate):
        return exp.paren(node.this)
    elif isinstance(node, exp.Cast):
        return _cast(node, has_procedures)
    elif isinstance(node, exp.Operator):
        return _operation(node)
    elif isinstance(node, exp.Any | exp.All):
        node.set("this", _members(node.this.unnest()))
    elif isinstance(node, exp.TableAlias) and not node.columns and _is_of_function(node):
        node.set("columns", [node.this.copy()])  # the alias of a function in FROM names its column too
    elif isinstance(node, exp.Select) and node.parent is not None:
        node.set("expressions", [_named(item) for item in node.expressions])
    return node


def _unqualified(node: exp.Table | exp.Column, has_procedures: bool) -> exp.Expr:
    """Return a table or a column without the schema of the system; and the number of a function that a column names."""
    if (schema := node.db.lower()) in SCHEMAS:
        node.set("db", SCHEMAS[schema] and exp.to_identifier(SCHEMAS[schema]))
        node.set("catalog", None)
    if isinstance(node, exp.Table) and (isinstance(node.this, exp.Func)):
        node.set("db", None)  # macros and functions have no schema here
    if has_procedures and isinstance(node, exp.Column) and PROCEDURES.fullmatch(node.name) and not isinstance(node.parent, exp.Select):
        return exp.func("to_regproc", node.copy())
    return node


def _cast(node: exp.Cast, has_procedures: bool) -> exp.Expr:
    """Return a cast to a type that DuckDB has; of a name of the catalog the number; of an array's text the list."""
    is_array = node.to.is_type("array")
    data_type = node.to.expressions[0] if is_array and node.to.expressions else node.to
    kind = data_type.args.get("kind")
    name = str(kind.name if isinstance(kind, exp.Expr) else kind or data_type.sql("postgres")).lower()
    if isinstance(node.this, exp.Literal) and is_array and node.this.name.startswith("{"):
        node.set("this", _list(node.this.name))
    if name == "regproc" and not is_array and not has_procedures:
        return exp.func("regproc_name", node.this)
    if name in REGISTERED and not is_array:
        return exp.func(REGISTERED[name], node.this)
    if name in REGISTERED or name in TEXTS:
        data_type.replace(exp.DataType.build("text"))
    elif isinstance(kind, exp.Dot):
        data_type.replace(exp.DataType.build(name, dialect="postgres", udt=True))
    return node


def _operation(node: exp.Operator) -> exp.Expr:
    """Return `a OPERATOR(pg_catalog.=) b` as `a = b`."""
    operation = sqlglot.parse_one(f"l {node.args['operator'].rpartition('.')[2]} r", read="postgres")
    for side, operand in (("l", node.this), ("r", node.expression)):
        next(column for column in operation.find_all(exp.Column) if column.name == side).replace(operand.copy())
    return exp.paren(operation)


def _members(inner: exp.Expr) -> exp.Expr:
    """Return what stands in ANY or ALL: a list for the text of an array, and a query alone, which DuckDB takes an array of one for."""
    if isinstance(inner, exp.Literal):
        inner = _list(inner.name)
    is_query = isinstance(inner, exp.Array) and isinstance(inner.expressions[0] if inner.expressions else None, exp.Query)
    return exp.Subquery(this=inner.expressions[0]) if is_query else exp.paren(inner)


def _list(text: str) -> exp.Array:
    return exp.Array(expressions=[sqlglot.parse_one(literal, read="postgres") for literal in array_literals(text)])


def _is_of_function(alias: exp.TableAlias) -> bool:
    table = alias.parent
    return isinstance(table, exp.Unnest) or (isinstance(table, exp.Table) and isinstance(table.this, SETS))


def _named(item: exp.Expr) -> exp.Expr:
    """Name a call in a query within a query by its function, as PostgreSQL does."""
    if not isinstance(item, exp.Func) or isinstance(item, exp.Cast | exp.Case):
        return item
    name = item.name if isinstance(item, exp.Anonymous) else item.sql_name()
    return exp.alias_(item.copy(), name.lower())
