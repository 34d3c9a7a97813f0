"""Numbers as devices write them: texts to doubles, of Arrow; nothing here raises."""

import math
import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CONTROLS = "".join(map(chr, range(0x21)))
"""Blanks around a number: a space and all below it."""
DECIMAL = r"\A[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"
BLANK_MARKS = "[ \u00a0\u202f]"
"""A blank between digits, and its narrow and unbreakable kinds."""
WORDS = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
"""Also NaN, for the rules to turn away. In any case of letters."""
SIGNED_NAN = ("+NaN", "-NaN")


def to_numbers(texts: pa.Array) -> pa.Array:
    """Doubles; null where a text is no decimal number, NaN or an infinity. Hexadecimals and `1d` are none."""
    trimmed = pc.utf8_trim(texts, CONTROLS)
    decimals = pc.if_else(pc.match_substring_regex(trimmed, DECIMAL), trimmed, None).cast(pa.float64())
    if decimals.null_count == texts.null_count:
        return decimals
    return pc.coalesce(decimals, _words(trimmed))


def with_points(texts: pa.Array, decimal: str, thousands: str | None) -> pa.Array:
    """Numbers as `1.015,3` to `1015.3`; null for a number with a mark out of place, which may mean anything. Other texts stay."""
    if (decimal, thousands) == (".", None):
        return texts
    mark, group = re.escape(decimal), BLANK_MARKS if thousands == " " else re.escape(thousands or decimal)
    grouped = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|" if thousands else ""
    number = rf"\A[+-]?(?:(?:{grouped}[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?\z"
    trimmed = pc.utf8_trim(texts, CONTROLS)
    plain = pc.replace_substring_regex(trimmed, group, "") if thousands else trimmed
    has_mark = pc.match_substring_regex(trimmed, rf"[.,]|[0-9]{group}[0-9]")
    return pc.if_else(
        pc.match_substring_regex(trimmed, number), pc.replace_substring(plain, decimal, "."), pc.if_else(has_mark, None, texts)
    )


def to_numbers_or_switches(texts: pa.Array) -> pa.Array:
    """Also true and false, which many devices send for switches: 1 and 0."""
    numbers = to_numbers(texts)
    if numbers.null_count == texts.null_count:
        return numbers
    return pc.coalesce(numbers, found(pc.ascii_lower(texts), {"true": 1.0, "false": 0.0}))


def of_single(single: float) -> float:
    """Return the double of the fewest digits that is this float of 32 bits: 21.7, as Parquet files are read too, for 21.700000762939453."""
    return float(str(np.float32(single)))


def _words(trimmed: pa.Array) -> pa.Array:
    is_signed_nan = pc.is_in(trimmed, pa.array(SIGNED_NAN))
    return pc.coalesce(found(pc.ascii_lower(trimmed), WORDS | {"nan": math.nan}), pc.if_else(is_signed_nan, math.nan, None))


def found(texts: pa.Array, values: Mapping[str, float]) -> pa.Array:
    """The value of each text; null for others."""
    places = pc.index_in(texts, pa.array(values.keys(), texts.type))
    return pa.array(values.values(), pa.float64()).take(places)
