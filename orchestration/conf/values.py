"""Kinds of values that settings have: type, bounds and, where a pattern decides, the hint for who wrote something else.

A setting is declared once, as a field of a pydantic dataclass that inherits from `Setting`. Readers of YAML, checks, the JSON Schemas of
editors and conf/README.md all follow from that declaration.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, PydanticCustomError

PARTIAL: Final = "partial"
"""Context of a validation that keeps what is well formed of a file with mistakes, and reports none."""
MAX_SECONDS = 2_147_483_647
CONFIG = ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True, use_attribute_docstrings=True)
T = TypeVar("T")


def _or_none(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """In a partial validation a value that is wrong is None."""
    try:
        return handler(value)
    except ValidationError:
        if info.context != PARTIAL:
            raise
        return None


@dataclass(frozen=True, config=CONFIG)
class Setting:
    """A mapping of YAML with a fixed set of keys. In a partial one, settings that are wrong or missing though required are None."""

    @model_validator(mode="before")
    @classmethod
    def _read_mapping(cls, written: Any, info: ValidationInfo) -> Any:
        """With as many keys as its schema asks for; a partial one with those that are known and those that are required."""
        known = {field.validation_alias or name: field.is_required() for name, field in cls.__pydantic_fields__.items()}  # type: ignore[attr-defined]
        if info.context == PARTIAL:
            written = written if isinstance(written, dict) else {}
            return {key: written.get(key) for key, is_required in known.items() if key in written or is_required}
        bounds = cls.__pydantic_config__.get("json_schema_extra", {})  # type: ignore[attr-defined]
        if isinstance(written, dict) and written.keys() <= known.keys():  # an unknown key is a mistake of its own
            if len(written) < bounds.get("minProperties", 0):
                raise PydanticCustomError("too_short", "set one")
            if len(written) > bounds.get("maxProperties", len(known)):
                raise PydanticCustomError("too_long", "set only one")
        return written

    @field_validator("*", mode="wrap")
    @classmethod
    def _read(cls, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        """2.0 is a whole number, as it is for editors."""
        return _or_none(int(value) if isinstance(value, float) and value.is_integer() else value, handler, info)


class _NotNull:
    """Absent is None, but null is a mistake: who writes `unit:` and nothing behind it has forgotten something."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"{source} is no T | None")
        inner: CoreSchema = schema["schema"]
        return inner


def of_pattern(pattern: str | None, hint: str, max_length: int | None, min_length: int | None = None) -> Any:
    """What comes behind `str` in the type of a text of that pattern."""
    return Field(
        strict=True, min_length=min_length, max_length=max_length, pattern=pattern, json_schema_extra={"patternErrorMessage": hint}
    )


def _each_once(items: tuple[T, ...], info: ValidationInfo) -> tuple[T, ...]:
    if info.context != PARTIAL and len(set(map(str, items))) < len(items):
        raise PydanticCustomError("twice", "names an item twice")
    return items


def _unless_partial(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """What a badly named entry holds can still be checked."""
    return value if info.context == PARTIAL else handler(value)


def _instant(value: Any) -> Any:
    """An instant in ISO 8601, UTC where it names no zone."""
    if not isinstance(value, str):
        return value
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise PydanticCustomError("instant", "write one in ISO 8601, such as 2026-01-05T00:00:00Z") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


_VISIBLE = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
PLAIN = "write a text without control characters"
_LOWER_CASE = "use lower-case letters, digits and _, a letter first"

OrAbsent = Annotated[T | None, _NotNull()]
Unique = Annotated[tuple[T, ...], AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True})]
UniqueSome = Annotated[tuple[T, ...], Field(min_length=1), AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True})]
Whole = Annotated[int, Field(strict=True)]
Seconds = Annotated[int, Field(strict=True, le=MAX_SECONDS)]
Number = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
PlainText = Annotated[str, Field(strict=True)]
OrNone = WrapValidator(_or_none)
"""Behind the type of the values of a mapping with free keys."""
Text = Annotated[str, of_pattern(_VISIBLE, PLAIN, 1000, 1)]
Identifier = Annotated[str, of_pattern("^[a-z][a-z0-9_]*$", _LOWER_CASE, 64)]
FieldPath = Annotated[str, of_pattern(_VISIBLE.replace("[^", "[^`"), "write the path of a field, without backticks", 1000, 1)]
Instant = Annotated[datetime, Field(strict=True), BeforeValidator(_instant, json_schema_input_type=str)]
Key = Annotated[str, of_pattern(_VISIBLE, PLAIN, 200, 1), WrapValidator(_unless_partial)]
TableKey = Annotated[Identifier, WrapValidator(_unless_partial)]
