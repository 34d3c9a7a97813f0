"""Times that are numbers since a day: texts to microseconds since 1970 in UTC; None where a text is no instant before the year 10000."""

import math
from collections.abc import Callable
from datetime import date, timedelta

from orchestration.audit.verify.numerals import BLANKS, number, rounded

MICROS, YEAR_10000 = 1_000_000, 253_402_300_800_000_000
YEAR_1601 = (date(1601, 1, 1) - date(1970, 1, 1)) // timedelta(microseconds=1)
MICROS_PER = {"epoch_s": MICROS, "epoch_ms": 1_000, "epoch_us": 1}
PER_MICRO = {"epoch_ns": (1_000, 0), "filetime": (10, YEAR_1601)}
"""Units in a microsecond, and the microsecond that they are counted from."""

Instant = tuple[int, bool]
"""Microseconds since 1970, and False where the local time is there twice or never, and nobody chose."""
Reader = Callable[[str], Instant | None]


def epoch_reader(micros_per_unit: int) -> Reader:
    """Return a reader of units since 1970, to the nearest microsecond."""

    def read(text: str) -> Instant | None:
        amount = number(text)
        micros = None if amount is None else rounded(amount * float(micros_per_unit))
        return (micros, True) if micros is not None and 0 <= micros < YEAR_10000 else None

    return read


def fine_reader(per_micro: int, zero: int) -> Reader:
    """Return a reader of units below a microsecond since `zero`, whose last digits are cut off; with an exponent as a float holds them."""

    def read(text: str) -> Instant | None:
        digits, _, fraction = text.strip(BLANKS).partition(".")
        if "e" in text.lower():
            amount = number(text)
            micros = math.floor(amount / per_micro) if amount is not None and math.isfinite(amount) else -1
        else:
            is_whole = digits.isascii() and digits.isdigit() and not fraction.strip("0123456789")
            micros = int(digits) // per_micro if is_whole and len(digits) <= 18 + len(str(per_micro - 1)) else -1
        return (micros + zero, True) if 0 <= micros < YEAR_10000 - zero else None

    return read
