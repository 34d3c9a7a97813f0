"""Numbers as devices write them: decimal digits, perhaps a sign, a point, an exponent; nothing here raises."""

import math
import re
from decimal import Decimal

# Written so that no text, however long, makes the search go back over it.
DECIMAL = re.compile(r"[\x00-\x20]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[\x00-\x20]*")
NOT_FINITE = {
    "nan": math.nan,
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
BLANKS = "".join(map(chr, range(0x21)))
SWITCH = {"true": 1.0, "false": 0.0}


def number(text: str) -> float | None:
    """The number that a text is; also NaN and the infinities, for the rules to turn away. Hexadecimals and `1d` are none."""
    match = DECIMAL.fullmatch(text)
    if match is not None:
        return float(match[1])
    word = text.strip(BLANKS)
    return math.nan if word in {"+NaN", "-NaN"} else NOT_FINITE.get(word.lower())


def number_or_switch(text: str) -> float | None:
    """Also true and false, which many devices send for switches: 1 and 0."""
    amount = number(text)
    return SWITCH.get(text.lower()) if amount is None else amount


def rounded(amount: float) -> int | None:
    """To the nearest whole number, a half away from zero; None for what is not finite."""
    if not math.isfinite(amount):
        return None
    below = math.floor(abs(amount))
    nearest = below + (abs(amount) - below >= 0.5)
    return -nearest if amount < 0 else nearest


def as_java_writes(value: float) -> str:
    """The text of a finite JSON number with a fraction or an exponent where a name is expected: 1.50 is `1.5`, 1e7 is `1.0E7`."""
    is_plain = value == 0 or 1e-3 <= abs(value) < 1e7
    digits, _, exponent = format(Decimal(repr(value)), "f" if is_plain else "e").partition("e")
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}" + (f"E{int(exponent)}" if exponent else "")
