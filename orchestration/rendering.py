"""Rows on stdout, as a table for people or as CSV or JSON for programs; errors on stderr."""

import csv
import json
import math
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from orchestration.errors import describe, exit_code_of
from orchestration.utc import aware

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
    """Convert a value for JSON: instants in ISO 8601 with Z (naive ones are UTC), bytes as text with backslash escapes, NaN and NaT as
    null."""
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
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
    """Python values of a column. Instants outside of the years 1 to 9999, which Python cannot hold, become text."""
    try:
        cells: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        import pyarrow as pa

        cells = column.cast(pa.string()).to_pylist()
    return cells


def show_json(cells: Sequence[Mapping[str, Any]]) -> None:
    lines = (UNPRINTABLE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(cell, ensure_ascii=False)) for cell in cells)
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
        is_number = any(isinstance(cell[column], int | float) for cell in cells)
        table.add_column(Text(visible(column)), justify="right" if is_number else "left", overflow="fold")
    for cell in cells:
        table.add_row(*(Text(visible(_text(cell[column]))) for column in columns))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE).print(table)


def _text(cell: Any) -> str:
    return cell or "" if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)


def _plain_scalar(value: Any) -> bool | int | float | str | None:
    plain_value: bool | int | float | str | None
    match value:
        case None | bool() | int() | str():
            plain_value = value
        case float():
            plain_value = _number(value)
        case Decimal():
            plain_value = int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray() | memoryview():
            plain_value = bytes(value).decode("utf-8", "backslashreplace")
        case datetime():
            plain_value = _instant(value)
        case _:
            plain_value = str(value)
    return plain_value


def _number(value: float) -> float | str | None:
    """JSON has no word for infinity either, but a reader would not take it for a missing value."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _instant(value: datetime) -> str | None:
    if str(value) == "NaT":  # pandas' missing instant is a datetime
        return None
    return aware(value).astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
