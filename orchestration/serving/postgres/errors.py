"""Errors of DuckDB and of Tidemark as PostgreSQL tells them: with SQLSTATE, and the place in the text that the client sent."""

import re

import duckdb

from orchestration.errors import TidemarkError
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.answer import RefusedError
from orchestration.serving.sql.duckdb_engine import ADVICE

BY_TEXT = {
    r"^INTERRUPT": "57014",
    r"^Out of Memory|MemoryError|malloc|bad_alloc": "53200",
    r"read-only mode|only reads": "25006",
    r"Table with name|^there is no table": "42P01",
    r"Function with name|No function matches": "42883",
    r"Referenced column|does not have a column": "42703",
    r"must appear in the GROUP BY": "42803",
    r"Type with name": "42704",
    r"[Aa]mbiguous": "42702",
    r"[Dd]ivision by zero": "22012",
    r"out of range": "22003",
}
BY_CLASS = {
    duckdb.ParserException: "42601",
    duckdb.BinderException: "42804",
    duckdb.CatalogException: "42704",
    duckdb.ConversionException: "22P02",
    duckdb.OutOfRangeException: "22003",
    duckdb.InterruptException: "57014",
    duckdb.OutOfMemoryException: "53200",
    duckdb.IOException: "58030",
    duckdb.InvalidInputException: "22023",
    duckdb.PermissionException: "42501",
    duckdb.NotImplementedException: "0A000",
    RefusedError: "42501",
    TidemarkError: "58000",
}
"""SQLSTATEs: https://www.postgresql.org/docs/15/errcodes-appendix.html"""
INTERNAL = "XX000"
SENTENCES = {"57014": "canceling statement due to user request or its time limit", "22012": "division by zero"}
PLACE = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^+\s*$", re.DOTALL)
"""The line with the mistake, cut at both sides where it is long, and a caret below it."""


def worded(error: Exception, text: str) -> PostgresError:
    """Say an error as PostgreSQL does. `text`: the query that DuckDB got, whose place the error may name."""
    if isinstance(error, PostgresError):
        return error
    raw = str(error) or type(error).__name__
    by_class = next((code for kind, code in BY_CLASS.items() if isinstance(error, kind)), INTERNAL)
    code = next((code for pattern, code in BY_TEXT.items() if re.search(pattern, raw)), by_class)
    message = ADVICE.sub("", re.sub(r"^[\w ]+ Error: ", "", raw.strip()))
    message = PLACE.sub("", "\n" + message).strip().replace("\n\n", "\n")
    return PostgresError(code, SENTENCES.get(code, message), position=_position(raw, text))


def _position(raw: str, text: str) -> int:
    """Find the character of the query that the caret stands below, from 1; 0 where there is none."""
    match = PLACE.search(raw)
    if match is None:
        return 0
    number, shown, indent = int(match[1]), match[2], len(match[3]) - len(f"LINE {match[1]}: ")
    start = sum(len(line) + 1 for line in text.split("\n")[: number - 1])
    part = shown.removeprefix("...").removesuffix("...")
    at = max(text.find(part, start), text.find(part))  # a query within another, while it runs, has more lines
    return at + indent + 1 - len("...") * shown.startswith("...") if at >= 0 else 0
