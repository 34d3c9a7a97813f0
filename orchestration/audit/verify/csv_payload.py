"""CSV payloads: a line is a row. A quote stands around a whole value or nowhere; inside, it is written twice."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from silver.spec import PayloadFormat

MOST_NAMES = 64
"""Names that the header of a file may have; conf may list more columns."""
LEAST_VISIBLE = 0x20

Row = dict[str, str | None]


def row_reader(shape: PayloadFormat) -> Callable[[str, str | None], Row | None]:
    """What reads a line, given the header of its file, to values by name of column; None where values and names do not go together."""
    split = _splitter(shape)

    @lru_cache(maxsize=1024)
    def names_of(header: str | None) -> tuple[int, Sequence[str | None]]:
        names = split(header or "")
        return (-1, ()) if names is None else (len(names), names[:MOST_NAMES])

    declared: tuple[int, Sequence[str | None]] = len(shape.columns), shape.columns

    def read(line: str, header: str | None) -> Row | None:
        if not line.strip(" \t\r\ufeff"):
            return {}
        cells = split(line.removeprefix("\ufeff").rstrip(" "))
        count, names = declared if shape.columns else names_of(header)
        if cells is None or len(names) != count:
            return None
        # One name fewer than values: the first value is a row number without a name, unless the row just ends with a separator.
        is_numbered = shape.has_header and len(cells) == count + 1 and cells[-1] is not None
        if len(cells) != count and not is_numbered:
            return None
        # Of a name that is there twice, the first counts.
        row = dict(reversed([(name, cell) for name, cell in zip(names, cells[len(cells) - count :], strict=False) if name is not None]))
        # The line with the names may come again.
        return {} if row.get(shape.time.field) == shape.time.field else row

    return read


def _splitter(shape: PayloadFormat) -> Callable[[str], list[str | None] | None]:
    """What splits a line into values, None where a value is empty; None for a blank line or a quote out of place."""
    separator, quote = re.escape(shape.separator), re.escape(shape.quote)
    blanks = "".join(chr(n) for n in range(LEAST_VISIBLE + 1) if chr(n) != shape.separator)
    around = f"[{re.escape(blanks)}]*+"
    value = re.compile(
        f"(?:{around}{quote}((?:[^{quote}]|{quote}{quote})*+){quote}{around}|([^{separator}{quote}]*+))(?:({separator})|\\Z)", re.DOTALL
    )

    def split(line: str) -> list[str | None] | None:
        if not line.strip(" "):
            return None
        cells: list[str | None] = []
        at, more = 0, True
        while more:
            match = value.match(line, at)
            if match is None:
                return None
            quoted, bare, end = match.groups()
            text = bare.strip(blanks) if quoted is None else quoted.replace(shape.quote * 2, shape.quote)
            cells.append(text or None)
            at, more = match.end(), end is not None
        return cells

    return split
