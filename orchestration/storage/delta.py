"""Delta tables without Spark: opened, asked, and what their logs say. Other rooms ask here and do not import deltalake."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, Schema, Transaction
from deltalake.exceptions import CommitFailedError

from orchestration.location import Location
from orchestration.storage.damaged_logs import NoTableError
from orchestration.storage.kept import forget, writing
from orchestration.storage.kept_tables import LOG as LOG  # noqa: PLC0414 - who reads logs asks here
from orchestration.storage.kept_tables import following, is_kept, keep, opened, transactions
from orchestration.stores.disk import DRAFT
from orchestration.utc import from_micros, to_micros

INSTANT = pa.timestamp("us", "UTC")
PLAIN = 1
"""The reader version of tables without deletion vectors and renamed columns: their rows are what their files hold."""
FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
"""The first instant of Python. Silver took earlier ones for event times once, so lakes may hold some."""
FIRST_AT, LAST_AT = datetime(1700, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Delta's filter counts nanoseconds, which reach from 1677 to 2262."""
OpenTable: TypeAlias = DeltaTable
"""A table at one version, as `open_table` gives it."""
OF_LOG = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": "10"}
"""Checkpoints at each tenth commit, whoever makes it. Delta would forget versions by their age alone, 30 days; maintenance knows which ones
snapshots and streams need."""
_opened: ContextVar[dict[str, OpenTable] | None] = ContextVar("opened", default=None)
Filters = Sequence[tuple[str, str, Any]]


def path_of(lake: Location, name: str) -> Location:
    """Return the path of a table that no generation has, by its SQL name (`ops.snapshots`)."""
    return lake / name.replace(".", "/", 1)


@contextmanager
def each_table_opened_once(tables: dict[str, OpenTable] | None = None) -> Iterator[None]:
    """Keep the newest version of each table what it was at first, and open each version once: for whoever reads much of many tables.

    `tables`: those that an earlier part of the same work has opened; those that this one opens are added.
    """
    token = _opened.set({} if tables is None else tables)
    try:
        yield
    finally:
        _opened.reset(token)


def is_table(path: Location) -> bool:
    if path.store.is_disk:
        return str(path) in (_opened.get() or ()) or DeltaTable.is_deltatable(str(path))
    # A store is not asked by is_deltatable, which holds Python's lock until it answers, so that the lease is not renewed.
    return (path / LOG).is_dir() if _opened.get() is None and not is_kept(path) else table_at(path) is not None


def table_at(path: Location, version: int | None = None) -> OpenTable | None:
    """Open a table; None where there is none. A store is not asked twice."""
    if path.store.is_disk:
        return open_table(path, version) if is_table(path) else None
    try:
        return open_table(path, version)
    except NoTableError:
        return None


def new_table(path: Location, schema: Schema, partition: str | None, configuration: Mapping[str, str]) -> OpenTable:
    """Create a table; where it is there, open it."""
    if path.store.is_disk:
        path.local.mkdir(parents=True, exist_ok=True)
    with writing(path):
        forget(path)
        try:
            created = DeltaTable.create(
                str(path),
                schema=schema,
                partition_by=[partition] if partition else None,
                configuration=OF_LOG | dict(configuration),
                mode="ignore",
                storage_options=path.store.delta_options,
            )
        except CommitFailedError:  # another process was first, or the answer of the store was lost
            return opened(path, None)
        return keep(path, created)


def open_table(path: Location, version: int | None = None) -> OpenTable:
    """The table at a version, None for the newest one; DamagedLogError names the file that cannot be read."""
    once, key = _opened.get(), str(path) if version is None else f"{path}@{version}"
    if once is None:
        return opened(path, version)
    if (newest := once.get(str(path))) is not None and newest.version() == version:
        return newest
    if key not in once:
        once[key] = opened(path, version)
    return once[key]


def committed(path: Location, table: OpenTable, made: Sequence[Transaction]) -> OpenTable:
    """Return a table after a commit of this process. One that is kept is in use by others, and stays at its version."""
    if is_kept(path):
        before, table = transactions(table), following(path, table)
        transactions(table).update(before | {one.app_id: one.version for one in made})
    else:
        table.update_incremental()
    if (once := _opened.get()) is not None:
        once[str(path)] = table
    return table


def table_id(path: Location) -> str:
    return str(opened(path, None).metadata().id)


def version_of(path: Location) -> int:
    """The newest version; -1 where there is no table."""
    return table.version() if (table := table_at(path)) else -1


def written_by(path: Location, app_id: str, version: int | None = None) -> int:
    """The version of the newest transaction of an application in a version of the table; -1 for none, and where there is no table."""
    return written_in(table, app_id) if (table := table_at(path, version)) else -1


def written_in(table: OpenTable, app_id: str) -> int:
    """The same of a table that is open."""
    version = table.transaction_version(app_id)
    return -1 if version is None else version


def rows_of(path: Location, columns: list[str] | None = None, filters: Filters | None = None) -> list[dict[str, Any]]:
    """Read rows of a small table, in no order; none where there is no table. For `filters` see table_of."""
    table = table_at(path)
    return python_rows(_scanned(table, columns, filters)) if table else []


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Read rows of a small table as Python holds them."""
    columns = [_python_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def table_of(path: Location, columns: list[str] | None = None, filters: Filters | None = None) -> pa.Table:
    """The same as Arrow has it, of a table that is there. `filters`: (column, operator, value), of which all must hold."""
    table = open_table(path)
    rows = _scanned(table, columns, filters)
    declared = pa.schema(table.schema().to_arrow())
    return rows.cast(pa.schema([declared.field(name) for name in rows.column_names]))


def _scanned(table: OpenTable, columns: list[str] | None, filters: Filters | None) -> pa.Table:
    """The same in DataFusion's types, such as views of texts."""
    where = " and ".join(f'"{column}" {operator} {literal(_in_reach(value))}' for column, operator, value in filters or ())
    names = columns or [field.name for field in table.schema().fields]
    return pa.RecordBatchReader.from_stream(table.scan(columns=names, predicate=where or None)).read_all().select(names)


def _in_reach(value: Any) -> Any:
    return min(max(value, FIRST_AT), LAST_AT) if isinstance(value, datetime) else value


def literal(value: Any) -> str:
    """A value as the SQL of DataFusion and DuckDB writes it: a whole number, a text, an instant, null, a list of these."""
    if isinstance(value, list | tuple):
        return f"({', '.join(map(literal, value))})"
    return "null" if value is None else str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def instant(micros: int) -> str:
    """An instant, in microseconds since 1970, as the SQL of DataFusion writes it."""
    return f"arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    # As numbers: an instant that pyarrow makes a Python one loads pandas first, and so does cast load pyarrow.compute. Both take longer
    # than everything else here.
    as_numbers = _without_instants(column.type)
    chunks = column.chunks if as_numbers == column.type else [chunk.view(as_numbers) for chunk in column.chunks]
    return [_with_instants(value, column.type) for chunk in chunks for value in chunk.to_pylist(maps_as_pydicts="strict")]


def _without_instants(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _without_instants(kind.item_type))
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _with_instants(value: Any, kind: pa.DataType) -> Any:
    if value is not None and pa.types.is_timestamp(kind):
        return from_micros(value)
    if value is not None and pa.types.is_map(kind):
        return {key: _with_instants(item, kind.item_type) for key, item in value.items()}
    return value


def ask(sql: str, tables: Mapping[str, OpenTable], settings: Mapping[str, str] | None = None) -> pa.RecordBatchReader:
    """The answer of DataFusion to a query over tables by these names, batch by batch. `settings`: of DataFusion."""
    query = QueryBuilder(dict(settings)) if settings else QueryBuilder()
    for name, table in tables.items():
        query.register(name, table)
    return pa.RecordBatchReader.from_stream(query.execute(sql))


def answers(path: Location, sql: str) -> list[dict[str, Any]]:
    """Return the rows of an answer over one table, called `rows`; none where there is no table."""
    return ask(sql, {"rows": table}).read_all().to_pylist() if (table := table_at(path)) else []


def commit(table: Location, version: int) -> tuple[list[int], datetime]:
    """Return the rows of each file that a version adds, in the log's order, and when it was committed.

    A version whose file is gone was cleaned up long after every flow passed it; one that only rearranges rows adds none.
    """
    entry = _entry(table, version)
    adds = [action["add"] for action in entry if "add" in action]
    return [json.loads(add.get("stats") or "{}").get("numRecords", 0) if add["dataChange"] else 0 for add in adds], _instant_of(entry)


def committed_at(table: Location, version: int) -> datetime:
    """Return when a version was committed, by its entry in the log, which a copy of the lake keeps; EPOCH where that is gone."""
    return _instant_of(_entry(table, version))


def _entry(table: Location, version: int) -> list[dict[str, Any]]:
    try:
        return [*actions(log_of(table, version), "commitInfo", "add")]
    except FileNotFoundError:
        return []


def _instant_of(entry: Sequence[Mapping[str, Any]]) -> datetime:
    """The instant of `commitInfo`, which Delta does not demand: else that of the newest file. EPOCH where there is none."""
    stated = [info["timestamp"] for action in entry if "timestamp" in (info := action.get("commitInfo", {}))]
    return from_micros(1000 * max(stated or [action["add"]["modificationTime"] for action in entry if "add" in action], default=0))


def added(table: Location, version: int) -> list[dict[str, Any]]:
    """Return the log's entries of the files that a version adds, in its order; none where the log is gone. For paths see files_of."""
    adds = [action["add"] for action in _entry(table, version) if "add" in action]
    return [add | {"path": unquote(add["path"])} for add in adds]


def actions(entry: Location, *kinds: str) -> Iterator[dict[str, Any]]:
    """Actions of these kinds in an entry of a log, in its order."""
    beginnings = tuple(f'{{"{kind}"'.encode() for kind in kinds)
    # As bytes: text would be cut at U+2028 and its like too, which may stand in a value of the statistics.
    content = entry.read() if entry.store.is_disk else _kept_content(entry)
    return (json.loads(line) for line in content.splitlines() if line.startswith(beginnings))


@lru_cache(1024)
def _kept_content(entry: Location) -> bytes:
    """Entries never change, and a store is asked for each once."""
    return entry.read()


def max_in_log(path: Location, column: str, version: int | None = None) -> Any:
    """The greatest value of a column with statistics, by the log alone, FIRST_INSTANT for an earlier instant; None where there is none."""
    log = in_log(table, f"max.{column}") if (table := table_at(path, version)) else None
    if not log or not log.num_columns:
        return None
    is_instant = pa.types.is_timestamp(log.schema.types[0])
    # Neither cast nor pyarrow.compute, which takes longer to load than to read a small log.
    chunks = (chunk.view(pa.int64()) if is_instant else chunk for chunk in log.column(0).chunks)
    greatest = max((number for chunk in chunks for number in chunk.to_pylist() if number is not None), default=None)
    if greatest is None or not is_instant:
        return greatest
    return from_micros(max(greatest, to_micros(FIRST_INSTANT)))


def in_log(table: OpenTable, *columns: str) -> pa.Table:
    """Read the log as one row a file: these columns, without those that it knows nothing of; all, where none is named.

    Only what is asked for becomes Python's: statistics of event times may hold an instant that it has none for, and looking would fail.
    """
    log = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()  # pa.table would load pandas
    return log.select([name for name in columns or log.column_names if name in log.column_names])


def files_of(table: OpenTable) -> list[str]:
    """List the files of a table's version: their paths below its folder, as the disk has them; the log writes them as URLs."""
    return [unquote(path) for path in in_log(table, "path")["path"].to_pylist()]


def log_of(table: Location, version: int) -> Location:
    return table / LOG / f"{version:020d}.json"


def is_draft(name: str) -> bool:
    """Whether the file is still being written, and gets its name then: delta-rs has `<name>#1`, a disk DRAFT. A kill leaves it for ever."""
    return "#" in name or name.endswith(DRAFT)
