"""One connection of a client, from its first message to its last."""

import os
import re
import ssl
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from orchestration.serving.postgres.dialect import SESSION, bound, placeholders, significant
from orchestration.serving.postgres.watch import Watch
from orchestration.serving.postgres.wire import Fields, ProtocolError, PostgresError, Wire, error, text
from orchestration.errors import TidemarkError
from orchestration.serving.sql.sql_words import statements
from orchestration.storage.snapshots import find_snapshot
from orchestration.serving.postgres.databases import Databases, worded
from orchestration.serving.postgres.values import KINDS, TEXT, UNKNOWN, Kind, encoded, framed, framed_lines, kind_of, literal

CALL = re.compile(r'^"?(\w+)"?\(.*\)$', re.DOTALL)
EXPLAIN = re.compile(r"\s*explain\s*\(([^()]*)\)", re.IGNORECASE)
ROWS_AT_ONCE = 10_000
REPORTED = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "DateStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "IntervalStyle",
    "application_name",
    "is_superuser",
    "session_authorization",
    "default_transaction_read_only",
    "in_hot_standby",
    "search_path",
)
DEFAULTS = {
    **{
        "server_version": "15.0",
        "server_version_num": "150000",
        "server_encoding": "UTF8",
        "client_encoding": "UTF8",
        "datestyle": "ISO, MDY",
        "timezone": "UTC",
    },
    **{
        "integer_datetimes": "on",
        "standard_conforming_strings": "on",
        "intervalstyle": "postgres",
        "application_name": "",
        "is_superuser": "off",
    },
    **{
        "default_transaction_read_only": "on",
        "transaction_read_only": "on",
        "in_hot_standby": "off",
        "transaction_isolation": "repeatable read",
    },
    **{
        "default_transaction_isolation": "repeatable read",
        "statement_timeout": "0",
        "max_identifier_length": "63",
        "max_index_keys": "32",
        "lc_collate": "C",
        "lc_ctype": "C",
    },
    **{
        "search_path": "gold, silver, marts, bronze, ops, quality",
        "extra_float_digits": "1",
        "bytea_output": "hex",
        "lc_monetary": "C",
        "row_security": "on",
    },
    **{
        "version": "PostgreSQL 15.0 (Tidemark, DuckDB)",
        "tidemark.snapshot": "",
        "jit": "off",
        "lock_timeout": "0",
        "client_min_messages": "notice",
        "ssl": "on",
    },
}
NAMED = {kind.name: kind for kind in KINDS.values()} | {
    "int": KINDS[23],
    "integer": KINDS[23],
    "bigint": KINDS[20],
    "double": KINDS[701],
    "varchar": TEXT,
    "boolean": KINDS[16],
    "decimal": KINDS[1700],
}
"""Types by the words of casts."""


@dataclass
class Prepared:
    query: str
    oids: list[int]


@dataclass
class Portal:
    """`kinds`: of its columns; empty for a statement without rows. `rows`: batches of DuckDB's, once it runs."""

    query: str
    formats: list[int] = field(default_factory=list)
    names: Sequence[str] = ()
    kinds: Sequence[Kind] = ()
    start: Callable[[str], Iterator[pa.RecordBatch]] | None = None
    batches: Iterator[pa.RecordBatch] | None = None
    rest: pa.RecordBatch | None = None
    sent: int = 0
    tag: str = "SELECT"
    act: Callable[[], str] | None = None
    """Of a statement without rows: what it does; returns its tag."""
    is_held: bool = False

    def format_of(self, place: int) -> int:
        return 0 if not self.formats else self.formats[0] if len(self.formats) == 1 else self.formats[place]


class Session:
    """`watch`: told when a message begins and ends, for its limit of time."""

    def __init__(self, wire: Wire, databases: Databases, settings: dict[str, str], watch: Watch) -> None:
        self._wire, self._databases, self._settings, self._watch = wire, databases, settings, watch
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._state, self._skips, self._now = "I", False, None
        self._initial, self._last = dict(settings), ""

    def run(self) -> None:
        """Until the client says goodbye."""
        for name in REPORTED:
            self._report(name)
        self._ready()
        handlers = {
            "Q": self._simple,
            "P": self._parse,
            "B": self._bind,
            "D": self._describe,
            "E": self._execute,
            "C": self._close,
            "H": lambda body: self._wire.flush(),
        }
        while True:
            kind, body = self._wire.read()
            if kind == "X":
                return
            if kind == "S":
                self._skips = False
                if self._state == "I":
                    self._end("I")
                self._ready()
            elif kind in "dcf":
                continue
            elif kind not in handlers:
                raise ProtocolError(f"a message of the kind {kind!r}")
            elif not self._skips:
                try:
                    self._watch.begins(self._settings["statement_timeout"])
                    handlers[kind](body)
                except Exception as problem:
                    if isinstance(problem, EOFError | ConnectionError | TimeoutError | ssl.SSLError | ProtocolError):
                        raise
                    self._failed(problem)
                    self._skips = kind != "Q"
                finally:
                    self._watch.ends()
                if kind == "Q":
                    self._ready()

    def _failed(self, problem: Exception) -> None:
        self._databases.restart()
        refused = worded(problem, "")
        if "TIDEMARK_LOG" in os.environ:
            print("ERROR", refused.code, refused.message, "\n   ", self._last, file=sys.stderr, flush=True)
        self._wire.write("E", error(refused))
        if self._state == "T":
            self._state = "E"

    def _ready(self) -> None:
        self._databases.activity.rests(self._state)
        self._wire.write("Z", self._state.encode())

    def _report(self, name: str) -> None:
        self._wire.write("S", text(name) + text(self._settings.get(name.lower(), "")))

    # The simple protocol

    def _simple(self, body: bytes) -> None:
        listed = statements(Fields(body).text())
        if not listed:
            self._wire.write("I")
        for query in listed:
            portal = self._portal(query)
            if portal.kinds and portal.tag != "COPY":
                self._describe_rows(portal)
            self._send(portal, 0)
        if self._state == "I":
            self._end("I")

    # The extended protocol

    def _parse(self, body: bytes) -> None:
        fields = Fields(body)
        name, query, oids = fields.text(), fields.text(), fields.numbers("!i")
        if name and name in self._prepared:
            raise PostgresError("42P05", f'prepared statement "{name}" already exists')
        self._prepared[name] = Prepared(query, oids)
        self._wire.write("1")

    def _bind(self, body: bytes) -> None:
        fields = Fields(body)
        name, statement = fields.text(), self._statement(fields.text())
        formats, values = fields.numbers("!h"), [*fields.values()]
        listed, query = significant(statement.query), statement.query
        if values:
            oids = statement.oids + [0] * (len(values) - len(statement.oids))
            wide = formats * len(values) if len(formats) < 2 else formats
            query = bound(
                query,
                listed,
                [literal(oid, bool(wide[n]) if wide else False, value) for n, (oid, value) in enumerate(zip(oids, values, strict=False))],
            )
        portal = self._portal(query)
        portal.formats = portal.formats or fields.numbers("!h")
        self._portals[name] = portal
        self._wire.write("2")

    def _describe(self, body: bytes) -> None:
        if body[:1] == b"P":
            self._describe_rows(self._opened(Fields(body[1:]).text()))
            return
        statement = self._statement(Fields(body[1:]).text())
        listed = significant(statement.query)
        count = max((number for _, _, number in placeholders(listed)), default=0)
        oids = (statement.oids + [0] * count)[: max(count, len(statement.oids))]
        if 0 in oids:
            statement.oids = oids = self._inferred(statement.query, listed, oids)
        self._wire.write("t", struct.pack(f"!h{len(oids)}i", len(oids), *(oid or 25 for oid in oids)))
        self._describe_rows(self._portal(bound(statement.query, listed, [literal(oid, False, None) for oid in oids])))

    def _inferred(self, query: str, listed: Sequence[object], oids: list[int]) -> list[int]:
        """Parameters without a type take that which DuckDB casts a text in their place to."""
        for number, name, is_array in re.findall(r"\$(\d+)\s*::\s*(\w+)(\s*\[\s*\])?", query):
            if kind := NAMED.get(name.lower()):
                oids[int(number) - 1] = oids[int(number) - 1] or (kind.array if is_array else kind.oid)
        if 0 not in oids:
            return oids
        marked = [f"'?{n}?'" if oid in UNKNOWN else literal(oid, False, None) for n, oid in enumerate(oids)]
        try:
            plan = str(self._databases.query(f"explain (format json) {bound(query, listed, marked)}", False).fetchall())
        except PostgresError:
            return oids
        found = dict(re.findall(r"CAST\('\?(\d+)\?' AS ([A-Z ]+)", plan.replace("\\'", "'")))
        by_name = {
            "INTEGER": 23,
            "BIGINT": 20,
            "DOUBLE": 701,
            "FLOAT": 700,
            "DECIMAL": 1700,
            "BOOLEAN": 16,
            "DATE": 1082,
            "TIMESTAMP": 1114,
            "TIMESTAMP WITH TIME ZONE": 1184,
            "SMALLINT": 21,
            "HUGEINT": 1700,
        }
        return [oid or by_name.get(found.get(str(n), "").strip(), 0) for n, oid in enumerate(oids)]

    def _execute(self, body: bytes) -> None:
        fields = Fields(body)
        self._send(self._opened(fields.text()), fields.number("!i"))

    def _close(self, body: bytes) -> None:
        (self._prepared if body[:1] == b"S" else self._portals).pop(Fields(body[1:]).text(), None)
        self._wire.write("3")

    def _statement(self, name: str) -> Prepared:
        if name not in self._prepared:
            raise PostgresError("26000", f'prepared statement "{name}" does not exist')
        return self._prepared[name]

    def _opened(self, name: str) -> Portal:
        if name not in self._portals:
            raise PostgresError("34000", f'portal "{name}" does not exist')
        return self._portals[name]

    # What both have in common

    def _portal(self, query: str) -> Portal:
        """What a statement will do."""
        self._last = query
        self._databases.activity.runs(query, self._settings["application_name"])
        parts = [*statements(query)]
        if len(parts) > 1:
            raise PostgresError("42601", "cannot insert multiple commands into a prepared statement")
        listed = significant(query)
        first = listed[0].name.lower() if listed else ""
        if not parts:
            return Portal(query, tag="")
        if self._state == "E" and first not in {"rollback", "abort", "commit", "end"}:
            raise PostgresError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        words = [word.text for word in listed if word.text != ";"]
        if first in SESSION and not (
            first == "show" and len(words) > 1 and words[1].lower() in {"tables", "databases"} or words[1:3] == ["all", "tables"]
        ):
            return self._of_session(first, words, query, listed)
        self._settle()
        explained = EXPLAIN.match(query)
        relation = self._databases.query(EXPLAIN.sub(_explain, query) if explained else query, self._state == "T")
        if first == "explain" and relation.columns == ["explain_key", "explain_value"]:
            relation = relation.project('explain_value as "QUERY PLAN"')
        kinds = [kind_of(of) for of in relation.types]

        def start(how: str) -> Iterator[pa.RecordBatch]:
            columns = ", ".join(
                getattr(kind, "as_value" if how[n] == "1" else "as_text").format(f"#{n + 1}") for n, kind in enumerate(kinds)
            )
            return relation.project(columns).to_arrow_reader(ROWS_AT_ONCE)

        return Portal(query, [], [name if f'"{name}"' in query else CALL.sub(_called, name) for name in relation.columns], kinds, start)

    def _describe_rows(self, portal: Portal) -> None:
        if not portal.kinds:
            self._wire.write("n")
            return
        columns = [
            text(name) + struct.pack("!ihihih", 0, 0, kind.oid, kind.size, -1, portal.format_of(n))
            for n, (name, kind) in enumerate(zip(portal.names, portal.kinds, strict=True))
        ]
        self._wire.write("T", struct.pack("!h", len(columns)), *columns)

    def _send(self, portal: Portal, most: int) -> None:
        if portal.act:
            self._wire.write("C", text(portal.act()))
        elif portal.tag == "":
            self._wire.write("I")
        elif portal.tag == "COPY":
            self._copy(portal)
        else:
            if portal.batches is None:
                portal.batches = self._started(portal)
            is_all = self._send_rows(portal, most)
            self._wire.write("C", text(f"{portal.tag} {portal.sent}")) if is_all else self._wire.write("s")

    def _started(self, portal: Portal) -> Iterator[pa.RecordBatch]:
        assert portal.start
        if portal.tag == "SELECT":
            self._settle()
            self._now = portal
        return portal.start("".join(str(portal.format_of(n)) for n in range(len(portal.kinds))))

    def _send_rows(self, portal: Portal, most: int) -> bool:
        """Whether that was all."""
        left = most or -1
        assert portal.batches is not None
        while left:
            batch = portal.rest if portal.rest is not None else next(portal.batches, None)
            portal.rest = None
            if batch is None:
                return True
            if 0 < left < batch.num_rows:
                batch, portal.rest = batch.slice(0, left), batch.slice(left)
            columns = [
                encoded(column, kind) if portal.format_of(n) else column.cast(pa.binary())
                for n, (column, kind) in enumerate(zip(batch.columns, portal.kinds, strict=True))
            ]
            if batch.num_rows:
                self._wire.write_framed(framed(columns))
            portal.sent += batch.num_rows
            left -= batch.num_rows if left > 0 else 0
        if portal.rest is None:
            portal.rest = next(portal.batches, None)
        return portal.rest is None

    def _settle(self) -> None:
        """DuckDB has one running query a connection: what a portal has not sent yet goes into memory."""
        portal, self._now = self._now, None
        if portal is not None and portal in self._portals.values() and portal.batches is not None:
            portal.batches = iter([*portal.batches])

    def _end(self, state: str) -> None:
        self._portals, self._now, self._state, self._databases.pinned = {}, None, state, None

    # Statements of the session

    def _of_session(self, first: str, words: list[str], query: str, listed: Sequence[object]) -> Portal:
        lower = [word.lower() for word in words]
        if first in {"begin", "start"}:
            return Portal(query, act=lambda: self._moved("T", "BEGIN"))
        if first in {"commit", "end", "rollback", "abort"}:
            if "to" in lower:
                return Portal(query, act=lambda: self._moved("T", "ROLLBACK"))
            tag = "ROLLBACK" if first in {"rollback", "abort"} or self._state == "E" else "COMMIT"
            return Portal(query, act=lambda: self._moved("I", tag))
        if first == "show":
            return self._shown(lower[1:], query)
        if first in {"set", "reset"}:
            return Portal(query, act=lambda: self._set(first, lower, listed))
        if first == "discard":
            return Portal(query, act=self._discard)
        if first == "deallocate":
            return Portal(query, act=lambda: self._deallocate(words[-1]))
        if first == "declare":
            place = lower.index("for")
            inner, name = query[listed[place].at + 3 :], listed[1].name
            return Portal(query, act=lambda: self._declare(name, inner, "hold" in lower[:place] and "with" in lower[:place]))
        if first in {"fetch", "move"}:
            cursor = self._opened(listed[-1 if listed[-1].text != ";" else -2].name)
            count = next((int(word) for word in lower if word.isdigit()), 0 if "all" in lower else 1)
            return Portal(query, [], cursor.names, cursor.kinds, lambda how: self._fetched(cursor, count, how), tag=first.upper())
        if first == "close":
            return Portal(query, act=lambda: self._closed(listed[1].name))
        if first == "copy":
            return self._copied(query, lower, listed)
        if first in {"savepoint", "release", "listen", "unlisten"}:
            return Portal(query, act=lambda: first.upper())
        raise PostgresError("25006", f"{first.upper()} cannot be used here: a session only reads")

    def _moved(self, state: str, tag: str) -> str:
        if state == "I":
            self._end("I")
        elif self._state == "E":
            self._state = "T"
        else:
            self._state = state
        return tag

    def _shown(self, words: list[str], query: str) -> Portal:
        name = {("transaction", "isolation", "level"): "transaction_isolation", ("time", "zone"): "timezone"}.get(
            tuple(words), "".join(words)
        )
        if name == "all":
            rows, names = [*self._settings.items()], ["name", "setting"]
        elif name == "tidemark.snapshot" and not self._settings[name]:
            snapshot = self._databases.pinned or find_snapshot(self._databases.plant.lake)
            rows, names = [(str(snapshot.snapshot_id) if snapshot else "",)], [name]
        elif name in self._settings:
            rows, names = [(self._settings[name],)], [name]
        else:
            raise PostgresError("42704", f'unrecognized configuration parameter "{name}"')
        batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names)
        return Portal(query, [], names, [TEXT] * len(names), lambda how: iter([batch]), tag="SHOW")

    def _set(self, first: str, lower: list[str], listed: Sequence[object]) -> str:
        words = [word for word in listed[1:] if word.text != ";"]
        if lower[1] in {"session", "local"} and len(lower) > 2 and lower[2] != "=" and lower[2] != "to":
            words = words[1:]
        names = [word.name.lower() for word in words]
        if names[:1] in (["transaction"], ["characteristics"]) or names[:2] == ["session", "characteristics"] or names[:1] == ["names"]:
            return first.upper()
        if names[:2] == ["time", "zone"]:
            name, value = "timezone", words[2:]
        else:
            end = next((n for n, word in enumerate(words) if word.text == "=" or word.name.lower() == "to"), len(words))
            name, value = "".join(word.text for word in words[:end]).lower().strip('"'), words[end + 1 :]
        if name == "all":
            self._settings.update(self._initial)
            return "RESET"
        given = "".join(
            word.text[1:-1].replace("''", "'")
            if word.kind == "string_const"
            else word.text[1:-1]
            if word.text[:1] == '"' and name != "search_path"
            else f"{word.text}{' ' * (word.text == ',')}"
            for word in value
        )
        self.change(name, self._initial.get(name, "") if first == "reset" or given.lower() == "default" else given)
        return first.upper()

    def change(self, name: str, value: str) -> None:
        if name == "client_encoding" and value.lower().replace("-", "") not in {"utf8", "unicode", "'utf8'"}:
            raise PostgresError("0A000", "texts are UTF8 here")
        if name == "timezone":
            import zoneinfo

            try:
                zoneinfo.ZoneInfo(value)
            except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
                raise PostgresError("22023", f'invalid value for parameter "TimeZone": "{value}"') from None
        if name == "tidemark.snapshot":
            if value and not value.isdigit():
                raise PostgresError("22023", "tidemark.snapshot is the id of a snapshot")
            try:
                find_snapshot(self._databases.plant.lake, int(value) if value else None)
            except TidemarkError as problem:
                raise PostgresError("22023", str(problem)) from None
        if name in {"server_version", "is_superuser", "session_authorization"}:
            raise PostgresError("55P02", f'parameter "{name}" cannot be changed')
        self._settings[name] = value
        if name in (lower := {each.lower(): each for each in REPORTED}):
            self._report(lower[name])

    def _discard(self) -> str:
        self._prepared, self._settings_reset = {}, self._settings.update(self._initial)
        self._end(self._state)
        return "DISCARD ALL"

    def _deallocate(self, name: str) -> str:
        if name.lower() == "all":
            self._prepared = {}
        else:
            self._prepared.pop(name.strip('"'), None)
        return "DEALLOCATE"

    def _declare(self, name: str, inner: str, is_held: bool) -> str:
        if self._state == "I" and not is_held:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        self._portals[name] = self._portal(inner)
        return "DECLARE CURSOR"

    def _fetched(self, cursor: Portal, count: int, how: str) -> Iterator[pa.RecordBatch]:
        if cursor.batches is None:
            cursor.formats = [*map(int, how)]
            cursor.batches = self._started(cursor)
        left = count or -1
        while left:
            batch = cursor.rest if cursor.rest is not None else next(cursor.batches, None)
            cursor.rest = None
            if batch is None:
                return
            if 0 < left < batch.num_rows:
                batch, cursor.rest = batch.slice(0, left), batch.slice(left)
            yield batch
            left -= batch.num_rows if left > 0 else 0

    def _closed(self, name: str) -> str:
        if name.lower() == "all":
            self._portals = {}
        self._portals.pop(name, None)
        return "CLOSE CURSOR"

    def _copied(self, query: str, lower: list[str], listed: Sequence[object]) -> Portal:
        """COPY (query) or table TO STDOUT."""
        depth, to = 0, 0
        for n, word in enumerate(listed):
            depth += (word.text == "(") - (word.text == ")")
            if not depth and word.name.lower() in {"to", "from"}:
                to = n
                break
        if not to or listed[to].name.lower() == "from" or lower[to + 1] != "stdout":
            raise PostgresError("42501", "COPY only to stdout: a session reads, and opens no file")
        source = query[listed[1].at : listed[to].at].strip()
        inner = (
            source[1:-1]
            if source.startswith("(")
            else f"select {source[source.index('(') + 1 : -1]} from {source[: source.index('(')]}"
            if source.endswith(")")
            else f"select * from {source}"
        )
        portal, options = self._portal(inner), lower[to + 2 :]
        portal.tag, portal.formats = "COPY", [1] if "binary" in options else [0]
        portal.query = "csv" if "csv" in options else "binary" if "binary" in options else "text"
        portal.is_held = "header" in options and "false" not in options
        return portal

    def _copy(self, portal: Portal) -> None:
        form, names = portal.query, portal.names
        self._wire.write(
            "H", struct.pack(f"!bh{len(portal.kinds)}h", form == "binary", len(portal.kinds), *[int(form == "binary")] * len(portal.kinds))
        )
        head = b"PGCOPY\n\xff\r\n\0" + bytes(8) if form == "binary" else b""
        if portal.is_held and form != "binary":
            self._wire.write("d", ((b"," if form == "csv" else b"\t").join(name.encode() for name in names)) + b"\n")
        for batch in self._started(portal):
            if not batch.num_rows:
                continue
            if form == "binary":
                rows = framed([encoded(column, kind) for column, kind in zip(batch.columns, portal.kinds, strict=True)], b"d")
                if head:  # goes with the first row, as clients expect it
                    end = 1 + struct.unpack("!i", rows[1:5])[0]
                    self._wire.write("d", head, rows[5:end])
                    head, rows = b"", rows[end:]
                self._wire.write_framed(rows)
            else:
                escape = _csv if form == "csv" else _escaped
                self._wire.write_framed(framed_lines([escape(column) for column in batch.columns], b"," if form == "csv" else b"\t"))
            portal.sent += batch.num_rows
        if form == "binary":
            self._wire.write("d", head, b"\xff\xff")
        self._wire.write("c")
        self._wire.write("C", text(f"COPY {portal.sent}"))


def _explain(match: re.Match[str]) -> str:
    """Of PostgreSQL's options those that DuckDB has."""
    given = {option.split()[0].lower(): option.split()[1:] for option in match[1].split(",") if option.strip()}
    is_run = "analyze" in given and "".join(given["analyze"]).lower() not in {"false", "off", "0"}
    form = "json" if "".join(given.get("format", [])).lower() == "json" else "text"
    return f"explain ({'analyze, ' * is_run}format {form})"


def _called(match: re.Match[str]) -> str:
    """PostgreSQL names a column without a name by its function alone."""
    return match[0] if match[1] == "CAST" else match[1].removesuffix("_star")


def _escaped(column: pa.Array) -> pa.Array:
    for old, new in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        column = pc.replace_substring(column, old, new)
    return column.fill_null("\\N").cast(pa.binary())


def _csv(column: pa.Array) -> pa.Array:
    needs = pc.or_(pc.match_substring_regex(column, '[",\\n\\r]'), pc.equal(column, ""))
    marked = pc.binary_join_element_wise(pa.scalar('"'), pc.replace_substring(column, '"', '""'), pa.scalar('"'), "")
    return pc.if_else(needs.fill_null(False), marked, column).fill_null("").cast(pa.binary())
