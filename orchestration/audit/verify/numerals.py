"""Numbers as devices write them: decimal digits, perhaps a sign, a point, an exponent; nothing here raises."""

import math
import re
from decimal import Decimal

# Written so that no text, however long, makes the search go back over it.
DECIMAL = re.compile(r"[\x00-\x20]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[\x00-\x20]*")
MARKED = re.compile(r"([+-]?)(.*?)([eE][+-]?[0-9]+)?", re.DOTALL)
DIGITS_AND_MARKS = set("0123456789.,' \u00a0\u202f")
NO_NUMBER = "a mark out of place"
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


def with_point(text: str, decimal: str, thousands: str | None) -> str:
    """A number with these marks as one with a point, other texts as they are; one with a mark elsewhere as a text that is no number."""
    if decimal == "." and thousands is None:
        return text
    match = MARKED.fullmatch(text.strip(BLANKS))
    sign, digits, exponent = match.groups("") if match else ("", text, "")
    whole, mark, fraction = digits.partition(decimal)
    marks = "[ \u00a0\u202f]" if thousands == " " else re.escape(thousands or decimal)
    first, *groups = re.split(marks, whole) if thousands else [whole]
    is_grouped = first.isdigit() and len(first) <= 3 and all(len(group) == 3 and group.isdigit() for group in groups)
    is_whole = is_grouped if groups else first.isdigit() or (first == "" and mark and fraction)
    is_plain = not set(f"{whole}{fraction}") - DIGITS_AND_MARKS
    if is_plain and is_whole and (fraction.isdigit() or not fraction):
        return f"{sign}{first}{''.join(groups)}.{fraction}{exponent}"
    return NO_NUMBER if re.search(rf"[.,]|[0-9](?:{marks})[0-9]", text) else text


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
