"""CSV as rows of fields: separator, quote and header are found by what makes the rows alike."""

import csv
from collections import Counter
from pathlib import Path

from orchestration.conf.instants import time_format_of
from orchestration.conf.sample import Row, Sample
from orchestration.errors import ConfError

SEPARATORS = (";", "\t", "|", ",")
"""Where two serve equally well the comma loses: it may be a decimal comma."""
MAX_COLUMNS_BY_HEADER = 64
"""The silver layer reads wider rows only with their columns in conf."""


def csv_sample(file: Path, lines: list[str]) -> Sample:
    """Raises ConfError where no separator gives rows of equal width."""
    separator, quote, rows = _split(file, lines)
    width = Counter(len(row) for row in rows[1:] or rows).most_common(1)[0][0]
    has_header = _is_header(rows, width)
    names = [name.strip() for name in rows[0]] if has_header else [f"c{n + 1}" for n in range(width)]
    usable = _distinct(names)
    is_said = not has_header or usable != names or len(names) > MAX_COLUMNS_BY_HEADER
    body = [row for row in rows[1 if has_header else 0 :] if len(row) == width]
    return Sample(
        file,
        "csv",
        [_named(usable, row) for row in body],
        has_header=has_header,
        columns=tuple(usable) if is_said else (),
        separator=separator,
        quote=quote,
        notes=_notes(names, width, len(rows) - has_header - len(body), has_header),
    )


def _split(file: Path, lines: list[str]) -> tuple[str, str, list[list[str]]]:
    tried: list[tuple[int, str, str, list[list[str]]]] = []
    for separator in SEPARATORS:
        for quote in ('"', "'"):
            rows = list(_rows(lines, separator, quote))
            width, count = Counter(len(row) for row in rows).most_common(1)[0]
            # A quote is right where it takes signs away that would otherwise stay in the values.
            clean = sum(not cell.startswith(("'", '"')) for row in rows for cell in row) / sum(len(row) for row in rows)
            tried.append((round(1000 * count / len(rows) * clean) if width > 1 else 0, separator, quote, rows))
    score, separator, quote, rows = max(tried, key=lambda each: each[0])
    if score == 0:
        raise ConfError(f"{file} is neither JSON lines nor CSV with several columns; name a file of one of the two")
    return separator, quote, rows


def _rows(lines: list[str], separator: str, quote: str) -> list[list[str]]:
    """Line by line, as bronze does: a line end inside quotes ends the row."""
    try:
        return [next(csv.reader([line], delimiter=separator, quotechar=quote, skipinitialspace=True)) for line in lines]
    except csv.Error:  # a value beyond the limit of the csv module
        return [[line] for line in lines]


def _is_header(rows: list[list[str]], width: int) -> bool:
    """A first line of texts above columns of numbers or times; it may have one name fewer than the rows have values."""
    first, others = rows[0], [row for row in rows[1:] if len(row) == width]
    if len(first) not in (width, width - 1) or not others:
        return False
    is_of_names = not any(_is_measured([cell]) for cell in first)
    return is_of_names and any(_is_measured([row[at] for row in others]) for at in range(width))


def _is_measured(cells: list[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and (all(is_number(cell) for cell in filled) or time_format_of(filled) is not None)


def is_number(text: str) -> bool:
    """Whether Spark's cast would read it; `nan` and `inf` are no measurements."""
    return text.strip().lower() not in ("nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity") and _has_float(text)


def _has_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _distinct(names: list[str]) -> list[str]:
    """Names that conf can hold, each once."""
    clean = ["".join(c for c in name if c.isprintable() and c != "`").strip() or f"c{at + 1}" for at, name in enumerate(names)]
    return [name if clean.index(name) == at else f"{name}_{at + 1}" for at, name in enumerate(clean)]


def _named(names: list[str], cells: list[str]) -> Row:
    """A header with one name fewer leaves the first value without a name."""
    return {name: cell.strip() for name, cell in zip(names, cells[len(cells) - len(names) :], strict=True) if cell.strip()}


def _notes(names: list[str], width: int, odd: int, has_header: bool) -> list[str]:
    notes = []
    if has_header and len(names) < width:
        notes.append("the header has one name fewer than the rows have values: the first value is taken for a row number and not read")
    if not has_header:
        notes.append("no header was found: the columns are numbered; give them their names")
    if odd:
        notes.append(f"{odd} of the rows have another number of values; such events go to silver.quarantine")
    return notes
