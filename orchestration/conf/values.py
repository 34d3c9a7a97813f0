"""Kinds of values that settings have: type, bounds and, where a pattern decides, the hint for who wrote something else.

A setting is declared once, as a field of a pydantic dataclass that inherits from `Setting`. Readers of YAML, checks, the JSON Schemas of
editors and conf/README.md all follow from that declaration.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass as plain_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from orchestration.conf.diagnostic import hint, quoted
from orchestration.conf.place import absolute
from orchestration.utc import from_iso

MAX_SECONDS = 2_147_483_647
CONFIG = ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True, use_attribute_docstrings=True)
T = TypeVar("T")


@dataclass(frozen=True, config=CONFIG)
class Setting:
    """A mapping of YAML with a fixed set of keys. The context of a validation is the conf folder; Python has none, and may pass values."""

    one_of: ClassVar[tuple[str, ...]] = ()
    """Of these exactly one is set."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Which of `one_of` is set."""
        return tuple(key for key in self.one_of if getattr(self, key))

    @model_validator(mode="before")
    @classmethod
    def _check_some(cls, written: Any) -> Any:
        """As many keys as its schema asks for."""
        bounds = cls.__pydantic_config__.get("json_schema_extra", {})  # type: ignore[attr-defined]
        if isinstance(written, dict) and len(written) < bounds.get("minProperties", 0):
            raise PydanticCustomError("too_short", "set one")
        return written

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if self.one_of and len(self.chosen) != 1:
            none = f"sets none of {', '.join(self.one_of)}; set one"
            said = f"sets {' and '.join(self.chosen)}; keep one of them" if self.chosen else none
            raise PydanticCustomError("unreadable", "{problem}", {"problem": said})
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        """2.0 is a whole number, as it is for editors."""
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def changed(self, **changes: Any) -> Self:
        """A copy with other values. `dataclasses.replace` would set what was left out, to what nobody may write."""
        return type(self)(**{name: value for name, value in vars(self).items() if value not in (None, (), {})} | changes)


class _NotNull:
    """Absent is None, but null is a mistake: who writes `unit:` and nothing behind it has forgotten something."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"{source} is no T | None")
        inner: CoreSchema = schema["schema"]
        return inner


@plain_dataclass(frozen=True)
class OfText:
    """Behind the type of what is written as a text. `read` makes the value of it and of the conf folder; ValueError says what is wrong.

    `text`: the type of the text; None for Text.
    """

    read: Callable[[Path, str], Any]
    text: Any = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler.generate_schema(self.text or Text))

    def _read(self, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        if not isinstance(value, str) and info.context is None:
            return value
        text = handler(value)
        try:
            return self.read(info.context or Path("conf"), text)
        except ValueError as error:
            raise PydanticCustomError("unreadable", "{problem}", {"problem": str(error)}) from None


def of_pattern(pattern: str | None, hint: str, max_length: int | None, min_length: int | None = None) -> Any:
    """What comes behind `str` in the type of a text of that pattern."""
    return Field(
        strict=True, min_length=min_length, max_length=max_length, pattern=pattern, json_schema_extra={"patternErrorMessage": hint}
    )


def _each_once(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(map(str, items))) < len(items):
        raise PydanticCustomError("twice", "names an item twice")
    return items


def instant(text: str) -> datetime:
    """In ISO 8601, UTC where it names no zone; ValueError says what is wrong."""
    try:
        return from_iso(text)
    except ValueError:
        raise ValueError(f"is {quoted(text)}, which is no instant; write one in ISO 8601, such as 2026-01-05T00:00:00Z") from None


def expression(_: Path, text: str) -> str:
    """ValueError where it is no regular expression."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is {quoted(text)}, which is no regular expression ({error}); correct it") from None
    return text


def _starting(_: Path, text: str) -> datetime | str:
    try:
        return text if text in ENDS else instant(text)
    except ValueError:
        remedy = hint(text, ENDS, "write earliest, latest or an instant such as 2026-01-05T00:00:00Z")
        raise ValueError(f"is {quoted(text)}; {remedy}") from None


ENDS = ("earliest", "latest")
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
Text = Annotated[str, of_pattern(_VISIBLE, PLAIN, 1000, 1)]
Identifier = Annotated[str, of_pattern("^[a-z][a-z0-9_]*$", _LOWER_CASE, 64)]
Instant = Annotated[datetime, OfText(lambda _, text: instant(text))]
Starting = Annotated[datetime | Literal["earliest", "latest"], OfText(_starting)]
Expression = Annotated[str, OfText(expression)]
AbsolutePath = Annotated[Path, OfText(absolute)]
WrittenPath = Annotated[str, OfText(lambda folder, text: text if absolute(folder, text) else "")]
"""One that can be resolved, and is not yet."""
Key = Annotated[str, of_pattern(_VISIBLE, PLAIN, 200, 1)]
