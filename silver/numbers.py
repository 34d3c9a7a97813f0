"""Numbers as devices write them, and as Java writes them where a number stands for a name. Of Arrow; nothing here raises."""

import math
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

CONTROLS = "".join(map(chr, range(0x21)))
"""Blanks around a number: a space and all below it."""
DECIMAL = r"\A[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"
WORDS = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
"""Also NaN, for the rules to turn away. In any case of letters."""
SIGNED_NAN = ("+NaN", "-NaN")
PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7


def to_numbers(texts: pa.Array) -> pa.Array:
    """Doubles; null where a text is no decimal number, NaN or an infinity. Hexadecimals and `1d` are none."""
    trimmed = pc.utf8_trim(texts, CONTROLS)
    decimals = pc.if_else(pc.match_substring_regex(trimmed, DECIMAL), trimmed, None).cast(pa.float64())
    if decimals.null_count == texts.null_count:
        return decimals
    return pc.coalesce(decimals, _words(trimmed))


def to_numbers_or_switches(texts: pa.Array) -> pa.Array:
    """Also true and false, which many devices send for switches: 1 and 0."""
    numbers = to_numbers(texts)
    if numbers.null_count == texts.null_count:
        return numbers
    return pc.coalesce(numbers, found(pc.ascii_lower(texts), {"true": 1.0, "false": 0.0}))


def as_java_writes(value: float) -> str:
    """A finite JSON number with a fraction or an exponent, as text: 1.50 is `1.5`, 1e7 is `1.0E7`."""
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    sign, (first, *others), exponent = Decimal(repr(value)).normalize().as_tuple()
    return f"{'-' if sign else ''}{first}.{''.join(map(str, others)) or '0'}E{int(exponent) + len(others)}"


def _words(trimmed: pa.Array) -> pa.Array:
    is_signed_nan = pc.is_in(trimmed, pa.array(SIGNED_NAN))
    return pc.coalesce(found(pc.ascii_lower(trimmed), WORDS | {"nan": math.nan}), pc.if_else(is_signed_nan, math.nan, None))


def found(texts: pa.Array, values: Mapping[str, float]) -> pa.Array:
    """The value of each text; null for others."""
    places = pc.index_in(texts, pa.array(values.keys(), texts.type))
    return pa.array(values.values(), pa.float64()).take(places)
