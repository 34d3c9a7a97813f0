"""Rows as a table of Postgres that equals the table of the lake: exactly once.

One transaction a batch writes the rows and the position, in `tidemark_positions` beside the table. A row is put in, or put in the place of
the one with its key unless that has a higher revision. Text keeps all but the character NUL, which Postgres has not: it becomes U+FFFD.
Each chunk has a savepoint, so a row that Postgres refuses for what it holds is found, and left out.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, NoReturn

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from orchestration.column_texts import bracketed, plain_texts
from orchestration.conf.sink_settings import PostgresSettings
from orchestration.connectors.sinks.dead_rows import RowError, sieve
from orchestration.connectors.sinks.sink import FILE, Batch, Sink, parts
from orchestration.connectors.sinks.sink_states import SinkPosition
from orchestration.errors import TidemarkError
from orchestration.secrets import resolved

POSITIONS = "tidemark_positions"
STAGED, KEYS = sql.Identifier("tidemark_chunk"), sql.Identifier("tidemark_keys")
DEFAULTS = conninfo_to_dict(
    "application_name=tidemark connect_timeout=10 tcp_user_timeout=60000 keepalives_idle=30 keepalives_interval=10 keepalives_count=3"
)
"""Without these a server that is gone without a word holds a connection for hours."""
TYPES = {
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.timestamp("us"): "timestamp without time zone",
}
NARROWER = {"text": {"character varying"}, "bigint": {"integer", "smallint"}, "integer": {"smallint"}}
"""Types that somebody may have given a column: they hold a value as it is, or refuse it."""
OF_ROWS = ("22", "23", "44", "54", "P0")
"""Classes of SQLSTATE that speak of what a row holds: data, constraints, views, limits such as that of an index, and triggers."""
CHUNK_ROWS = 50_000
NUL, REPLACEMENT = "\x00", "\ufffd"
WITHOUT_HEADER = pyarrow.csv.WriteOptions(include_header=False)


class PostgresSink(Sink):
    """A connection for each call: a batch comes every few seconds at most."""

    def __init__(self, owner: str, settings: PostgresSettings) -> None:
        """`owner`: pipeline and sink; no other one writes the table."""
        self._owner, self._dsn = owner, settings.dsn
        schema, _, table = settings.table.rpartition(".")
        self._schema, self._table = schema or "public", table
        self._target = sql.Identifier(self._schema, self._table)
        self._positions = sql.Identifier(self._schema, POSITIONS)

    def last(self, remembered: SinkPosition | None) -> SinkPosition | None:
        """Read the position from the database, whatever the lake remembers."""
        with self._transaction() as cursor:
            return self._position(cursor) if _exists(cursor, self._schema, POSITIONS) else None

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """All of it in one transaction; a second process that sends to the same table waits for its end."""
        with self._transaction() as cursor:
            self._lock(cursor)
            if self._position(cursor) != batch.after:
                return False
            self._ensure_table(cursor, batch)
            self._put_in(cursor, batch, rows)
            query = sql.SQL("insert into {} values (%s, %s, %s, now()) on conflict (sink_table) do update set {}")
            moved = sql.SQL("position = excluded.position, at = excluded.at")
            cursor.execute(query.format(self._positions, moved), [self._table, self._owner, json.dumps(asdict(batch.position))])
            return True

    def _lock(self, cursor: psycopg.Cursor[Any]) -> None:
        """Until the end of the transaction; tables of other sinks go on, unless nobody has made the table of positions yet."""
        lock = "select pg_advisory_xact_lock(hashtextextended(%s, 0))"
        if not _exists(cursor, self._schema, POSITIONS):
            cursor.execute(lock, [f"{self._schema}.{POSITIONS}"])
            query = "create table if not exists {} (sink_table text primary key, owner text, position text, at timestamptz)"
            cursor.execute(sql.SQL(query).format(self._positions))
        cursor.execute(lock, [f"{self._schema}.{self._table}"])

    def _position(self, cursor: psycopg.Cursor[Any]) -> SinkPosition | None:
        """None too where the table itself is gone; TidemarkError where somebody else made it."""
        query = sql.SQL("select owner, position from {} where sink_table = %s for update").format(self._positions)
        row = cursor.execute(query, [self._table]).fetchone()
        is_there = _exists(cursor, self._schema, self._table)
        if (row is None and is_there) or (row is not None and row[0] != self._owner):
            made_by = "was not made by this sink" if row is None else f"belongs to sink {row[0]}"
            raise TidemarkError(f"table {self._schema}.{self._table} {made_by}; name another table, or drop that one.")
        return SinkPosition(**json.loads(row[1])) if row is not None and is_there else None

    def check(self, table: str, schema: pa.Schema) -> None:
        for field in schema:
            _type_of(table, field.name, field.type)

    def _ensure_table(self, cursor: psycopg.Cursor[Any], batch: Batch) -> None:
        """Make the table, or add the columns that it lacks."""
        types = {field.name: _type_of(batch.table, field.name, field.type) for field in batch.schema}
        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in types.items()]
        if batch.key:
            columns.append(sql.SQL("primary key ({})").format(_names(batch.key)))
        cursor.execute(sql.SQL("create table if not exists {} ({})").format(self._target, sql.SQL(", ").join(columns)))
        query = "select attname, format_type(atttypid, null) from pg_attribute where attrelid = to_regclass(%s)"
        query = f"{query} and attnum > 0 and not attisdropped"
        existing = dict(cursor.execute(query, [f'"{self._schema}"."{self._table}"']).fetchall())
        for name in types.keys() - existing.keys():
            add = sql.SQL("alter table {} add column {} {}").format(self._target, sql.Identifier(name), sql.SQL(types[name]))
            cursor.execute(add)
        odd = [name for name, kind in existing.items() if kind not in {types.get(name), *NARROWER.get(types.get(name, ""), ())}]
        if odd:
            said = f"table {self._schema}.{self._table} has other columns than {batch.table} ({', '.join(sorted(odd))})"
            raise TidemarkError(f"{said}; drop it, and it is made anew with all rows.")

    def _put_in(self, cursor: psycopg.Cursor[Any], batch: Batch, rows: Iterator[pa.Table]) -> None:
        """Load the rows by COPY: straight into an empty table, else through a temporary one."""
        if not batch.key:
            cursor.execute(sql.SQL("delete from {}").format(self._target))
        is_empty = cursor.execute(sql.SQL("select 1 from {} limit 1").format(self._target)).fetchone() is None
        if not is_empty:
            cursor.execute(sql.SQL("create temporary table {} (like {}) on commit drop").format(STAGED, self._target))
            made = sql.SQL("create temporary table {} on commit drop as select {} from {} limit 0")
            cursor.execute(made.format(KEYS, _names(batch.key), self._target))
        cursor.execute("set constraints all immediate")
        put = partial(self._copy if is_empty else self._merge, cursor, batch)
        for chunk in parts(rows, CHUNK_ROWS):
            for _ in sieve(chunk, lambda part: _in_savepoint(cursor, lambda: put(part)), batch.refused):
                pass
        if batch.is_complete and not is_empty:
            same = sql.SQL(" and ").join(sql.SQL("old.{0} = new.{0}").format(sql.Identifier(name)) for name in batch.key)
            cursor.execute(sql.SQL("analyze {}").format(KEYS))
            gone = sql.SQL("delete from {} as old where not exists (select from {} as new where {})")
            cursor.execute(gone.format(self._target, KEYS, same))
        batch.refused.note()

    def _copy(self, cursor: psycopg.Cursor[Any], batch: Batch, rows: pa.Table, into: sql.Identifier | None = None) -> None:
        query = sql.SQL("copy {} ({}) from stdin (format csv)").format(into or self._target, _names(batch.schema.names))
        content = _as_csv(rows)
        with cursor.copy(query) as copy:
            copy.write(content)

    def _merge(self, cursor: psycopg.Cursor[Any], batch: Batch, rows: pa.Table) -> None:
        self._copy(cursor, batch, rows, STAGED)
        key, names = _names(batch.key), _names(batch.schema.names)
        others = [name for name in batch.schema.names if name not in batch.key]
        changes = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
        is_revised = "revision" in others and not batch.is_complete
        is_later = "excluded.revision >= old.revision" if is_revised else "old is distinct from excluded"
        query = "insert into {} as old ({names}) select {names} from {} on conflict ({}) do update set {} where {}"
        cursor.execute(sql.SQL(query).format(self._target, STAGED, key, changes, sql.SQL(is_later), names=names))
        if batch.is_complete:
            cursor.execute(sql.SQL("insert into {} select {} from {}").format(KEYS, key, STAGED))
        cursor.execute(sql.SQL("truncate {}").format(STAGED))

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Cursor[Any]]:
        """TidemarkError without any part of the connection string, which messages of the library may quote."""
        dsn = resolved(self._dsn, FILE)
        try:
            with psycopg.connect(**(DEFAULTS | conninfo_to_dict(dsn))) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]
                yield cursor
        except psycopg.Error as error:
            _refuse(error)


def _in_savepoint(cursor: psycopg.Cursor[Any], work: Callable[[], None]) -> None:
    """All of it or nothing; RowError where Postgres refuses what a row holds."""
    try:
        with cursor.connection.transaction():
            work()
    except psycopg.Error as error:
        if (error.sqlstate or "")[:2] in OF_ROWS:
            raise RowError(f"Postgres answered: {error.diag.message_primary}.") from None
        raise


def _refuse(error: psycopg.Error) -> NoReturn:
    if error.diag.message_primary:
        raise TidemarkError(f"Postgres answered: {error.diag.message_primary}.") from None
    if isinstance(error, psycopg.OperationalError):
        raise TidemarkError("the Postgres server was not reached, or the connection broke.") from None
    raise TidemarkError(f"Postgres could not be used ({type(error).__name__}); look at the dsn that pipeline.yml names.") from None


def _exists(cursor: psycopg.Cursor[Any], schema: str, table: str) -> bool:
    row = cursor.execute("select to_regclass(%s) is not null", [f'"{schema}"."{table}"']).fetchone()
    return row is not None and bool(row[0])


def _names(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _as_csv(rows: pa.Table) -> bytes:
    """Without a header. An empty text is in quotes, null is not there at all."""
    plain = pa.Table.from_arrays([_as_text(column.combine_chunks()) for column in rows.columns], rows.column_names)
    out = io.BytesIO()
    pyarrow.csv.write_csv(plain, out, WITHOUT_HEADER)
    return out.getvalue()


def _type_of(table: str, name: str, kind: pa.DataType) -> str:
    if pa.types.is_list(kind) and not pa.types.is_list(kind.value_type):
        return f"{_type_of(table, name, kind.value_type)}[]"
    if pa.types.is_map(kind):
        return "jsonb"
    if pa.types.is_decimal(kind):
        return "numeric"
    if kind not in TYPES:
        raise TidemarkError(f"column {name} of {table} is {kind}, for which Postgres has no type here; leave it out of the mart.")
    return TYPES[kind]


def _as_text(column: pa.Array) -> pa.Array:
    """Lists, bytes, texts and instants as COPY reads them; others as they are. Arrow writes years beyond 32,767 wrongly."""
    if pa.types.is_list(column.type):
        return _as_array(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
        return plain_texts(column)
    if pa.types.is_map(column.type):
        cells = [None if cell is None else {_without_nul(key): _without_nul(value) for key, value in cell} for cell in column.to_pylist()]
        return pa.array([None if cell is None else json.dumps(cell, ensure_ascii=False) for cell in cells], pa.string())
    if pa.types.is_binary(column.type):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
    return pc.replace_substring(column, NUL, REPLACEMENT) if pa.types.is_string(column.type) else column


def _without_nul(value: Any) -> Any:
    return value.replace(NUL, REPLACEMENT) if isinstance(value, str) else value


def _as_array(lists: pa.ListArray) -> pa.Array:
    """Such as {1.5,NULL,nan} and {"a","say \\"b\\""}."""
    values = lists.flatten()
    texts = _as_text(values).cast(pa.string())
    if pa.types.is_string(values.type):
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', escaped, '"', "")
    return bracketed(lists, pc.fill_null(texts, "NULL"), "{}", None)
