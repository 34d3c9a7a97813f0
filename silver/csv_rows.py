"""CSV payloads to rows: one line is one row; names come from the header of its own file, or from conf where there is none.

A quote stands around a whole value or nowhere; inside, it is written twice. Arrow splits the lines. A line with a quote or a separator
inside a value is split by Python: measured, 16 times slower.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.records import Rows, one_an_event
from silver.spec import PayloadFormat

LONGEST_HEADER = 65_536
"""Letters of a header that is trusted to be one; below a longer one a line is unreadable until conf lists the columns."""
BLANK = " \t\r\ufeff"
MOST_HEADERS = 30
MEASURED = re.compile(r"[+-]?[.,]?\d[\d.,]*(e[+-]?\d+)?|.*(\d[-/.]\d+[-/.]\d|\d:\d\d).*", re.IGNORECASE)
"""A cell that holds a number, or a date or a time of day."""
CELLS = pa.list_(pa.string())


def csv_rows(lines: pa.Array, headers: pa.Array, shape: PayloadFormat) -> Rows:
    """Rows of lines, each beside the header of its file; null is unreadable: a row has as many values as its file has names, unless
    `ragged` lets it end earlier, or with blanks. A blank line, a comment, a header that comes again, and a line that is its own header
    hold nothing."""
    cells = _cells(lines, shape)
    count = pc.list_value_length(cells).to_numpy(zero_copy_only=False)  # NaN for none, which is equal to nothing
    starts, values = cells.offsets.to_numpy()[:-1], cells.values
    filled = _filled(cells) if shape.ragged else count
    first = np.full(len(lines), -1)
    places = {field: np.full(len(lines), -1) for field in shape.fields}
    for names, is_of in _headers(headers, shape):
        is_whole = is_of & ((filled <= len(names)) if shape.ragged else (count == len(names)))
        first[is_whole] = starts[is_whole]
        for field in places.keys() & set(names):
            at = names.index(field)
            places[field][is_whole & (count > at) if shape.ragged else is_whole] = at
    is_readable = (first >= 0) | pc.fill_null(pc.equal(pc.utf8_trim(lines, BLANK), ""), False).to_numpy(zero_copy_only=False)

    def column(field: str) -> pa.Array:
        at = places[field]
        return values.take(pa.array(first + at, mask=~((first >= 0) & (at >= 0))))

    is_own = pc.fill_null(pc.equal(lines, headers), False)  # as bronze says of lines of units and the like
    for mark in shape.comment:
        is_own = pc.or_(is_own, pc.fill_null(pc.starts_with(lines, mark), False))
    is_header = pc.or_(is_own, pc.fill_null(pc.equal(column(shape.header_field), shape.header_field), False))
    is_readable |= is_own.to_numpy(zero_copy_only=False)
    first[is_header.to_numpy(zero_copy_only=False)] = -1
    return one_an_event(column, pa.array(is_readable))


def is_numbered(header: str, rows: Sequence[str], shape: PayloadFormat) -> bool:
    """Whether rows begin with a number that the header of their file does not name, as R writes them: the first row and most of the others,
    up to a header that comes again. The numbers are 0, 1, 2 .. or 1, 2, 3 .., or names in quotes below a header in quotes: a decimal comma
    and a new column make rows longer too. A row that ends blank has no number, but a separator at its end."""
    rows = [*takewhile(lambda row: row != header, rows)]
    if not rows or (shape.quote not in header + rows[0] and rows[0].count(shape.separator) <= header.count(shape.separator)):
        return False  # as nearly always
    rows = rows[: next(iter(headers_among(pa.array(rows), header, shape)), None)]
    names, *of_rows = _cells(pa.array([header, *rows], pa.string()), shape).to_pylist()
    if names is None or len(shape.columns) not in (0, len(names)):
        return False
    firsts = {n: row[0] for n, row in enumerate(of_rows) if row and len(row) == len(names) + 1 and row[-1] is not None}
    if 0 not in firsts or 2 * len(firsts) <= len(rows):
        return False
    if all(row.startswith(shape.quote) for row in (header, *(rows[n] for n in firsts))):
        is_all_quoted = rows[0].count(shape.quote) >= 2 * len(of_rows[0])
        return len(set(firsts.values())) == len(firsts) and not is_all_quoted
    return len(firsts) > 1 and any(all(first == str(n + start) for n, first in firsts.items()) for start in (0, 1))


def above_rows(lines: Sequence[str], shape: PayloadFormat) -> list[int]:
    """Which of the lines below the header of a file stand above its rows, such as titles, names, units and kinds of sampling of a logger.

    Up to the first line with several cells of which one is a number or a time, if there is one. Comments and blank lines are no rows."""
    above = list[int]()
    for n, line in enumerate(lines[: MOST_HEADERS + 1]):
        cells = [] if line.startswith(("#", *shape.comment)) or shape.separator not in line else line.split(shape.separator)
        if any(MEASURED.fullmatch(cell.strip(f"{BLANK}{shape.quote}")) for cell in cells):
            return above
        above += [n] * bool(line.strip(BLANK))
    return []


def headers_among(lines: pa.Array, header: str, shape: PayloadFormat) -> list[int]:
    """Which lines name columns, as the header of their file does. They have the name of the time where the header has it, or anywhere
    beside the name of another field that is read."""
    time, others, names = shape.header_field, {*shape.fields} - {shape.header_field}, values_of(header, shape) or []
    at = names.index(time) if time in names else len(names)
    may_be = np.flatnonzero(pc.match_substring_regex(lines, rf"(?:\A|\W){re.escape(time)}(?:\W|\z)"))
    cells = zip(may_be.tolist(), _cells(lines.take(pa.array(may_be)), shape).to_pylist(), strict=True)
    return [n for n, line in cells if line and time in line and (line[at : at + 1] == [time] or others & {*line})]


def twice_named(header: str, shape: PayloadFormat) -> list[str]:
    """The fields that are read and that a header names more than once: nobody knows which column is meant."""
    names = values_of(header, shape) or []
    return [field for field in shape.fields if names.count(field) > 1]


def _headers(headers: pa.Array, shape: PayloadFormat) -> Iterator[tuple[list[str | None], np.ndarray]]:
    """Names of columns, and which lines they are of. A header that names a field twice names nothing, a row number has no name."""
    encoded = pc.fill_null(headers, "").dictionary_encode()
    indices, count = encoded.indices.to_numpy(), len(shape.columns)
    is_short = pc.less_equal(pc.utf8_length(encoded.dictionary), LONGEST_HEADER).to_pylist()
    for index, names in enumerate(_cells(encoded.dictionary, shape).to_pylist()):
        if shape.columns:
            has_number = shape.has_header and names is not None and len(names) == count + 1 and names[0] is None
            yield [*[None] * has_number, *shape.columns], indices == index
        elif names is not None and is_short[index] and all(names.count(field) < 2 for field in shape.fields):
            yield names, indices == index


def values_of(line: str, shape: PayloadFormat) -> list[str | None] | None:
    """The values of one line; None for a blank line or a quote out of place."""
    values: list[str | None] | None = _cells(pa.array([line]), shape)[0].as_py()
    return values


def _cells(lines: pa.Array, shape: PayloadFormat) -> pa.ListArray:
    """The values of each line, null where one is empty; null for a blank line or a quote out of place."""
    bare = pc.utf8_rtrim(pc.replace_substring_regex(lines, r"\A\x{FEFF}", ""), " ")
    is_whole = pc.match_substring_regex(bare, _whole_values(shape))
    split = pc.split_pattern(pc.if_else(pc.and_(is_whole, pc.not_equal(bare, "")), bare, None), shape.separator)
    values = _without_quotes(pc.utf8_trim(split.values, _blanks(shape)), shape.quote)
    cells = pa.ListArray.from_arrays(split.offsets, pc.if_else(pc.equal(values, ""), None, values), mask=split.is_null())
    if pc.all(is_whole).as_py():
        return cells
    is_other = pc.invert(is_whole)
    others = pa.array((_split(line, shape) for line in bare.filter(is_other).to_pylist()), CELLS)
    # Behind the others, each line takes its own from there.
    at = is_other.fill_null(False).to_numpy(zero_copy_only=False)
    places = np.where(at, len(cells) + np.cumsum(at) - 1, np.arange(len(cells)))
    return pa.concat_arrays([cells, others]).take(pa.array(places))


def _filled(cells: pa.ListArray) -> np.ndarray:
    """How many values each line has up to its last one that is not blank; NaN for a line without values."""
    rows, places = pc.list_parent_indices(cells).to_numpy(), pc.list_value_length(cells)
    starts = np.concatenate([[0], np.cumsum(pc.fill_null(places, 0).to_numpy())])
    is_filled = pc.list_flatten(cells).is_valid().to_numpy(zero_copy_only=False)
    filled = np.where(places.is_valid().to_numpy(zero_copy_only=False), 0.0, np.nan)
    np.maximum.at(filled, rows[is_filled], (np.arange(len(rows)) - starts[rows] + 1.0)[is_filled])
    return filled


def _whole_values(shape: PayloadFormat) -> str:
    """The pattern of a line whose every separator stands between two values, and every quote around one."""
    quote, separator, blank = (f"[{''.join(map(re.escape, letters))}]" for letters in (shape.quote, shape.separator, _blanks(shape)))
    other = f"[^{quote[1:-1]}{separator[1:-1]}]*"
    value = f"(?:{other}|{blank}*{quote}{other}{quote}{blank}*)"
    return rf"\A{value}(?:{separator}{value})*\z"


def _without_quotes(values: pa.Array, quote: str) -> pa.Array:
    is_quoted = pc.starts_with(values, quote)
    return pc.if_else(is_quoted, pc.utf8_slice_codeunits(values, 1, -1), values) if pc.any(is_quoted).as_py() else values


def _split(line: str, shape: PayloadFormat) -> list[str | None] | None:
    """A line with quotes: every second piece between them is inside, and an empty one outside, between two others, is a quote inside."""
    quote, (first, *pieces) = shape.quote, line.split(shape.quote)
    if len(pieces) % 2:
        return None
    inside: list[str] = []
    outside, goes_on = [first], False
    for n in range(0, len(pieces), 2):
        text, after = pieces[n : n + 2]
        if goes_on:
            inside[-1] += quote + text
        else:
            inside.append(text)
        goes_on = after == "" and n + 2 < len(pieces)
        if not goes_on:
            outside.append(after)
    cells = [cell.strip(_blanks(shape)) for cell in quote.join(outside).split(shape.separator)]
    if any(quote in cell and cell != quote for cell in cells):
        return None
    quoted = iter(inside)
    return [(next(quoted) if cell == quote else cell) or None for cell in cells]


def _blanks(shape: PayloadFormat) -> str:
    """Return the characters that may stand around a value: a space and all below it."""
    return "".join(chr(n) for n in range(0x21) if chr(n) != shape.separator)
