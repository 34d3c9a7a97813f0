"""Statements of a session: transactions, settings, cursors and COPY are its own; all others are queries for DuckDB."""

import re
from collections.abc import Callable, Sequence

from orchestration.serving.postgres.copy_out import CopyOut, read_copy
from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.dialect import significant
from orchestration.serving.postgres.parameters import Query
from orchestration.serving.postgres.portals import Command, Portal, Prepared, fetched, moved, portal_of, portal_of_texts
from orchestration.serving.postgres.settings import Settings
from orchestration.serving.postgres.syntax import column_names
from orchestration.serving.postgres.wire import PostgresError, Wire, error
from orchestration.serving.sql.sql_words import Word

EXPLAIN = re.compile(r"\s*explain\s*\(([^()]*)\)", re.IGNORECASE)
ENDS = {"commit", "end", "rollback", "abort"}
WRITES = {
    *("create", "insert", "update", "delete", "merge", "drop", "alter", "truncate", "grant", "revoke", "comment", "reindex", "refresh"),
    *("vacuum", "analyze", "cluster", "checkpoint", "import", "attach", "detach", "install", "load", "security", "reassign", "lock"),
}
UNSUPPORTED = {"listen", "notify", "prepare", "execute", "do", "call"}
Statement = Portal | Command | CopyOut


class Commands:
    """`state`: that of the transaction, I (none), T (open) or E (failed). `query`: the statement that is read or runs, for errors."""

    def __init__(self, wire: Wire, databases: Databases, values: dict[str, str]) -> None:
        self._wire, self._databases = wire, databases
        self.settings = Settings(wire, databases, values)
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Statement] = {}
        self.state, self.query = "I", Query("")
        self._savepoints = list[str]()
        self._running: Portal | None = None
        self._is_implicit = False
        self._acts: dict[str, Callable[[Sequence[Word]], str]] = {
            **dict.fromkeys(("begin", "start"), self._begin),
            **dict.fromkeys(ENDS, self._end),
            "savepoint": self._savepoint,
            "release": self._release,
            "set": self._set,
            "reset": self._reset,
            "discard": self._discard,
            "deallocate": self._deallocate,
            "declare": self._declare,
            "move": self._move,
            "close": self._close_cursor,
            "unlisten": lambda words: "UNLISTEN",
        }

    def statement(self, query: Query, is_implicit: bool = False, names_of: str | None = None) -> Statement:
        """Make a statement ready to run. `is_implicit`: others stand beside it. `names_of`: the text that names columns. PostgresError."""
        self.query, self._is_implicit = query, is_implicit
        self._databases.activity.runs(query.text, self.settings.values["application_name"])
        listed = self.check(query)
        first = listed[0].name.lower()
        if act := self._acts.get(first):
            return Command(lambda: act(listed))
        if first == "show" and not _lists_tables(listed):
            return portal_of_texts(self.settings.shown(listed[1:]), "SHOW")
        if first == "fetch":
            return fetched(self._cursor(listed[-1]), listed[1:], "FETCH")
        if first == "copy":
            source, form = read_copy(query, listed)
            return CopyOut(self._query(source, None), form)
        return self._query(query, names_of)

    def check(self, query: Query) -> Sequence[Word]:
        """Return the words of a statement that may run now. PostgresError."""
        listed = significant(query.text)
        first = listed[0].name.lower()
        if self.state == "E" and first not in ENDS:
            raise PostgresError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        if first in WRITES:
            raise PostgresError("25006", f"a session only reads: cannot execute {first.upper()} in a read-only transaction")
        if first in UNSUPPORTED:
            raise PostgresError("0A000", f"{first.upper()} is not supported")
        return listed

    def resume(self, portal: Portal) -> None:
        """Let a portal have its connection; what another one has not sent yet is read ahead."""
        portal = portal.cursor or portal
        if portal is not self._running:
            self._settle()
            if portal.connection is not None:
                self._running, self._databases.running = portal, portal.connection

    def fail(self) -> None:
        """End the transaction that a failed statement is in: at once, or when the client says so."""
        if self.state == "I":
            self.end_message(is_committed=False)
        else:
            self.state = "E"

    def end_message(self, is_committed: bool) -> None:
        """End what was no transaction block of the client's."""
        if self.state == "I":
            self._close_transaction(is_committed)

    def _query(self, query: Query, names_of: str | None) -> Portal:
        self.query = query
        self._settle()
        explain = EXPLAIN.match(query.text)
        text = _explain(explain) + query.text[explain.end() :] if explain else query.text
        if explain:
            self.query = Query(text, query.start + len(query.text) - len(text), query.edits)
        relation = self._databases.query(text, self.state == "T" or self._is_implicit)
        if self._databases.notice:
            self._warn("00000", self._databases.notice, "NOTICE")
        if relation.columns == ["explain_key", "explain_value"]:
            is_json = explain is not None and "json" in _explain(explain)
            lines = "explain_value::json" if is_json else "unnest(string_split(rtrim(explain_value, chr(10)), chr(10)))"
            relation = relation.project(f'{lines} as "QUERY PLAN"')
        portal = portal_of(relation, column_names(names_of or query.text, relation.columns))
        portal.connection = self._databases.running
        return portal

    def _settle(self) -> None:
        portal, self._running = self._running, None
        if portal is not None and (portal in self.portals.values() or portal.is_held):
            portal.settle(self._databases)

    def _begin(self, words: Sequence[Word]) -> str:
        if self.state == "T":
            self._warn("25001", "there is already a transaction in progress")
        self.state = "T"
        return "BEGIN" if words[0].name.lower() == "begin" else "START TRANSACTION"

    def _end(self, words: Sequence[Word]) -> str:
        names = [word.name.lower() for word in words]
        if "to" in names:
            return self._roll_back_to(names[-1])
        if self.state == "I":
            self._warn("25P01", "there is no transaction in progress")
        is_committed = names[0] in {"commit", "end"} and self.state != "E"
        self.state = "I"
        self._close_transaction(is_committed)
        return "COMMIT" if is_committed else "ROLLBACK"

    def _close_transaction(self, is_committed: bool) -> None:
        """Drop its portals, but cursors WITH HOLD, and its snapshot."""
        kept = dict[str, Statement]()
        for name, portal in self.portals.items():
            if isinstance(portal, Portal) and (portal.is_kept or (portal.is_held and is_committed)):
                kept[name], portal.is_kept = portal, True
        self.portals.clear()
        self.portals.update(kept)
        if self._running not in kept.values():
            self._running = None
        self.settings.end(is_committed)
        self._databases.pinned, self._savepoints = None, []

    def _savepoint(self, words: Sequence[Word]) -> str:
        if self.state == "I":
            raise PostgresError("25P01", "SAVEPOINT can only be used in transaction blocks")
        self._savepoints.append(words[-1].name.lower())
        return "SAVEPOINT"

    def _release(self, words: Sequence[Word]) -> str:
        del self._savepoints[self._place(words[-1].name.lower()) :]
        return "RELEASE"

    def _roll_back_to(self, name: str) -> str:
        del self._savepoints[self._place(name) + 1 :]
        self.state = "T"
        return "ROLLBACK"

    def _place(self, name: str) -> int:
        if name not in self._savepoints:
            raise PostgresError("3B001", f'savepoint "{name}" does not exist')
        return len(self._savepoints) - 1 - self._savepoints[::-1].index(name)

    def _set(self, words: Sequence[Word]) -> str:
        self.settings.set(words[1:], self.state == "T" or self._is_implicit)
        return "SET"

    def _reset(self, words: Sequence[Word]) -> str:
        self.settings.reset(words[1:])
        return "RESET"

    def _discard(self, words: Sequence[Word]) -> str:
        if (what := words[-1].name.lower()) == "all":
            if self.state != "I":
                raise PostgresError("25001", "DISCARD ALL cannot run inside a transaction block")
            self.prepared.clear()
            self.portals.clear()
            self.settings.reset(words[-1:])
        return f"DISCARD {what.upper()}"

    def _deallocate(self, words: Sequence[Word]) -> str:
        if (name := words[-1].name) and name.lower() == "all":
            self.prepared.clear()
            return "DEALLOCATE ALL"
        if self.prepared.pop(name, None) is None:
            raise PostgresError("26000", f'prepared statement "{name}" does not exist')
        return "DEALLOCATE"

    def _declare(self, words: Sequence[Word]) -> str:
        names = [word.name.lower() for word in words]
        if "for" not in names or "cursor" not in names:
            raise PostgresError("42601", "DECLARE takes a name, CURSOR FOR and a query")
        end, name = names.index("for"), _folded(words[1])
        is_held = "hold" in names[:end] and "without" not in names[:end]
        if self.state == "I" and not is_held and not self._is_implicit:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        if name in self.portals:
            raise PostgresError("42P03", f'cursor "{name}" already exists')
        cursor = self._query(self.query.part(words[end].at + len("for")), None)
        cursor.is_held = is_held
        self.portals[name] = cursor
        return "DECLARE CURSOR"

    def _cursor(self, word: Word) -> Portal:
        cursor = self.portals.get(_folded(word))
        if not isinstance(cursor, Portal):
            raise PostgresError("34000", f'cursor "{_folded(word)}" does not exist')
        return cursor

    def _move(self, words: Sequence[Word]) -> str:
        cursor = self._cursor(words[-1])
        self.resume(cursor)
        return moved(cursor, words[1:])

    def _close_cursor(self, words: Sequence[Word]) -> str:
        if words[-1].text.lower() == "all":
            self.portals.clear()
            return "CLOSE CURSOR ALL"
        self._cursor(words[-1])
        del self.portals[_folded(words[-1])]
        return "CLOSE CURSOR"

    def _warn(self, code: str, message: str, severity: str = "WARNING") -> None:
        self._wire.write("N", error(PostgresError(code, message), severity))


def _folded(word: Word) -> str:
    return word.name if word.text.startswith('"') else word.name.lower()


def _lists_tables(listed: Sequence[Word]) -> bool:
    """Say whether a SHOW is DuckDB's: SHOW TABLES, DATABASES or ALL TABLES."""
    names = [word.name.lower() for word in listed[1:]]
    return names[:1] in (["tables"], ["databases"]) or names == ["all", "tables"]


def _explain(match: re.Match[str]) -> str:
    """Keep those of PostgreSQL's options of EXPLAIN that DuckDB has."""
    options = {words[0].lower(): "".join(words[1:]).lower() for option in match[1].split(",") if (words := option.split())}
    is_run = options.get("analyze", "off") not in {"false", "off", "0"}
    return f"explain ({'analyze, ' * is_run}format {'json' if options.get('format') == 'json' else 'text'})"
