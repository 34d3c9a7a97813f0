"""Values that are written out, and names of types."""

import re

from orchestration.query.fast.reader import Reader
from orchestration.query.fast.syntax import Interval, Literal
from orchestration.query.fast.telling import differs

SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
MICROS = {unit: seconds * 1_000_000 for unit, seconds in SECONDS.items()} | {"millisecond": 1_000, "microsecond": 1}
MONTHS = {"year": 12, "month": 1}
TYPES = {"integer": "int", "long": "bigint", "dec": "decimal", "numeric": "decimal"}
LARGEST = {"int": 2**31, "bigint": 2**63}


def string(reader: Reader) -> Literal:
    """Strings beside each other are one."""
    at, text = reader.next.at, reader.string()
    while reader.next.kind in {"string", "raw"}:
        text += reader.string()
    return Literal("string", text, text, at)


def number(reader: Reader, at: int, sign: str = "") -> Literal:
    """Whole ones are int, or bigint where they are too large; those with a point are decimal, with an exponent double."""
    text = reader.move().text
    digits, suffix = re.fullmatch(r"(.*?)(BD|[LDbdl]*)", text, re.IGNORECASE).groups()  # type: ignore[union-attr]
    is_whole = digits.isdigit()
    if suffix.upper() == "BD" or (suffix == "" and not is_whole and "e" not in digits.lower()):
        return _decimal(sign + digits, at)
    if suffix.upper() == "D" or (suffix == "" and not is_whole):
        return Literal("double", float(sign + digits), "", at)
    value = int(sign + digits) if is_whole else 2**63
    for kind in ("bigint",) if suffix else LARGEST:
        if -LARGEST[kind] <= value < LARGEST[kind]:
            return Literal(kind, value, str(value), at)
    raise differs(f"the number {text}", at)


def _decimal(text: str, at: int) -> Literal:
    if "e" in text.lower():
        raise differs(f"the number {text}", at, "write it without an exponent")
    whole, _, fraction = text.lstrip("-").partition(".")
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if precision > 38:
        raise differs(f"the number {text}", at)
    value = f"{'-' if text.startswith('-') else ''}{whole or '0'}{'.' if fraction else ''}{fraction}"
    return Literal(f"decimal({precision},{len(fraction)})", value, value, at)


def interval(reader: Reader) -> Interval:
    """Such as interval 1 hour 30 minutes, interval '1' day."""
    at, months, micros = reader.move().at, 0, 0
    if reader.next.kind in {"string", "raw"} and reader.after().word.rstrip("s") not in MICROS | MONTHS:
        parts = re.findall(r"(\S+)\s+(\S+)", reader.string())
    else:
        parts = []
        while reader.next.kind in {"string", "number"} or (reader.comes("-") and reader.after().kind == "number"):
            sign = "-" if reader.take("-") else ""
            count = reader.string() if reader.next.kind == "string" else reader.move().text
            parts.append((sign + count, reader.move().text))
    for count, plural in parts:
        unit = plural.lower().removesuffix("s")
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", count) or unit not in MICROS | MONTHS:
            raise differs(f"an interval of {count} {plural}", at, "write whole numbers of weeks, days, hours, minutes, seconds")
        months += int(count) * MONTHS.get(unit, 0)
        micros += int(count) * MICROS.get(unit, 0)
    if not parts or (months and micros):
        raise differs("this interval", at, "write one such as interval 1 hour")
    return Interval(months, micros, at)


def type_name(reader: Reader) -> str:
    """A type without elements; decimals with their digits."""
    name = reader.name().lower()
    name = TYPES.get(name, name)
    if name == "decimal":
        digits, scale = (10, 0)
        if reader.take("("):
            digits, scale = reader.number(), reader.number() if reader.take(",") else 0
            reader.need(")")
        return f"decimal({digits},{scale})"
    return name
