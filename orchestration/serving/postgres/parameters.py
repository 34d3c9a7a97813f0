"""Parameters of a statement: literals of their type in its text, where the guard reads them as the rest of a query."""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise

import numpy as np

from orchestration.serving.postgres.datatypes import BY_OID, DataType
from orchestration.serving.postgres.rows import EPOCHS, FORMS
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.sql_words import Word
from orchestration.storage.delta import literal as sql_literal

TEXTS, UNKNOWN = {25, 1043, 1042, 19, 18, 3802}, {0, 705}
MAX_DIGITS = 38
"""Digits of DuckDB's longest decimal."""
DATE_IN_ZONE = re.compile(r"^(\d{4}-\d\d-\d\d) [+-]\d\d(:\d\d)?$")
"""How pgjdbc sends a date, whose type it leaves open."""
BEFORE_ARRAY = re.compile(r"\b(any|all)\s*\(\s*$", re.IGNORECASE)
AFTER_ARRAY = re.compile(r"\s*::\s*[\w ]+\[\s*\]")
BLANKS = " \t\n\r\v\f"
"""Blanks that PostgreSQL passes over around the elements of an array; others of Unicode are part of a text."""
IN_ARRAY = re.compile(rf'[{BLANKS}]*(?:"((?:[^"\\]|\\.)*)"|((?:[^"\\{{}},]|\\.)+)|([{{}},]))[{BLANKS}]*', re.DOTALL)
"""An element in quotes, one without, or what separates them."""


@dataclass(frozen=True)
class Query:
    """A statement for DuckDB. `start`: the characters before it in the text it is from; `edits` made that text of the client's.

    An edit is a start and an end in the client's text, and the length of what stands there now.
    """

    text: str
    start: int = 0
    edits: Sequence[tuple[int, int, int]] = ()

    def part(self, start: int, end: int | None = None) -> "Query":
        return Query(self.text[start:end], self.start + start, self.edits)

    def in_place(self, problem: PostgresError) -> PostgresError:
        """Return an error that points into the client's text."""
        if not problem.position:
            return problem
        at, shift = self.start + problem.position - 1, 0
        for start, end, length in self.edits:
            if at < start + shift:
                break
            if at < start + shift + length:
                at = start + shift
                break
            shift += length - (end - start)
        return PostgresError(problem.code, problem.message, problem.hint, at - shift + 1)


def placeholders(listed: Sequence[Word]) -> list[tuple[int, int, int]]:
    """Return start, end and number of each $1."""
    pairs = pairwise(listed)
    return [(a.at, b.at + len(b.text), int(b.text)) for a, b in pairs if a.text == "$" and b.at == a.at + 1 and b.text.isdigit()]


def bound(text: str, listed: Sequence[Word], literals: Sequence[str]) -> Query:
    """Put literals in the places of parameters. `listed`: the words of the text."""
    written, at, edits = [], 0, []
    for start, end, number in placeholders(listed):
        if not 0 < number <= len(literals):
            raise PostgresError("08P01", f"there is no parameter ${number}", position=start + 1)
        value = literals[number - 1]
        if value.startswith("'{") and (BEFORE_ARRAY.search(text[:start]) or AFTER_ARRAY.match(text, end)):
            value = f"[{', '.join(array_literals(value[1:-1].replace(chr(39) * 2, chr(39))))}]"
        edits.append((start, end, len(value)))
        written += [text[at:start], value]
        at = end
    return Query("".join([*written, text[at:]]), 0, edits)


def literal(oid: int, is_binary: bool, value: bytes | None) -> str:
    """Write a parameter as DuckDB's SQL. One without a type is a text, which takes the type that it meets. PostgresError."""
    data_type = BY_OID.get(oid)
    if data_type is None and oid not in TEXTS | UNKNOWN:
        raise PostgresError("42704", f"parameters of the type {oid} are not known here", "Cast the parameter to text.")
    is_text = data_type is None or data_type.name == "text"
    if value is None:
        return "null" if is_text else f"cast(null as {data_type.sql if data_type else ''})"
    if is_binary and data_type and not is_text:
        return _of_binary(value, data_type)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise PostgresError("22021", 'invalid byte sequence for encoding "UTF8"') from None
    if "\0" in text:
        raise PostgresError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return sql_literal(DATE_IN_ZONE.sub(r"\1", text)) if is_text or data_type is None else _of_text(text, data_type)


def array_literals(text: str, element: DataType | None = None) -> list[str]:
    """Write the elements of an array, {a,"b c",NULL}, as literals; without a type they are texts. PostgresError."""
    literals, at, is_closed, before = list[str](), 0, False, ","
    while match := IN_ARRAY.match(text, at):
        plain, separator = match[2], match[3]
        is_first = at == 0
        if is_closed or is_first != (separator == "{") or (separator is None and before == "value"):
            break
        if separator in {",", "}"} and before == "," and (separator == "," or literals):
            break
        if separator is None:
            is_null = plain is not None and plain.strip(BLANKS).lower() == "null"
            value = re.sub(r"\\(.)", r"\1", match[1] if plain is None else plain.strip(BLANKS), flags=re.DOTALL)
            literals.append("null" if is_null else sql_literal(value) if element is None else _of_text(value, element))
        is_closed, before, at = separator == "}", "value" if separator is None else ",", match.end()
    if not is_closed or at < len(text):
        is_nested = text.count("{") > 1
        raise PostgresError(*(("0A000", "arrays of one dimension only") if is_nested else ("22P02", f"malformed array literal: {text!r}")))
    return literals


def _of_text(text: str, data_type: DataType) -> str:
    if data_type.element:
        return f"cast([{', '.join(array_literals(text, data_type.element))}] as {data_type.sql})"
    if data_type.name == "numeric":
        return _number(text)
    if data_type.name == "bytea":
        try:
            return f"unhex('{bytes.fromhex(text.removeprefix(chr(92) + 'x')).hex()}')"
        except ValueError:
            raise PostgresError("22P02", f"invalid input for type bytea: {text!r}", r"Write \x and hexadecimal digits.") from None
    text = DATE_IN_ZONE.sub(r"\1", text) if data_type.name == "date" else text
    return f"cast({sql_literal(text)} as {data_type.sql})"


def _number(text: str) -> str:
    """Write a numeric with its own digits; those that no decimal of DuckDB holds are doubles."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise PostgresError("22P02", f"invalid input syntax for type numeric: {text!r}") from None
    digits = f"{number:f}".lstrip("-").replace(".", "").lstrip("0") if number.is_finite() else "0" * (MAX_DIGITS + 1)
    scale = max(0, -int(number.as_tuple().exponent)) if number.is_finite() else 0
    if max(len(digits), scale) > MAX_DIGITS:
        return f"cast('{number}' as double)"
    return f"cast('{number:f}' as decimal({max(len(digits), scale, 1)}, {scale}))"


def _of_binary(value: bytes, data_type: DataType) -> str:
    try:
        if data_type.element:
            return f"cast([{', '.join(_elements(value, data_type.element))}] as {data_type.sql})"
        if data_type.name in FORMS:
            return _of_fixed(value, data_type)
        if data_type.name == "numeric":
            return _number(_digits(value))
        if data_type.name == "bytea":
            return f"unhex('{value.hex()}')"
        if data_type.name == "interval":
            micros, days, months = struct.unpack("!qii", value)
            return f"(to_months({months}) + to_days({days}) + to_microseconds({micros}))"
        return f"cast({sql_literal(value.hex() if data_type.name == 'uuid' else value.decode())} as {data_type.sql})"
    except (struct.error, ValueError, IndexError) as error:
        raise PostgresError("22P03", f"incorrect binary data format: {data_type.name} of {len(value)} bytes: {error}") from None


def _of_fixed(value: bytes, data_type: DataType) -> str:
    form = np.dtype(FORMS[data_type.name])
    if form.kind == "i" and data_type.name.startswith("int") and len(value) in {2, 4, 8}:  # some clients send a shorter or longer one
        form = np.dtype(f">i{len(value)}")
    if len(value) != form.itemsize:
        raise ValueError(f"{form.itemsize} are expected")
    number = np.frombuffer(value, form)[0].item()
    if data_type.name == "time":
        minutes, micros = divmod(number, 60_000_000)
        return f"cast('{minutes // 60:02}:{minutes % 60:02}:{micros // 1_000_000:02}.{micros % 1_000_000:06}' as time)"
    if data_type.name not in EPOCHS:
        return f"cast('{bool(number) if data_type.name == 'bool' else number}' as {data_type.sql})"
    last = np.iinfo(form).max
    if number in {last, -last - 1}:
        return f"cast('{'-' * (number < 0)}infinity' as {data_type.sql})"
    return f"make_{data_type.name}({number + EPOCHS[data_type.name]})"


def _digits(value: bytes) -> str:
    count, weight, sign, scale, *digits = struct.unpack(f"!hhHH{(len(value) - 8) // 2}h", value)
    if sign not in {0, 0x4000}:
        return {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}.get(sign, "")
    if count != len(digits) or scale > 16383:
        raise ValueError(f"{count} digits are expected")
    whole = "".join(f"{digit:04}" for digit in digits).ljust((weight + 1) * 4, "0") if weight >= 0 else ""
    part = "0" * (-weight - 1) * 4 + "".join(f"{digit:04}" for digit in digits) if weight < 0 else whole[(weight + 1) * 4 :]
    return f"{'-' * (sign == 0x4000)}{whole[: (weight + 1) * 4] if weight >= 0 else '0'}.{part[:scale].ljust(scale, '0')}"


def _elements(value: bytes, element: DataType) -> list[str]:
    dimensions, _, _ = struct.unpack_from("!iii", value)
    if dimensions > 1:
        raise PostgresError("0A000", "arrays of one dimension only")
    at, literals = 20, []
    for _ in range(struct.unpack_from("!i", value, 12)[0] if dimensions else 0):
        (length,) = struct.unpack_from("!i", value, at)
        content = value[at + 4 : at + 4 + length] if length >= 0 else None
        if content is not None and len(content) < length:
            raise ValueError("it ends too early")
        literals.append(literal(element.oid, True, content))
        at += 4 + max(length, 0)
    return literals
