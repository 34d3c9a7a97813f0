"""Rows on stdout, as a table for people or as CSV or JSON for programs; errors on stderr."""

import csv
import json
import math
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from orchestration.errors import describe, exit_code_of
from orchestration.utc import EPOCH, from_micros

if TYPE_CHECKING:
    import pyarrow as pa

format_option = click.option(
    "--format", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True, help="How to print the rows."
)

# Control characters, marks that turn the direction of text, halves of surrogate pairs: with these a hostile cell could steer a terminal.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
# In JSON text these stand inside strings only; the rest of the control characters is escaped by the json module.
UNPRINTABLE_IN_JSON = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_PAYLOAD = 100
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
INFINITE, INFINITE_DAYS = 2**63 - 1, 2**31 - 1
WIDE = 100_000  # columns; a pipe has no edge at which a cell should wrap


def show(rows: Sequence[Mapping[str, Any]], format: str, columns: Sequence[str] = ()) -> None:
    """Print rows to stdout; columns default to the keys in the order they first appear, and are worth giving where there may be no rows."""
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    cells = [{column: plain(row.get(column)) for column in columns} for row in rows]
    match format:
        case "json":
            show_json(cells)
        case "csv":
            show_csv(columns, cells)
        case _:
            show_table(columns, cells)


def plain(value: Any) -> Any:
    """Convert a value for `to_json`: instants in ISO 8601 in UTC with Z, local times without it, bytes as text with backslash escapes, NaN
    and infinity as text, NaT as null."""
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [plain(item) for item in value]
    return _plain_scalar(value)


def visible(text: str) -> str:
    """Text that a terminal prints and does not obey: what cannot be printed becomes its backslash escape."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def short(payload: bytes | None, most: int = LONGEST_PAYLOAD) -> str | None:
    """The first `most` bytes of a payload as text, what is no UTF-8 as backslash escapes; then its length where it is longer."""
    if payload is None:
        return None
    is_whole = len(payload) <= most
    # A character that the cut halves is left out.
    text = getincrementaldecoder("utf-8")("backslashreplace").decode(bytes(payload[:most]), final=is_whole)
    return text if is_whole else f"{text}... ({len(payload):,} bytes)"


def lasting(seconds: float | None) -> str:
    """A length of time in its two greatest units."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    for unit, size, smaller, smaller_size in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            rest = int(seconds % size) // smaller_size
            return f"{int(seconds) // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds:.0f} s"


def show_error(error: Exception) -> int:
    """Print on stderr what went wrong; returns the exit code."""
    click.echo("\n".join(visible(line) for line in describe(error).splitlines()), err=True)
    return exit_code_of(error)


def values(column: "pa.ChunkedArray") -> list[Any]:
    """Python values of a column, with the digits that it has: those of a float of 32 bits are the fewest that give the same float.

    An instant that Python cannot hold is a text: infinity, a year outside of 1 to 9999, nanoseconds.
    """
    exact, convert = _exact(column.type)
    cells: list[Any] = column.cast(exact).to_pylist(maps_as_pydicts="lossy")
    return cells if exact == column.type else [convert(cell) for cell in cells]


def _exact(kind: "pa.DataType") -> tuple["pa.DataType", Callable[[Any], Any]]:
    """Return the type of which Python gets all values of this one, and the function that makes such a value the one to show."""
    import pyarrow as pa

    exact: pa.DataType = kind
    convert: Callable[[Any], Any] = _same
    match kind:
        case pa.TimestampType():
            exact, convert = pa.int64(), partial(_instant_at, kind.unit, "" if kind.tz is None else "Z")
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            item, of_item = _exact(kind.value_type)
            exact, convert = pa.list_(item), lambda cells: [of_item(cell) for cell in cells]
        case pa.MapType():
            (name, of_name), (item, of_item) = _exact(kind.key_type), _exact(kind.item_type)
            exact, convert = pa.map_(name, item), lambda cells: {of_name(key): of_item(cell) for key, cell in cells.items()}
        case pa.StructType():
            members = [(field.name, *_exact(field.type)) for field in kind]
            exact = pa.struct([(name, member) for name, member, _ in members])
            convert = lambda cells: {name: of_member(cells[name]) for name, _, of_member in members}  # noqa: E731 - as its neighbours
        case _ if pa.types.is_floating(kind) and kind.bit_width < 64:
            exact, convert = pa.string(), float
        case _ if pa.types.is_date32(kind):
            exact, convert = pa.int32(), partial(_instant_at, "D", "")
    return exact, lambda cell: None if cell is None else convert(cell)


def to_json(cell: Any) -> str:
    """Write what `plain` returns as JSON; decimals are numbers with all their digits, which json.dumps cannot write."""
    try:
        return json.dumps(cell, ensure_ascii=False)
    except TypeError:
        if isinstance(cell, Mapping):
            return "{" + ", ".join(f"{to_json(name)}: {to_json(item)}" for name, item in cell.items()) + "}"
        return f"[{', '.join(map(to_json, cell))}]" if isinstance(cell, list) else f"{cell:f}"


def show_json(cells: Sequence[Mapping[str, Any]]) -> None:
    lines = (UNPRINTABLE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", to_json(cell)) for cell in cells)
    sys.stdout.write("[" + ",\n ".join(lines) + "]\n")


def show_csv(columns: Sequence[str], cells: Sequence[Mapping[str, Any]]) -> None:
    """RFC 4180 with a header line; null is empty, lists and structs are JSON. A terminal gets text escaped, a program as it is."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    clean = visible if sys.stdout.isatty() else lambda text: text.encode("utf-8", "backslashreplace").decode()
    if columns:
        writer.writerow([clean(column) for column in columns])
    writer.writerows([clean(_text(cell[column])) for column in columns] for cell in cells)


def show_table(columns: Sequence[str], cells: Sequence[Mapping[str, Any]]) -> None:
    """For people: numbers to the right, nothing interpreted as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not columns:
        sys.stdout.write("no rows\n")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        is_number = any(isinstance(cell[column], int | float | Decimal) for cell in cells)
        table.add_column(Text(visible(column)), justify="right" if is_number else "left", overflow="fold")
    for cell in cells:
        table.add_row(*(Text(visible(_text(cell[column]))) for column in columns))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE).print(table)


def _text(cell: Any) -> str:
    return cell or "" if cell is None or isinstance(cell, str) else to_json(cell)


def _plain_scalar(value: Any) -> bool | int | float | Decimal | str | None:
    plain_value: bool | int | float | Decimal | str | None
    match value:
        case None | bool() | int() | str() | Decimal():
            plain_value = value
        case float():
            plain_value = _number(value)
        case bytes() | bytearray() | memoryview():
            plain_value = bytes(value).decode("utf-8", "backslashreplace")
        case datetime():
            plain_value = _instant(value)
        case _:
            plain_value = str(value)
    return plain_value


def _number(value: float) -> float | str:
    """JSON has no words for these, and null would be taken for a missing value."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _instant(value: datetime) -> str | None:
    if str(value) == "NaT":  # pandas' missing instant is a datetime
        return None
    return value.isoformat() if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _same(cell: Any) -> Any:
    return cell


def _instant_at(unit: str, zone: str, count: int) -> date | datetime | str:
    """The date or instant so many units since 1970."""
    if abs(count) == (INFINITE_DAYS if unit == "D" else INFINITE):  # as DuckDB counts it
        return "infinity" if count > 0 else "-infinity"
    with suppress(OverflowError):
        if unit == "D":
            return (EPOCH + timedelta(days=count)).date()
        micros, rest = divmod(count * 1_000_000, UNITS[unit])
        if not rest:
            return from_micros(micros) if zone else from_micros(micros).replace(tzinfo=None)
    import numpy as np

    text = str(np.datetime64(count, unit)).removesuffix(".000000").removesuffix(".000")  # type: ignore[call-overload]
    year, month, day = text.rsplit("-", 2)
    return f"{int(year):0{5 if int(year) < 0 else 4}d}-{month}-{day}{zone}"
