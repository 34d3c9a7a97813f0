"""Marks of numbers that are texts, such as a decimal comma and the points of `1.015,3`: which ones a sample has."""

import re
from collections import Counter
from collections.abc import Collection

import pyarrow as pa

from silver.numbers import to_numbers, with_points

MARK = r"([.,' \u00a0\u202f])"
WITH_GROUPS = re.compile(rf"[+-]?\d{{1,3}}{MARK}\d{{3}}(?:(?:\1\d{{3}})*(?!\1)([.,])\d+|(?:\1\d{{3}})+)")
ONE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
"""It may be a fraction as well."""
FRACTION = re.compile(r"[+-]?\d*([.,])\d+(?:[eE][+-]?\d+)?")


def marks_of(texts: Collection[str]) -> tuple[str, str | None]:
    """The decimal mark, and that of thousands if there is one."""
    decimals, thousands, unsure = Counter[str](), Counter[str](), Counter[str]()
    for text in texts:
        if match := WITH_GROUPS.fullmatch(text):
            thousands[match[1] if match[1] in ".,'" else " "] += 1
            decimals.update(match[2] or {".": ",", ",": "."}.get(match[1], ""))
        elif match := ONE_GROUP.fullmatch(text):
            unsure[match[1]] += 1
        elif match := FRACTION.fullmatch(text):
            decimals[match[1]] += 1
    votes = decimals or unsure
    decimal = "," if votes[","] > votes["."] else "."
    other = "." if decimal == "," else ","
    thousands[other] += unsure[other] if decimals else 0
    del thousands[decimal]
    return decimal, max(thousands, key=lambda mark: thousands[mark]) if thousands.total() else None


def with_points_by_text(texts: Collection[str], marks: tuple[str, str | None]) -> dict[str, str]:
    """The texts that are numbers with these marks, as numbers with a point."""
    if marks == (".", None):
        return {}
    written = pa.array(texts, pa.string())
    plain = with_points(written, *marks)
    is_number = to_numbers(plain).is_valid().to_pylist()
    both = zip(texts, plain.to_pylist(), is_number, strict=True)
    return {text: number for text, number, is_read in both if is_read and number != text}
