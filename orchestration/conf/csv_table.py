"""A stranger's CSV as a table: what stands above, between and below its rows, the names of its columns, and the settings for all that."""

import csv
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
import pyarrow as pa

from expectations.wording import counted
from orchestration.conf.vocabulary import WORDS
from orchestration.errors import ConfError
from silver.csv_rows import LONGEST_HEADER, MEASURED, is_numbered
from silver.quoted_rows import joined_rows, row_test
from silver.spec import Origin, PayloadFormat, Time

SNIFF = "select Delimiter, Quote, len(Columns) from sniff_csv(?, ignore_errors = true, null_padding = true)"
"""Only separator and quote: it takes a decimal comma for a separator, and a line of data for a header."""
SPREADSHEET = re.compile(r"\ufeff?\"?sep=.\"?", re.IGNORECASE)
ABOUT_FILE = re.compile('#|"?TOA5"?,')
"""How a line begins that tells about the file, also that of a Campbell logger."""
STATES = ('"$RT_', "$RT_")
"""How rows begin by which WinCC says that it was started or stopped."""
FOOTER, MOST_FOOTERS = re.compile(r"""["']?[^\W\d_]{2,}[^;,\t|\d"']*"""), 5
NO_NAME = "a name that no header has"


@dataclass(frozen=True)
class CsvTable:
    """`names`: of columns, each once and as conf can hold them. `rows`: their cells, as many as names or blank ones more. `units`: by name,
    from a line below the header. `settings`: as sources.yml writes them."""

    names: list[str]
    rows: list[list[str]]
    units: dict[str, str]
    settings: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True)
class _Layout:
    """Lines of a file: `above` its header, the `header` itself, if it has one, lines `between` it and the rows, and the rows."""

    above: list[str]
    header: str | None
    between: list[str]
    rows: list[str]


def csv_table(file: Path, lines: list[str]) -> CsvTable:
    """Read the first lines of a file; ConfError where it has one column, or nobody knows which names are of what."""
    shape = _dialect(file, [line for line in lines if line.strip() and not ABOUT_FILE.match(line)])
    layout = _layout(lines, shape)
    names, notes = _names(layout, shape), list[str]()
    shape = replace(shape, comment=_comments(layout, shape))
    rows = [line for line in layout.rows if line.strip() and not line.startswith(shape.comment)]
    if not rows:
        raise ConfError(f"{file} has no row with a cell that is a number or a time; name a file of readings")
    test, encoded = row_test(shape, len(names)), pa.array([row.encode() for row in rows], pa.binary())
    rows = [row.decode() for row in pa.concat_arrays(joined_rows(encoded, shape.quote.encode(), b"\n", test)).to_pylist()]
    cells, is_numbers = cells_of(rows, shape), layout.header is not None and is_numbered(layout.header, rows, shape)
    width = Counter(map(len, cells)).most_common(1)[0][0]
    named = [names, *(row for row in cells if len(row) == len(names))]
    least = max(n + 1 for row in named for n, cell in enumerate(row) if cell.strip() or n == 0)
    is_ragged = not is_numbers and _is_ragged(cells, names, least)
    if is_numbers:
        notes.append("the header has one name fewer than the rows have values: the first value is taken for a row number and not read")
    elif is_ragged:
        notes.append("some rows lack values at their end, or have empty ones more: see ragged in sources.yml")
    elif len(names) < width:
        raise ConfError(
            f"{file} has rows with {width} values below a header with {counted(len(names), 'name')}, and no row numbers: is there a"
            " decimal comma, or a new column? Correct the header, or write the file with another separator"
        )
    whole = [row[is_numbers:] + [""] * (least - len(row)) for row in cells if is_ragged or len(row) == len(names) + is_numbers]
    if odd := len(cells) - len(whole):
        notes.append(f"another number of values in {odd} of {counted(len(cells), 'row')}; such events go to silver.quarantine")
    notes += _said(layout, shape)
    clean = _distinct(names)
    settings = _settings(layout, shape, clean, least) | ({"ragged": True} if is_ragged else {})
    return CsvTable(clean[:least], whole, _units(layout, shape, clean), settings, notes)


def cells_of(lines: list[str], shape: PayloadFormat) -> list[list[str]]:
    """The values of rows; a row may be several lines."""
    try:
        dialect: dict[str, Any] = {"delimiter": shape.separator, "quotechar": shape.quote, "skipinitialspace": True}
        return [next(csv.reader(line.splitlines(keepends=True), **dialect), []) for line in lines]
    except csv.Error:  # a value beyond the limit of the csv module
        return [[line] for line in lines]


def _dialect(file: Path, lines: list[str]) -> PayloadFormat:
    """Let DuckDB sniff the separator and the quote; ConfError where there is one column only."""
    with NamedTemporaryFile(suffix=".csv") as copy, duckdb.connect() as store:
        copy.write("\n".join([*lines, ""]).encode())
        copy.flush()
        try:
            sniffed = store.execute(SNIFF, [copy.name]).fetchone()
        except duckdb.Error:
            sniffed = None
    often = next((mark for mark in ";\t|," if 2 * sum(mark in line for line in lines) > len(lines)), None)
    if (sniffed is None or sniffed[2] < 2) and often is None:
        raise ConfError(f"{file} is neither JSON lines nor CSV with several columns; name a file of one of the two")
    # A comma may be a decimal comma.
    is_sniffed = sniffed is not None and sniffed[2] > 1 and not (sniffed[0] == "," and often)
    separator = str(sniffed[0]) if sniffed and is_sniffed else often or ","
    quote = "'" if sniffed and sniffed[1] == "'" else '"'
    return PayloadFormat("csv", Origin(constant="x"), Time(NO_NAME), has_header=True, separator=separator, quote=quote)


def _layout(lines: list[str], shape: PayloadFormat) -> _Layout:
    """The header is the fullest of the lines above the first row with as many values as most, or with one fewer."""
    cells = [[cell.strip() for cell in row] for row in cells_of(lines, shape)]
    may_be = [n for n, row in enumerate(cells) if len(row) > 1 and not ABOUT_FILE.match(lines[n]) and not SPREADSHEET.fullmatch(lines[n])]
    measured = [n for n in may_be if any(map(_is_measured, cells[n]))]
    width = Counter(len(cells[n]) for n in measured or may_be).most_common(1)[0][0] if may_be else 0
    of_width = _first_run([n for n in measured if len(cells[n]) == width])
    least = max((at + 1 for n in of_width for at, cell in enumerate(cells[n]) if cell), default=0)
    first = of_width[0] if of_width else len(lines)
    names = []
    for n in range(first - 1, -1, -1):
        if n in may_be and n not in measured:
            names.append(n)
        elif not ABOUT_FILE.match(lines[n]):
            break
    full = [n for n in names if len(cells[n]) >= least] or [n for n in names if len(cells[n]) == least - 1]
    if not full:
        return _Layout(lines[:first], None, [], lines[first:])
    header = max(full, key=lambda n: (sum(map(bool, cells[n])), -n))
    first = next((n for n in measured if n > header), len(lines))
    return _Layout(lines[:header], lines[header], [line for line in lines[header + 1 : first] if line.strip()], lines[first:])


def _first_run(numbers: list[int]) -> list[int]:
    """The first numbers that follow each other, if they are three or no longer run is there."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    least = min(3, max(map(len, runs), default=0))
    return next((run for run in runs if len(run) >= least), [])


def _is_measured(cell: str) -> bool:
    """Whether a cell holds a number or a time, and so is no name of a column."""
    return cell[:1] in "+-.,0123456789" and MEASURED.fullmatch(cell) is not None


def _names(layout: _Layout, shape: PayloadFormat) -> list[str]:
    """Names of the header; with those of the line above it where they are not each once, or it has none for the first column.
    Else those of a comment, or numbers."""
    above = [line for line in layout.above if line.strip()]
    if layout.header is None:
        width = Counter(map(len, cells_of(layout.rows, shape))).most_common(1)[0][0] if layout.rows else 0
        commented = cells_of([above[-1].lstrip("# ")], shape)[0] if above and above[-1].startswith("#") else []
        return [name.strip() for name in commented] if len(commented) == width else [f"c{n + 1}" for n in range(width)]
    names = [name.strip() for name in cells_of([layout.header], shape)[0]]
    upper = [name.strip() for name in cells_of(above[-1:], shape)[0]] if above else []
    is_half = upper[:1] == [""] and sum(map(bool, upper)) > 1
    if (len(set(names)) < len(names) or is_half) and 1 < len(upper) <= len(names):
        names = [f"{word} {name}".strip() for word, name in zip_longest(upper, names, fillvalue="")]
    return names


def _comments(layout: _Layout, shape: PayloadFormat) -> tuple[str, ...]:
    """Beginnings of lines that are no rows: comments, states, and words that begin one of the last lines and no other."""
    marks = [mark for mark in ("#", *STATES) if any(line.startswith(mark) for line in (*layout.above, *layout.rows))]
    rows = [line for line in layout.rows if line.strip() and not line.startswith(tuple(marks))]
    cells = cells_of(rows, shape)
    column = next(
        (n for n in range(len(cells[0]) if cells else 0) if 2 * sum(_is_measured(row[n].strip()) for row in cells if row[n:]) > len(rows)),
        None,
    )
    if column is not None:
        for line, row in reversed([*zip(rows, cells, strict=True)][-MOST_FOOTERS:]):
            match = FOOTER.match(line)
            if match is None or _is_measured("".join(row[column : column + 1]).strip()):
                break
            if sum(other.startswith(match[0]) for other in rows) <= MOST_FOOTERS:
                marks.append(match[0].rstrip())
    return tuple(dict.fromkeys(marks))


def _is_ragged(cells: list[list[str]], names: list[str], least: int) -> bool:
    """Whether rows differ in blanks alone, or lack what is blank elsewhere too or never a number: else values may be shifted."""
    odd, whole = [row for row in cells if len(row) != len(names)], [row for row in cells if len(row) >= least]
    values = [[row[n].strip() for row in whole] for n in range(least)]
    may_lack = ["" in column or not any(map(_is_measured, column)) for column in values]
    return bool(odd and whole) and all(not any(row[len(names) :]) and all(may_lack[len(row) :]) for row in odd)


def _settings(layout: _Layout, shape: PayloadFormat, names: list[str], least: int) -> dict[str, Any]:
    header = layout.header
    in_file = [] if header is None else [name.strip() for name in cells_of([header], shape)[0]]
    is_in_file = names[1:least] == in_file[1:least] and in_file[:1] in (names[:1], [""])
    preamble = [n for n, line in enumerate(layout.above) if line.strip() and line[0] != "#" and not SPREADSHEET.fullmatch(line)]
    settings: dict[str, Any] = {"header": header is not None}
    if header is None or not is_in_file or len(header) > LONGEST_HEADER:
        settings["columns"] = names
    settings |= {"separator": shape.separator, "quote": shape.quote}
    if preamble:
        settings["skip_lines"] = preamble[-1] + 1
    return settings | ({"comment": list(shape.comment)} if shape.comment else {})


def _units(layout: _Layout, shape: PayloadFormat, names: list[str]) -> dict[str, str]:
    """Units by name, where most words of a line below the header are some."""
    cells = [[cell.strip().strip("[]") for cell in row] for row in cells_of(layout.between, shape)]
    usual = {unit.lower() for both in WORDS["units"].items() for unit in both} | set(WORDS["more units"])
    for row in (row for row in cells if len(row) == len(names)):
        units = {name: cell for name, cell in zip(names, row, strict=True) if cell}
        if 2 * sum(unit.lower() in usual for unit in units.values()) >= max(len(units) - 2, 1):
            return units
    return {}


def _said(layout: _Layout, shape: PayloadFormat) -> list[str]:
    said = []
    if layout.header is None and _names(layout, shape)[:1] == ["c1"]:
        said.append("no header was found: the columns are numbered; give them their names")
    if above := [line for line in layout.above if line.strip() and not SPREADSHEET.fullmatch(line)]:
        what = "before the rows" if layout.header is None else "before the header"
        said.append(f"{counted(len(above), 'line')} {what}, such as {above[0][:60]}: events without measurements")
    if layout.between:
        what = f"between the header and the rows, such as {layout.between[0]}: events without measurements"
        said.append(f"{counted(len(layout.between), 'line')} {what}")
    if shape.comment:
        said.append(f"lines that begin with {' or '.join(shape.comment)} are taken for no rows: see comment in sources.yml")
    return said


def _distinct(names: list[str]) -> list[str]:
    """Names that conf can hold, each once."""
    clean = ["".join(c for c in name if c.isprintable()).strip() or f"c{at + 1}" for at, name in enumerate(names)]
    return [name if clean.index(name) == at else f"{name}_{at + 1}" for at, name in enumerate(clean)]
