"""Rows of a reference: what a CSV, or columns that were read from elsewhere, say of each key; with every mistake at once."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from orchestration.conf.diagnostic import Diagnostic, hint, printable, quoted
from orchestration.conf.reference_settings import ReferenceSettings
from orchestration.errors import ConfError

MOST_MISTAKES = 10
"""Of one file that are told."""
Rows = dict[str, dict[str, str]]
"""Attributes by key."""
Cells = tuple[int, Sequence[str | None]]
"""Line in the file, from 1, 0 for none; the key and then the columns of the attributes."""


def csv_rows(name: str, of: ReferenceSettings) -> Rows:
    """ConfError with a line for each mistake; OSError where the file cannot be read."""
    try:
        text = of.path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfError(f"{of.path}:{line}: is not UTF-8 text: save the file as UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        check_columns(name, of, header, 1)
        if len(set(header)) < len(header):
            raise ConfError(f"{of.path}:1: names a column twice: give each column a name of its own")
        places = [header.index(column) for column in (of.key_column, *of.attributes.values())]
        return keyed_rows(of, _cells(of, reader, len(header), places))
    except csv.Error as error:
        raise ConfError(f"{of.path}:{reader.line_num}: is not CSV ({error}): write quotes inside a quoted cell twice") from None


def check_columns(name: str, of: ReferenceSettings, columns: Sequence[str], line: int = 0) -> None:
    """ConfError for those that conf names and the table lacks."""
    named = {of.chosen[0]: of.key_column} | {f"attributes.{attribute}": column for attribute, column in of.attributes.items()}
    it_has = f"it has {', '.join(map(quoted, columns[:MOST_MISTAKES])) or 'none'}"
    mistakes = [
        f"has no column {quoted(column)}, which references.{name}.{setting} names; {hint(column, columns, it_has)}"
        for setting, column in named.items()
        if column not in columns
    ]
    if mistakes:
        raise ConfError("\n".join(_at(of, line, text) for text in mistakes))


def keyed_rows(of: ReferenceSettings, rows: Iterable[Cells]) -> Rows:
    """Empty cells are no attributes. ConfError names rows without a key, and keys of which there are two."""
    lines: dict[str, int] = {}
    said: Rows = {}
    mistakes: list[str] = []
    for line, (key, *cells) in rows:
        if not key:
            mistakes.append(_at(of, line, f"has a row without {quoted(of.key_column)}; fill it in, or remove the row"))
        elif key in said:
            before = f" and in line {lines[key]}" if line else ""
            mistakes.append(_at(of, line, f"{of.key_column} is {quoted(key)} in two rows, here{before}; remove one of them"))
        else:
            lines[key] = line
            said[key] = {name: cell for name, cell in zip(of.attributes, cells, strict=True) if cell}
    if mistakes:
        more = len(mistakes) - MOST_MISTAKES
        raise ConfError("\n".join([*mistakes[:MOST_MISTAKES], *([f"{of.path}: has {more:,} more mistakes"] if more > 0 else [])]))
    return said


def _cells(of: ReferenceSettings, reader: Any, width: int, places: Sequence[int]) -> Iterator[Cells]:
    line = reader.line_num + 1
    for cells in reader:
        if cells and len(cells) != width:
            raise ConfError(_at(of, line, f"has {len(cells)} cells under {width} columns; quote a cell that holds a comma"))
        if cells:
            yield line, [cells[place].strip() for place in places]
        line = reader.line_num + 1


def _at(of: ReferenceSettings, line: int, text: str) -> str:
    return str(Diagnostic(str(of.path), line, text)) if line else f"{of.path}: {printable(text)}"
