"""Read rows of a reference by key, from a CSV or from texts that were read elsewhere, with every mistake at once."""

import csv
import io
from collections.abc import Iterable, Sequence

from expectations.wording import hint, quoted
from orchestration.conf.diagnostic import Diagnostic, printable
from orchestration.conf.reference_settings import ReferenceSettings
from orchestration.errors import ConfError

MOST = 10
"""Mistakes of one table, and columns, that are told."""
Key = tuple[str, str]
"""device_id or zone, and its value."""
Rows = dict[Key, dict[str, str]]
"""Attributes by key."""


def csv_rows(name: str, settings: ReferenceSettings) -> Rows:
    """ConfError with a line for each mistake; OSError where the file cannot be read."""
    try:
        reader = csv.reader(io.StringIO(settings.path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        header, line, rows = next(reader, []), reader.line_num + 1, []
        positions = check_columns(name, settings, header, 1)
        for cells in reader:
            if cells and len(cells) != len(header):
                raise _mistake(settings, line, f"has {len(cells)} cells under {len(header)} columns; quote a cell that holds a comma")
            rows += [(line, [cells[position] for position in positions])] if cells else []
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _mistake(settings, error.object[: error.start].count(b"\n") + 1, "is not UTF-8 text; save the file as UTF-8") from None
    except csv.Error as error:
        raise _mistake(settings, reader.line_num, f"is not CSV ({error}); write quotes inside a quoted cell twice") from None
    return keyed_rows(settings, rows)


def check_columns(name: str, settings: ReferenceSettings, columns: Sequence[str], line: int = 0) -> list[int]:
    """Places of the key and of the attributes; ConfError for a column that conf names and the table lacks, or has twice."""
    named = {settings.chosen[0]: settings.key_column} | {
        f"attributes.{attribute}": column for attribute, column in settings.attributes.items()
    }
    for setting, column in named.items():
        if (count := columns.count(column)) != 1:
            remedy = "keep one" if count else hint(column, columns, f"it has {', '.join(map(quoted, columns[:MOST])) or 'none'}")
            raise _mistake(
                settings,
                line,
                f"has {f'{count} columns' if count else 'no column'} {quoted(column)}, which references.{name}.{setting} names; {remedy}",
            )
    return [columns.index(column) for column in named.values()]


def keyed_rows(settings: ReferenceSettings, rows: Iterable[tuple[int, Sequence[str | None]]]) -> Rows:
    """`rows`: the line in the file, from 1, 0 for none; the key and the attributes. Empty cells are no attributes.

    ConfError names rows without a key, and keys that two rows have.
    """
    lines: dict[Key, int] = {}
    said: Rows = {}
    mistakes: list[str] = []
    for line, cells in rows:
        text, *attributes = [cell and cell.strip() for cell in cells]
        key = settings.chosen[0], text or ""
        if not text:
            mistakes.append(
                str(_mistake(settings, line, f"has a row without {quoted(settings.key_column)}; fill it in, or remove the row"))
            )
        elif key in lines:
            before = f", here and in line {lines[key]}" if line else ""
            mistakes.append(
                str(_mistake(settings, line, f"{settings.key_column} is {quoted(text)} in two rows{before}; remove one of them"))
            )
        else:
            lines[key], said[key] = line, {name: cell for name, cell in zip(settings.attributes, attributes, strict=True) if cell}
    if more := mistakes[MOST:]:
        mistakes[MOST:] = [f"{settings.path}: has {len(more):,} more mistakes"]
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return said


def _mistake(settings: ReferenceSettings, line: int, text: str) -> ConfError:
    return ConfError(str(Diagnostic(str(settings.path), line, text)) if line else f"{settings.path}: {printable(text)}")
