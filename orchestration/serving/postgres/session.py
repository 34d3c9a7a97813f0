"""One connection after its login: messages of the simple and the extended protocol, one after the other."""

import ssl
import struct
from collections.abc import Callable

from orchestration.serving.postgres.commands import Commands, Statement
from orchestration.serving.postgres.copy_out import CopyOut, send_copy
from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.dialect import significant
from orchestration.serving.postgres.errors import worded
from orchestration.serving.postgres.parameters import Query, bound, literal, placeholders
from orchestration.serving.postgres.portals import Command, Portal, Prepared, describe, send
from orchestration.serving.postgres.syntax import parameter_types
from orchestration.serving.postgres.watch import Watch
from orchestration.serving.postgres.wire import Fields, PostgresError, ProtocolError, Wire, error, text

GONE = (EOFError, ConnectionError, TimeoutError, ssl.SSLError, ProtocolError)
"""Errors that end the connection."""


class Session:
    """Answers messages. `watch` is told when a message begins and ends, for its limit of time."""

    def __init__(self, wire: Wire, databases: Databases, settings: dict[str, str], watch: Watch) -> None:
        self._wire, self._databases, self._watch = wire, databases, watch
        self._commands = Commands(wire, databases, settings)
        self.change = self._commands.settings.change
        self._prepared = self._commands.prepared
        self._portals = self._commands.portals
        self._skips = False
        self._handlers: dict[str, Callable[[Fields], None]] = {
            "Q": self._simple,
            "P": self._parse,
            "B": self._bind,
            "D": self._describe,
            "E": self._execute,
            "C": self._close,
            "H": lambda fields: self._wire.flush(),
            "F": self._call,
        }

    def run(self) -> None:
        """Answer until the client says goodbye. EOFError, OSError if it is gone; ProtocolError for a message that is none."""
        self._commands.settings.start()
        self._ready()
        while True:
            kind, body = self._wire.read()
            if kind == "X":
                return
            if kind == "S":
                self._skips = False
                self._commands.end_message(is_committed=True)
                self._ready()
            elif kind in self._handlers:
                self._answer(kind, body)
            elif kind not in "dcf":  # of a COPY FROM that was refused
                raise ProtocolError(f"a message of the kind {kind!r}")

    def _answer(self, kind: str, body: bytes) -> None:
        if self._skips and kind != "Q":
            return
        self._skips = False
        try:
            self._watch.begins(self._commands.settings.values["statement_timeout"])
            self._commands.settings.begin()
            self._handlers[kind](Fields(body))
        except GONE:
            raise
        except Exception as problem:  # whatever a query may raise
            self._fail(problem)
            self._skips = kind not in "QF"
        finally:
            self._watch.ends()
        if kind in "QF":
            self._ready()

    def _fail(self, problem: Exception) -> None:
        refused = self._commands.query.in_place(worded(problem, self._commands.query.text))
        self._databases.restart()
        self._wire.write("E", error(refused))
        self._commands.fail()

    def _ready(self) -> None:
        self._databases.activity.rests(self._commands.state)
        self._wire.write("Z", self._commands.state.encode())

    def _simple(self, fields: Fields) -> None:
        queries = _statements(fields.text())
        if not queries:
            self._wire.write("I")
        for query in queries:
            statement = self._commands.statement(query, is_implicit=len(queries) > 1)
            if isinstance(statement, Portal):
                describe(self._wire, statement)
            self._run(statement, 0)
        self._commands.end_message(is_committed=True)

    def _parse(self, fields: Fields) -> None:
        name, query, types = fields.text(), fields.text(), fields.numbers("!i")
        if name and name in self._prepared:
            raise PostgresError("42P05", f'prepared statement "{name}" already exists')
        queries = _statements(query)
        if len(queries) > 1:
            raise PostgresError("42601", "cannot insert multiple commands into a prepared statement")
        self._commands.query = Query(query)
        if queries:
            self._commands.check(queries[0])
        self._prepared[name] = Prepared(query, types)
        self._wire.write("1")

    def _bind(self, fields: Fields) -> None:
        name, statement = fields.text(), self._statement(fields.text())
        formats, values = fields.numbers("!h"), [*fields.values()]
        results = fields.numbers("!h")
        if len(formats) > 1 and len(formats) != len(values):
            raise PostgresError("08P01", f"bind message has {len(formats)} parameter formats but {len(values)} parameters")
        if name and name in self._portals:
            raise PostgresError("42P03", f'cursor "{name}" already exists')
        formats = formats if len(formats) == len(values) else (formats or [0]) * len(values)
        types = statement.types + [0] * (len(values) - len(statement.types))
        literals = [literal(oid, bool(form), value) for oid, form, value in zip(types, formats, values, strict=False)]
        self._portals[name] = self._bound(statement, literals)
        if isinstance(portal := self._portals[name], Portal):
            portal.formats = results
            portal.is_binary()
        self._wire.write("2")

    def _bound(self, statement: Prepared, literals: list[str]) -> Statement:
        self._commands.query = Query(statement.query)
        queries = _statements(statement.query)
        if not queries:
            return Command(None)
        listed = significant(statement.query)
        query = bound(statement.query, listed, literals)
        names = None if not placeholders(listed) else statement.query
        return self._commands.statement(_statements(query.text, query)[0], names_of=names)

    def _describe(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        if kind == b"P":
            described = self._opened(name)
        else:
            statement = self._statement(name)
            self._infer(statement)
            types = statement.types
            self._wire.write("t", struct.pack(f"!h{len(types)}i", len(types), *(oid or 25 for oid in types)))
            described = self._bound(statement, [literal(oid, False, None) for oid in types])
        if isinstance(described, Portal):
            describe(self._wire, described)
        else:
            self._wire.write("n")

    def _infer(self, statement: Prepared) -> None:
        """Find the types that the client has left open, once."""
        listed = significant(statement.query)
        count = max((number for _, _, number in placeholders(listed)), default=0)
        statement.types += [0] * (count - len(statement.types))
        if 0 in statement.types and not statement.is_inferred:
            statement.types = parameter_types(statement.query, listed, statement.types, self._databases)
        statement.is_inferred = True

    def _execute(self, fields: Fields) -> None:
        name, most = fields.text(), fields.number("!i")
        self._run(self._opened(name), max(most, 0))

    def _run(self, statement: Statement, most: int) -> None:
        if isinstance(statement, Command):
            self._wire.write("I") if statement.act is None else self._wire.write("C", text(statement.act()))
        elif isinstance(statement, CopyOut):
            self._commands.resume(statement.portal)
            send_copy(self._wire, statement)
        else:
            self._commands.resume(statement)
            send(self._wire, statement, most)

    def _close(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        if kind == b"S":
            self._prepared.pop(name, None)
        else:
            self._portals.pop(name, None)
        self._wire.write("3")

    def _call(self, fields: Fields) -> None:
        raise PostgresError("0A000", "function calls of the fast path are not supported", "Call the function in a SELECT.")

    def _statement(self, name: str) -> Prepared:
        if name not in self._prepared:
            raise PostgresError("26000", f'prepared statement "{name}" does not exist')
        return self._prepared[name]

    def _opened(self, name: str) -> Statement:
        if name not in self._portals:
            raise PostgresError("34000", f'portal "{name}" does not exist')
        return self._portals[name]


def _statements(text: str, whole: Query | None = None) -> list[Query]:
    """Cut a text at its semicolons. Comments alone are no statement."""
    whole, queries, start, end = whole or Query(text), list[Query](), -1, 0
    for word in significant(text):
        if word.text == ";" and word.kind == "operator":
            queries += [whole.part(start, end)] if start >= 0 else []
            start = -1
        else:
            start, end = word.at if start < 0 else start, word.at + len(word.text)
    return [*queries, whole.part(start, end)] if start >= 0 else queries
