"""The names of columns in a stranger's CSV: from its header, from a comment above its rows, or numbers."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

from expectations.wording import counted
from orchestration.conf.instants import time_format_of
from orchestration.conf.vocabulary import is_number
from orchestration.errors import ConfError
from silver.csv_rows import above_rows, is_numbered
from silver.spec import PayloadFormat


def header_of(
    file: Path, above: list[str], lines: list[str], shape: PayloadFormat, *, is_sniffed: bool
) -> tuple[list[str], list[str], list[str]]:
    """The names of columns, the lines that are rows, and notes. `above`: lines before these. `is_sniffed`: DuckDB takes the first one for a
    header, as it does with a line of data where times or quotes change below it. ConfError where nobody knows which names are of what."""
    header, *rows = cells_of(lines, shape)
    width = Counter(map(len, rows or [header])).most_common(1)[0][0]
    names = [name.strip() for name in header]
    names = names[:width] if not any(names[width:]) else names
    is_filled = any(any(map(str.strip, row[len(names) :])) for row in rows if len(row) == width)
    if is_sniffed and len(names) <= width and not any(map(_is_measured, header)):
        units, notes = [lines[n + 1] for n in above_rows(lines[1:], shape)], list[str]()
        if units:
            what = f"between the header and the rows, such as {units[0]}: events without measurements"
            notes.append(f"{counted(len(units), 'line')} {what}")
        rest = lines[len(units) + 1 :]
        if len(names) < width and not is_filled:
            names += [f"c{n + 1}" for n in range(len(names), width)]
            notes.append(f"rows end with a {shape.separator} that the header lacks: columns name all values")
        elif len(names) < width and is_numbered(lines[0], rest, shape):
            notes.append("the header has one name fewer than the rows have values: the first value is taken for a row number and not read")
        elif len(names) < width:
            raise ConfError(
                f"{file} has rows with {width} values below a header with {counted(len(names), 'name')}, and no row numbers: is there a"
                " decimal comma, or a new column? Correct the header, or write the file with another separator"
            )
        return names, rest, notes
    commented = [name.strip() for name in cells_of([above[-1].lstrip("# ")], shape)[0]] if above and above[-1].startswith("#") else []
    if len(commented) == width:
        return commented, lines, []
    return [f"c{n + 1}" for n in range(width)], lines, ["no header was found: the columns are numbered; give them their names"]


def _is_measured(cell: str) -> bool:
    """Whether a cell holds a number or a time, and so is no name of a column."""
    return cell.strip() != "" and (is_number(cell) or time_format_of([cell]) is not None)


def cells_of(lines: list[str], shape: PayloadFormat) -> list[list[str]]:
    """Read line by line, since bronze does: a line end inside quotes ends the row."""
    try:
        dialect: dict[str, Any] = {"delimiter": shape.separator, "quotechar": shape.quote, "skipinitialspace": True}
        return [next(csv.reader([line], **dialect)) for line in lines]
    except csv.Error:  # a value beyond the limit of the csv module
        return [[line] for line in lines]
