"""Decoders as conf names them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from silver.spec import BINARY, PayloadFormat


class Step(NamedTuple):
    """A decoder of conf. `arguments`: by name, without the field that it works on."""

    name: str
    field: str | None
    arguments: Mapping[str, Any]


def steps_of(shape: PayloadFormat) -> list[Step]:
    """The decoders of a source; without `decode` its format, if that is one."""
    return list(map(step_of, shape.decode or ([shape.format] if shape.format in BINARY else ())))


def step_of(written: str | Mapping[str, Any]) -> Step:
    """A decoder as conf writes it: its name, its name with a field, or with its arguments."""
    if isinstance(written, str):
        return Step(written, None, {})
    ((name, arguments),) = written.items()
    if not isinstance(arguments, Mapping):
        return Step(name, arguments, {})
    return Step(name, arguments.get("field"), {key: value for key, value in arguments.items() if key != "field"})
