"""Logs: append-only tables of small records, such as ops.silences. A record is a dataclass, and its fields are the columns of the table.

Any process may append to a log. Whoever writes holds its lock, as on a local disk two commits at once could be lost to each other.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pyarrow as pa
from msgspec import inspect

from orchestration.location import Location
from orchestration.storage.delta import INSTANT, Filters, in_log, is_table, open_table, path_of, python_rows, rows_of
from orchestration.storage.lease import holding

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RETAINED = timedelta(days=90)
"""How long maintenance keeps what machines write down of their work: notifications, runs of jobs, maintenance."""
Row = TypeVar("Row", bound="DataclassInstance")
ARROW: dict[type[inspect.Type], pa.DataType] = {
    inspect.BoolType: pa.bool_(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.StrType: pa.string(),
    inspect.DateTimeType: INSTANT,
}


@dataclass(frozen=True)
class Log(Generic[Row]):
    """`table`: its SQL name. `row`: the dataclass of its records. `order`: the column that rows are in order of.

    `is_maintained`: maintenance compacts it, as its files are sealed or somebody reads them by version; else an append does.
    """

    table: str
    row: type[Row]
    order: str
    is_maintained: bool = False

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.row)

    def path(self, lake: Location) -> Location:
        return path_of(lake, self.table)

    def hold(self, lake: Location) -> AbstractContextManager[None]:
        """Hold the lock: meanwhile no other thread or process writes the log."""
        path = self.path(lake).local
        return holding(path.with_name(f".{path.name}.lock"))

    def append(self, lake: Location, rows: Iterable[Row]) -> None:
        """Append rows in one commit, to a table that is made where it is not there."""
        if appended := [*map(asdict, rows)]:
            self.append_table(lake, pa.Table.from_pylist(appended, self.schema))

    def append_table(self, lake: Location, rows: pa.Table) -> None:
        """Append rows that are in columns already."""
        from orchestration.storage.commit import append_rows, compact_many, create, widen  # readers do without it

        with self.hold(lake):
            create(self.path(lake), self.schema)
            widen(self.path(lake), self.schema)
            append_rows(self.path(lake), rows)
            if not self.is_maintained:
                compact_many(self.path(lake))

    def rows(self, lake: Location, where: Filters = ()) -> list[Row]:
        """Return the rows that fulfil `where` (see delta.table_of), in order; none where there is no table."""
        rows = sorted(rows_of(self.path(lake), filters=where), key=itemgetter(self.order))
        return [msgspec.convert(row, self.row) for row in rows]

    def last_of_each(self, lake: Location, key: str, where: Filters = ()) -> dict[Any, Row]:
        """Return the last row of each value of a column, by that value."""
        return {getattr(row, key): row for row in self.rows(lake, where)}

    def newest(self, lake: Location, most: int, where: Filters = ()) -> list[Row]:
        """Return the last rows that fulfil `where`, at most so many, the newest first. Files that hold only older rows are not read."""
        if not is_table(self.path(lake)):
            return []
        rows, counted, wanted = list[Row](), 0, most
        for least, count in self._files(lake):
            counted += count
            if counted >= wanted:
                rows, wanted = self.rows(lake, [*where, (self.order, ">=", least)]), 4 * counted
                if len(rows) >= most:
                    return rows[: -most - 1 : -1]
        return self.rows(lake, where)[: -most - 1 : -1]

    def retire(self, lake: Location, before: datetime, is_needed: Callable[[Row], bool] = lambda _: False) -> None:
        """Remove rows from before an instant, by which the log must be in order, but for needed ones."""
        if not self.reaches_back(lake, before):
            return
        from orchestration.storage.commit import replace_rows

        def kept(rows: pa.Table) -> pa.Table:
            is_kept = [row[self.order] >= before or is_needed(msgspec.convert(row, self.row)) for row in python_rows(rows)]
            return rows.filter(pa.array(is_kept, pa.bool_()))

        with self.hold(lake):
            replace_rows(self.path(lake), kept, self.schema.names)

    def replace(self, lake: Location, rows: Iterable[Row]) -> None:
        """Put these rows in the place of all that there are, in one commit."""
        from orchestration.storage.commit import replace_rows

        new = pa.Table.from_pylist([*map(asdict, rows)], self.schema)
        with self.hold(lake):
            replace_rows(self.path(lake), lambda before: before[:0], [self.order], [new])

    def reaches_back(self, lake: Location, before: datetime) -> bool:
        """Whether it has rows from before an instant, by the log of the table alone."""
        return is_table(self.path(lake)) and any(least < before for least, _ in self._files(lake))

    def delete(self, lake: Location, column: str, values: Collection[int]) -> None:
        from orchestration.storage.commit import delete_rows

        with self.hold(lake):
            delete_rows(self.path(lake), column, values)

    def _files(self, lake: Location) -> list[tuple[Any, int]]:
        """The least value of `order` in each file, from the log of the table, and how many rows it has; the file with the newest first."""
        files = python_rows(in_log(open_table(self.path(lake)), f"min.{self.order}", "num_records"))
        return sorted(((file[f"min.{self.order}"], file["num_records"]) for file in files), reverse=True)


def retained_since(now: datetime, retained: timedelta = RETAINED) -> datetime:
    """Return the instant before which rows are old: the beginning of a day, so that a log is written anew once a day at most."""
    return (now - retained).replace(hour=0, minute=0, second=0, microsecond=0)


@cache
def schema_of(row: type[Any]) -> pa.Schema:
    """Return the columns of a dataclass. `Annotated[.., Meta(description="..")]` gives one a comment."""
    columns = {column.name: column for column in _arrow(inspect.type_info(row))}
    return pa.schema([columns[field.name] for field in fields(row)])  # msgspec puts those with a default last


def _arrow(kind: inspect.Type) -> pa.DataType:
    match kind:
        case inspect.Metadata():
            return _arrow(kind.type)
        case inspect.UnionType():
            (inner,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
            return _arrow(inner)
        case inspect.ListType() | inspect.VarTupleType():
            return pa.list_(_arrow(kind.item_type))
        case inspect.DictType():
            return pa.map_(_arrow(kind.key_type), _arrow(kind.value_type))
        case inspect.DataclassType():
            return pa.struct([pa.field(field.name, _arrow(field.type), metadata=_comment(field.type)) for field in kind.fields])
    return ARROW[type(kind)]


def _comment(kind: inspect.Type) -> dict[str, str] | None:
    schema = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return {"comment": schema["description"]} if schema else None
