"""CSV payloads: one line is one row; names come from the header of its own file, or from conf where there is none."""

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from silver.spec import PayloadFormat

MAX_COLUMNS = 64
"""Columns of a file with a header that conf does not list; a wider line is unreadable until conf lists its columns."""


def csv_event(events: DataFrame, text: Column, shape: PayloadFormat) -> DataFrame:
    """Adds `field`, a struct of the declared columns as text, and `is_readable`: as many values as names.

    A header may have one name fewer than the rows have values: the first value is then a row number without a name, as R writes it.
    A row with one value too many that ends blank is not taken for one of these, but for one with a separator at its end.
    """
    known = shape.columns
    width = len(known) or MAX_COLUMNS
    names = F.array(*(F.lit(name) for name in known)) if known else _cells(F.col("header"), shape, width)
    count_of_names = F.lit(len(known)) if known else _count(F.col("header"), shape)
    line = F.rtrim(F.regexp_replace(text, "^\ufeff", ""))
    split_up = events.select(
        *events.columns,
        _cells(line, shape, width + 1).alias("cells"),
        names.alias("names"),
        count_of_names.alias("count_of_names"),
        (_count(line, shape) - count_of_names).alias("unnamed"),
    )
    has_row_number = (F.col("unnamed") == 1) & (F.coalesce(F.get("cells", F.col("count_of_names")), F.lit("")) != "")
    is_whole = (F.col("count_of_names") <= width) & ((F.col("unnamed") == 0) | (has_row_number if shape.has_header else F.lit(False)))
    # One row in, one row out: the generator keeps filters above it, which would otherwise split each line a second time.
    rows = split_up.select("*", F.explode(F.array(F.coalesce(is_whole, F.lit(False)))).alias("is_readable"))
    cells = [_cell(name).alias(name) for name in shape.fields]
    return rows.withColumn("field", F.when(F.col("is_readable"), F.struct(*cells))).drop("cells", "names", "count_of_names", "unnamed")


def _cell(name: str) -> Column:
    place = F.array_position("names", F.lit(name))
    return F.when(place > 0, F.get("cells", (place - 1 + F.col("unnamed")).cast("int")))


def _cells(line: Column, shape: PayloadFormat, width: int) -> Column:
    schema = ", ".join(f"c{n} string" for n in range(width))
    options = {"sep": shape.separator, "quote": shape.quote, "escape": shape.quote}
    row = F.from_csv(line, schema, options | {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"})
    return F.array(*(row[f"c{n}"] for n in range(width)))


def _count(line: Column, shape: PayloadFormat) -> Column:
    """Values on a line; a separator inside quotes does not count. Null for a blank line."""
    quote, separator = "\\" + shape.quote, re.escape(shape.separator)
    blanks = f"[\\x00-\\x20&&[^{separator}]]*"
    # Only quotes around a whole value count; others stay, and make the line unreadable.
    whole = f"(^|{separator}){blanks}{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}{blanks}(?={separator}|\\z)"
    bare = F.regexp_replace(line, whole, "$1")
    separators = F.length(bare) - F.length(F.replace(bare, F.lit(shape.separator), F.lit("")))
    return F.when((F.trim(line) != "") & ~F.contains(bare, F.lit(shape.quote)), separators / len(shape.separator) + 1).cast("int")
