"""The running SQL server as an engine of `tidemark sql`, for the user who started it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
from psycopg.postgres import types
from psycopg.types.string import TextLoader

from orchestration.conf.pipeline_settings import SqlServerSettings
from orchestration.errors import TidemarkError
from orchestration.serving.postgres.address import address_of
from orchestration.serving.sql.answer import Answer, Limits, Question, RefusedError, pointed
from orchestration.storage.marts import snapshot_for

if TYPE_CHECKING:
    from orchestration.conf.model import Conf

ROWS_AT_ONCE, ROWS_OF_A_CHUNK = 10_000, 1000
NUMBERS = {"int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "float4": pa.float32(), "float8": pa.float64()}
OTHERS = {
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
BY_OID = {
    oid: kind
    for name, of_value in (NUMBERS | OTHERS | {"text": pa.string()}).items()
    for oid, kind in ((types[name].oid, of_value), (types[name].array_oid, pa.list_(of_value)))
}
"""Types of Arrow. A numeric takes the scale of its values; all others are texts, as the server writes them."""
AS_TEXT = ("interval", "time", "timetz", "uuid", "json", "jsonb")
OF_QUERY = ("0A", "22", "25", "42", "57014")
"""Classes of errors that the query is to mend."""


class ServerEngine:
    """Asks the server that has the address of this user's conf."""

    def __init__(self, conf: "Conf", limits: Limits) -> None:
        self._lake, self._limits = conf.lake, limits
        try:
            address = address_of(conf, conf.sql_server or SqlServerSettings())
            self._connection = psycopg.connect(address, autocommit=True, application_name="tidemark sql")
        except psycopg.OperationalError as error:
            raise TidemarkError(f"{str(error).splitlines()[0]}; `tidemark sql-server` starts a server where none runs.") from error
        for name in AS_TEXT:
            self._connection.adapters.register_loader(name, TextLoader)

    def ask(self, question: Question) -> Answer:
        """RefusedError for a query that is wrong, TidemarkError where the server cannot answer."""
        snapshot = snapshot_for(self._lake, question.query, question.snapshot_id, question.at)
        try:
            self._connection.execute(f"set tidemark.snapshot = '{'' if snapshot is None else snapshot.snapshot_id}'")
            with self._connection.cursor() as cursor:
                rows, is_cut_off = self._fetched(cursor, cursor.stream(question.query.encode(), size=ROWS_OF_A_CHUNK))
        except psycopg.Error as error:
            raise _worded(error, question.query) from error
        return Answer(rows, snapshot, is_cut_off)

    def _fetched(self, cursor: psycopg.Cursor, rows: Iterator[Sequence[Any]]) -> tuple[pa.Table, bool]:
        """Return rows up to the limits, and whether there are more."""
        tables, size, count = list[pa.Table](), 0, 0
        while True:
            some = [*islice(rows, ROWS_AT_ONCE)]
            columns = cursor.description or ()
            values = zip(*some, strict=True) if some else ((),) * len(columns)
            arrays = [_array(column.type_code, items) for column, items in zip(columns, values, strict=True)]
            tables.append(pa.Table.from_arrays(arrays, [*map(str, range(len(columns)))]))
            size, count = size + tables[-1].nbytes, count + len(some)
            is_cut_off = size > self._limits.result_bytes or count > self._limits.rows
            if is_cut_off or len(some) < ROWS_AT_ONCE:  # what is left is cancelled with its iterator
                break
        table = pa.concat_tables(tables, promote_options="permissive").rename_columns([column.name for column in columns])
        return table.slice(0, self._limits.rows), is_cut_off

    def cancel(self) -> None:
        """Cancel the running query; called from another thread."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe()


def _array(oid: int, values: Sequence[Any]) -> pa.Array:
    if oid != types["numeric"].oid:
        return pa.array(values, BY_OID.get(oid, pa.string()))
    array = pa.array(values, pa.decimal128(38, 0) if all(value is None for value in values) else None)
    with suppress(pa.ArrowInvalid):  # whole numbers, as sums are, where they fit
        return array.cast(pa.int64()) if array.type.scale == 0 else array
    return array


def _worded(error: psycopg.Error, query: str) -> TidemarkError:
    code, diagnosis = error.sqlstate or "", error.diag
    text = diagnosis.message_primary or str(error).strip() or type(error).__name__
    if diagnosis.statement_position:
        text += "\n" + pointed(query, int(diagnosis.statement_position) - 1)
    kind = RefusedError if code.startswith(OF_QUERY) or isinstance(error, psycopg.DataError) else TidemarkError
    return kind(text + (f"\n  {diagnosis.message_hint}" if diagnosis.message_hint else ""))
