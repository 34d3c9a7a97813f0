"""Avro payloads by Apache's own reader: records are objects, enums texts, bytes base64 and decimals the nearest doubles.

No other logical type counts: Apache's reader would make instants of numbers.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from io import BytesIO
from math import inf
from struct import error as StructError
from typing import Any

from avro.errors import AvroException
from avro.io import BinaryDecoder, DatumReader
from avro.name import Names
from avro.schema import FixedSchema, Schema, make_avsc_object

BROKEN = (AvroException, ValueError, IndexError, TypeError, StructError)
OF_DECIMAL = {"logicalType", "precision", "scale"}
MEANINGLESS = {"default", "aliases", "doc", "order"}
"""To who reads what this very schema wrote. With a default, an enum would take a symbol that it does not have."""


@cache
def avro_reader(texts: Sequence[str]) -> Callable[[bytes], Any]:
    """What reads whole payloads of the last schema; raises one of BROKEN."""
    names = Names()
    *_, schema = [make_avsc_object(_plain(json.loads(text)), names) for text in texts]
    reader = _Reader(schema)

    def read(payload: bytes) -> Any:
        content = BytesIO(payload)
        value = reader.read(_Decoder(content))
        if content.tell() != len(payload):
            raise ValueError("more bytes than the schema asks for")
        return value

    return read


def _plain(schema: Any) -> Any:
    """Without what makes Apache's reader read anything but what was written."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    is_decimal = schema.get("logicalType") == "decimal" and schema.get("type") in ("bytes", "fixed")
    if isinstance(schema.get("type"), dict | list) and "name" not in schema:
        return _plain(schema["type"])
    left_out = MEANINGLESS if is_decimal else MEANINGLESS | OF_DECIMAL
    nested = ("type", "items", "values", "fields")
    plain = {key: _plain(value) if key in nested else value for key, value in schema.items() if key not in left_out}
    return plain | ({"scale": schema.get("scale", 0)} if is_decimal else {})


class _Decoder(BinaryDecoder):
    def read_bytes(self) -> Any:
        return b64encode(self.read(self.read_long())).decode()

    def read_utf8(self) -> str:
        return self.read(self.read_long()).decode("utf-8")

    def read_decimal_from_fixed(self, precision: int, scale: int, size: int) -> Any:
        try:
            return float(Fraction(int.from_bytes(self.read(size), signed=True), 10**scale))
        except OverflowError:
            return inf


class _Reader(DatumReader):
    def read_fixed(self, writers_schema: FixedSchema, readers_schema: Schema, decoder: BinaryDecoder) -> Any:
        return b64encode(decoder.read(writers_schema.size)).decode()

    def read_union(self, writers_schema: Any, readers_schema: Any, decoder: BinaryDecoder) -> Any:
        branch = decoder.read_long()
        if not 0 <= branch < len(writers_schema.schemas):
            raise ValueError("no branch of the union")
        schema = writers_schema.schemas[branch]
        return self.read_data(schema, schema, decoder)
