"""Schemas of Avro: texts to what readers need, and their fields. Refused is what no reader could bound or read to its end."""

import json
import warnings
from collections.abc import Sequence
from typing import Any

from avro.errors import AvroException, IgnoredLogicalType
from avro.name import Names
from avro.schema import Schema, make_avsc_object

from orchestration.conf.schema_members import Member, SchemaError


def avro_schemas(texts: Sequence[str]) -> Schema:
    """The last of these schemas, those that it needs before it; SchemaError where readers could not use it."""
    names = Names()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredLogicalType)
            *_, schema = [make_avsc_object(json.loads(text), names) for text in texts]
    except json.JSONDecodeError as error:
        raise SchemaError(f"is no JSON ({error}); write an Avro schema") from None
    except (AvroException, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise SchemaError(f"is no Avro schema ({error}); correct it") from None
    _least_bytes(schema, ())
    return schema


def fingerprint(text: str) -> str:
    """The fingerprint that a single object names its schema by, in hexadecimal digits."""
    digest: bytes = make_avsc_object(_without_logical(json.loads(text)), Names()).fingerprint("CRC-64-AVRO")
    return digest.hex()


def _without_logical(schema: Any) -> Any:
    """Drop logical types, as the canonical form does; the library avro keeps the object of a logical type there (measured)."""
    if isinstance(schema, list):
        return [_without_logical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_logical(value) for key, value in schema.items() if key not in ("logicalType", "precision", "scale", "default")}


def avro_members(schema: Any) -> Member:
    """Its fields. Null in a union says only that a field may be absent."""
    if schema.type == "union":
        branches = [branch for branch in schema.schemas if branch.type != "null"]
        return avro_members(branches[0]) if len(branches) == 1 else Member("any")
    if schema.type in ("record", "error"):
        return Member("object", lambda: {field.name: avro_members(field.type) for field in schema.fields})
    if schema.type == "array":
        return Member("list", avro_members(schema.items).members)
    if schema.type == "map":
        return Member("map", lambda: {"": avro_members(schema.values)})
    return Member("value", logical=_logical(schema))


def _logical(schema: Any) -> str | None:
    name: str | None = schema.other_props.get("logicalType") or getattr(schema, "logical_type", None)
    return name


def _least_bytes(schema: Any, outer: tuple[Any, ...]) -> int:
    """The fewest bytes that a value takes. SchemaError for a schema that holds itself, and for a list of which a few bytes could claim
    any number of elements."""
    if any(schema is one for one in outer):
        raise SchemaError("is recursive, so its depth has no limit; write one that is not")
    outer = (*outer, schema)
    match schema.type:
        case "record" | "error":
            return sum(_least_bytes(field.type, outer) for field in schema.fields)
        case "union":
            return 1 + min((_least_bytes(branch, outer) for branch in schema.schemas), default=0)
        case "array":
            if not _least_bytes(schema.items, outer):
                raise SchemaError("has a list whose elements are empty (0 bytes); give them a field")
            return 1
        case "map":
            _least_bytes(schema.values, outer)
            return 1
        case "null":
            return 0
    _check_decimal(schema)
    return {"float": 4, "double": 8, "fixed": getattr(schema, "size", 0)}.get(schema.type, 1)


def _check_decimal(schema: Any) -> None:
    if _logical(schema) == "decimal":
        precision, scale = schema.get_prop("precision"), schema.get_prop("scale") or 0
        if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 1000 and precision):
            raise SchemaError("has a decimal without a precision from 1 to 1000, and a scale within it; correct it")
