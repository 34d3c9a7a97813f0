"""Lines of CSV to rows: a line end within quotes ends no row. Pure.

Lines are joined only where that makes one whole row of as many values as there are names: a quote that nothing closes, such as the sign of
an inch, spoils no other line.
"""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.csv_rows import values_of
from silver.spec import PayloadFormat

MOST_LINES = 100
"""Lines of one row."""
IsRow = Callable[[bytes, bool], bool]


def row_test(shape: PayloadFormat, names: int) -> IsRow:
    """Return a function that tells whether bytes begin a quoted value and do not end it; or, if they should be whole, are one row. `names`:
    how many columns have one."""
    quote, separator = re.escape(shape.quote), re.escape(shape.separator)
    is_open = re.compile(rf"(?:\A|{separator}|\ufeff)\s*{quote}(?:[^{quote}]|{quote}{quote})*\Z")

    def is_row(content: bytes, is_whole: bool) -> bool:
        text = content.decode(shape.encoding, "replace")
        if not is_whole:
            return is_open.search(text) is not None
        count = len(values_of(text, shape) or ())
        return 0 < count <= names if shape.ragged else count == names > 0

    return is_row


def joined_rows(rows: pa.BinaryArray, quote: bytes, end: bytes, is_row: IsRow) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Rows, and the last lines, which later ones may close. `end`: the line end."""
    odd = np.flatnonzero(pc.bit_wise_and(pc.count_substring(rows, quote), 1)).tolist()
    parts, begin, at = list[pa.BinaryArray](), 0, 0
    while at < len(odd):
        first, at = odd[at], at + 1
        if not is_row(rows[first].as_py(), False):
            continue
        if at == len(odd):
            if len(rows) - first < MOST_LINES:
                return pa.concat_arrays([*parts, rows[begin:first]]), rows[first:]
        elif odd[at] - first < MOST_LINES and is_row(whole := end.join(rows[first : odd[at] + 1].to_pylist()), True):
            parts += [rows[begin:first], pa.array([whole], pa.binary())]
            begin, at = odd[at] + 1, at + 1
    return pa.concat_arrays([*parts, rows[begin:]]), rows[:0]
