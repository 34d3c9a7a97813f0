"""The guard of queries for DuckDB: one statement that reads tables, and names nothing that would show or do more.

DuckDB itself opens no file but those of the tables, and writes nothing in a transaction that is read-only. Refused here, besides, is
whatever shows settings, paths and texts of views, runs a query from a text, or takes the address of memory for an argument.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import duckdb
from duckdb import DuckDBPyConnection, Statement, StatementType

from orchestration.serving.sql.answer import RefusedError, pointed
from orchestration.serving.sql.sql_words import Word, words

TABLE_FUNCTIONS = {
    *("generate_series", "icu_calendar_names", "json_each", "json_tree", "pg_timezone_names", "range", "repeat", "repeat_row"),
    *("summary", "test_all_types", "test_vector_types", "unnest"),
}
"""DuckDB's harmless table functions; a test compares this and CALLED with what DuckDB has."""
CALLED = re.compile(
    r"(arrow|duckdb|pandas|parquet|pg|pragma|python|read|sniff|sqlite)_.+|.+_external_resource(_type)?|(dis|en)able_(logging|profiling)"
    r"|(force_)?checkpoint|glob|json_execute_serialized_sql|json_serialize_plan|query|query_table|seq_scan|truncate_duckdb_logs|which_secret"
    r"|current_setting|getenv|getvariable|write_log|index_key|to_aggregate_state|finalize|combine|variant_bytes_to_variant"
    r"|histogram(_values)?|format_type|get_block_size"
)
"""Functions that no query may call: of tables all others, and of values those that show settings or take bytes for what lies in memory.

The last line are macros: `histogram` reads a table by a text, past the snapshot, and the others call what is hidden here.
"""
NAMED = re.compile(r"(duckdb|pg|pragma|sqlite)_.+|information_schema")
"""Tables of DuckDB's own, which show the texts of views. The tables of the lake are listed by SHOW ALL TABLES."""
OF_EXPLAIN = {"analyze", "verbose"}


def is_hidden(name: str, is_called: bool) -> bool:
    """Say whether a query of the lake may not have a name."""
    return name not in TABLE_FUNCTIONS and bool(NAMED.fullmatch(name) or (is_called and CALLED.fullmatch(name)))


def checked(connection: DuckDBPyConnection, query: str, is_hidden: Callable[[str, bool], bool] = is_hidden) -> Statement:
    """The one statement of a query. RefusedError for what does more than read, with its place; duckdb.Error where it cannot be parsed.

    `is_hidden`: takes a name, and whether it is called.
    """
    if not query.isascii() and query.encode("utf-8", "replace").decode() != query:
        raise RefusedError("the query is not valid UTF-8: it holds half of a surrogate pair.")
    listed = [word for word in words(query) if word.kind != "comment"]
    for word, following in pairwise([*listed, None]):
        if word is not None and is_hidden(word.name.lower(), following is not None and following.text == "("):
            raise RefusedError(f"{word.name} cannot be used here: a query reads the tables of the lake.\n{pointed(query, word.at)}")
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise RefusedError("give one statement at a time." if statements else "the query is empty.")
    while listed[-1].text == ";":
        listed.pop()
    if not _only_reads(connection, query[: listed[-1].at + len(listed[-1].text)], listed):
        raise RefusedError(f"{listed[0].text.upper()} cannot be used here: a query only reads, by SELECT, DESCRIBE, SUMMARIZE or EXPLAIN.")
    return statements[0]


def _only_reads(connection: DuckDBPyConnection, text: str, listed: Sequence[Word]) -> bool:
    """Say whether a text, which is one statement with these words, only reads."""
    try:
        kind = connection.extract_statements(text)[0].type
        if listed[0].name.lower() == "explain":
            start = _explained(listed)
            return _only_reads(connection, text[start - listed[0].at :], [word for word in listed if word.at >= start])
        if kind == StatementType.MULTI:  # PIVOT makes a type of its columns first; CREATE TABLE AS PIVOT makes a table as well
            return bool(connection.extract_statements(f"from (\n{text}\n)"))
    except (duckdb.Error, ValueError):  # ValueError: a kind of statement that Python's DuckDB does not know
        return False
    return bool(kind == StatementType.SELECT)


def _explained(listed: Sequence[Word]) -> int:
    """Find the start of the statement after EXPLAIN and its options."""
    index = 2 if listed[1].name.lower() in OF_EXPLAIN else 1
    if listed[index].text == "(" and listed[index + 1].name.lower() in {*OF_EXPLAIN, "format"}:
        index = next(n for n, word in enumerate(listed) if word.text == ")") + 1
    return listed[index].at
