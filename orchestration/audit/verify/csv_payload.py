"""CSV payloads: a line is a row. A quote stands around a whole value or nowhere; inside, it is written twice."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from silver.spec import PayloadFormat

LONGEST_HEADER = 65_536
"""Letters that the header of a file may have; conf may list more columns."""
LEAST_VISIBLE = 0x20

Row = dict[str, str | None]


def row_reader(shape: PayloadFormat) -> Callable[[str, str | None], Row | None]:
    """Return a function that reads a line, given the header of its file, to values by column; None if values and names do not match."""
    split = _splitter(shape)

    @lru_cache(maxsize=1024)
    def names_of(header: str | None) -> Sequence[str | None] | None:
        names = split(header or "") if shape.has_header else None
        if not shape.columns:
            is_clear = names is not None and not any(names.count(field) > 1 for field in shape.fields)
            return names if names and len(header or "") <= LONGEST_HEADER and is_clear else None
        # Bronze puts a separator before a header that does not name the numbers of its rows.
        is_numbered = names is not None and names[0] is None and len(names) - 1 == len(shape.columns)
        return [*[None] * is_numbered, *shape.columns]

    def read(line: str, header: str | None) -> Row | None:
        if (
            not line.strip(" \t\r\ufeff") or line == header or line.startswith(shape.comment)
        ):  # bronze says of a further header that it is its own
            return {}
        cells, names = split(line.removeprefix("\ufeff").rstrip(" ")), names_of(header)
        if cells is None or names is None:
            return None
        if shape.ragged and not any(cells[len(names) :]):
            cells = [*cells[: len(names)], *[None] * (len(names) - len(cells))]
        if len(cells) != len(names):
            return None
        row = {name: cell for name, cell in zip(names, cells, strict=True) if name is not None}
        # The line with the names may come again.
        return {} if row.get(shape.header_field) == shape.header_field else row

    return read


def _splitter(shape: PayloadFormat) -> Callable[[str], list[str | None] | None]:
    """Return a function that splits a line into values, None for an empty value; None for a blank line or a quote out of place."""
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
