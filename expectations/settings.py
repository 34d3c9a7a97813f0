"""How a setting is declared: once, as a field of a pydantic dataclass that inherits from `Setting`, with its type, bounds and meaning.

Readers of YAML, checks, the JSON Schemas of editors and conf/README.md all follow from that declaration.
"""

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import dataclass as plain_dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from expectations.wording import hint, quoted

MAX_SECONDS = 2_147_483_647
CONFIG = ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True, use_attribute_docstrings=True)
NAME = "\0"
"""Key of an entry's name while the entry is validated; no YAML can hold it."""
Step = str | int
"""A key of a mapping, or an index of a list."""
T = TypeVar("T")


class Problem(NamedTuple):
    """A mistake in settings of which each is right by itself. `path` leads from their object to the setting that the sentence is about,
    `below` from there to the line that is at fault. `is_warning`: it is probably a mistake.
    """

    path: tuple[Step, ...]
    text: str
    below: tuple[Step, ...] = ()
    is_warning: bool = False


@dataclass(frozen=True, config=CONFIG)
class Setting:
    """A mapping of YAML with a fixed set of keys. The context of a validation is the conf folder; Python has none, and may pass values."""

    one_of: ClassVar[tuple[str, ...]] = ()
    """Exactly one of these is set."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Which of `one_of` is set."""
        return tuple(key for key in self.one_of if getattr(self, key))

    def problems(self) -> Iterator[Problem]:
        """Mistakes in how the settings of this object go together. Called once for each object of a conf whose settings can be read."""
        return iter(())

    @model_validator(mode="before")
    @classmethod
    def _check_some(cls, written: Any) -> Any:
        """Refuse fewer keys than its schema asks for."""
        bounds = cls.__pydantic_config__.get("json_schema_extra", {})  # type: ignore[attr-defined]
        if isinstance(written, dict) and len(written.keys() - {NAME}) < bounds.get("minProperties", 0):
            raise PydanticCustomError("too_short", "set one")
        return written

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if self.one_of and len(self.chosen) != 1:
            none = f"sets none of {', '.join(self.one_of)}; set one"
            raise unreadable(f"sets {' and '.join(self.chosen)}; keep one of them" if self.chosen else none)
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        """2.0 is a whole number, as it is for editors."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


def unreadable(problem: str) -> PydanticCustomError:
    """The error of a validator. `problem`: the second half of a sentence that begins with the name of the setting."""
    return PydanticCustomError("unreadable", "{problem}", {"problem": problem})


def expression(text: str) -> str:
    """The text, where it is a regular expression."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise unreadable(f"is {quoted(text)}, which is no regular expression ({error}); correct it") from None
    return text


class _NotNull:
    """Absent is None, but null in YAML is a mistake: who writes `unit:` and nothing behind it has forgotten something."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"{source} is no T | None")
        return core_schema.with_info_wrap_validator_function(self._check, schema["schema"])

    def _check(self, value: Any, handler: Any, info: ValidationInfo) -> Any:
        return None if value is None and info.context is None else handler(value)


class _Some:
    """At least one item, where it is written at all; Python has none for what is absent."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._check, handler(source))

    def _check(self, value: Any, handler: Any, info: ValidationInfo) -> Any:
        if value or info.context is not None:
            return handler(value)
        return {} if isinstance(value, dict) else ()


@plain_dataclass(frozen=True)
class Names:
    """Behind the type of a text that names an entry of this noun, such as `metrics`. `tidemark check` looks whether it is declared."""

    noun: str


def of_pattern(pattern: str | None, remedy: str, max_length: int | None, min_length: int | None = None) -> Any:
    """Constraints of a text, to stand behind `str`; `remedy` says what to write."""
    return Field(
        strict=True, min_length=min_length, max_length=max_length, pattern=pattern, json_schema_extra={"patternErrorMessage": remedy}
    )


def _each_once(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(map(str, items))) < len(items):
        raise PydanticCustomError("twice", "names an item twice")
    return items


NOT_OF_JAVA = {
    "America/Coyhaique": "America/Punta_Arenas, which has the same time since 2025",
    "Factory": "Etc/UTC",
    "ROC": "Asia/Taipei",
    "localtime": "the name of the zone, such as Europe/Brussels",
}
"""Time zones of Python 3.11 that Java 17 lacks (a test compares both), and what to write. Spark makes windows by the calendar with Java."""


def problems_of_zone(key: str, name: str) -> Iterator[Problem]:
    """Look a time zone up, which is the setting `key` of an object. Letters such as CET have one offset in a text of a time, and are the
    name of a zone with summer time here."""
    try:
        zone = zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        remedy = hint(name, zoneinfo.available_timezones(), "write an IANA name such as Europe/Brussels")
        yield Problem((key,), f"is {quoted(name)}, which is no time zone; {remedy}")
        return
    if name in NOT_OF_JAVA or name.startswith(("posix", "right/")):
        instead = NOT_OF_JAVA.get(name) or name.removeprefix("posix/").removeprefix("right/")
        yield Problem((key,), f"is {quoted(name)}, a time zone that Java does not know; write {instead}")
        return
    winter, summer = (round(datetime(2026, month, 1, tzinfo=zone).utcoffset() / timedelta(hours=1)) for month in (1, 7))  # type: ignore[operator]
    if re.fullmatch(r"[A-Z]{3,4}(\d[A-Z]{3})?", name) and winter != summer:
        remedy = f"for UTC{winter:+} in summer too write Etc/GMT{-winter:+}, else the name of a place such as Europe/Brussels"
        yield Problem((key,), f"is {quoted(name)}, which is UTC{summer:+} in summer; {remedy}", is_warning=True)


def _with_names(entries: Any) -> Any:
    if not isinstance(entries, Mapping):
        return entries
    return {name: entry | {NAME: name} if isinstance(entry, dict) else entry for name, entry in entries.items()}


_VISIBLE = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
_TRIMMED = r"^[^ \x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^ \x00-\x1f\x7f])?$"
PLAIN = "write a text without control characters"
_LOWER_CASE = "use lower-case letters, digits and _, a letter first"

OrAbsent = Annotated[T | None, _NotNull()]
Unique = Annotated[tuple[T, ...], AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True})]
Some = Annotated[T, Field(min_length=1), _Some()]
UniqueSome = Annotated[
    tuple[T, ...], Field(min_length=1), AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True}), _Some()
]
Whole = Annotated[int, Field(strict=True)]
Seconds = Annotated[int, Field(strict=True, le=MAX_SECONDS)]
Number = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
PlainText = Annotated[str, Field(strict=True)]
Text = Annotated[str, of_pattern(_VISIBLE, PLAIN, 1000, 1)]
Expression = Annotated[Text, AfterValidator(expression)]
Identifier = Annotated[str, of_pattern("^[a-z][a-z0-9_]*$", _LOWER_CASE, 64)]
Key = Annotated[str, of_pattern(_VISIBLE, PLAIN, 200, 1)]
Trimmed = Annotated[str, of_pattern(_TRIMMED, "write a text without control characters and without blanks at its ends", 200, 1)]
EntryName = Annotated[SkipJsonSchema[str], Field(validation_alias=NAME)]
"""The key under which an entry stands in `Named`: no setting of its own."""
Hidden = Annotated[SkipJsonSchema[T], Field(validation_alias=f"{NAME}hidden")]
"""A value that follows from other settings: no setting of its own."""
Named = Annotated[T, BeforeValidator(_with_names)]
"""A mapping whose entries get their keys as their names."""
MetricName = Annotated[Text, Field(description="A metric of metrics.yml.", examples=["temperature"]), Names("metrics")]
GroupName = Annotated[Identifier, Field(description="A group of groups.yml.", examples=["kitchen"]), Names("groups")]
ChannelName = Annotated[Identifier, Field(description="A channel of alerts.yml.", examples=["night_shift"]), Names("channels")]
AlertName = Annotated[Identifier, Field(description="An alert of alerts.yml.", examples=["oven_too_hot"]), Names("alerts")]
Predicate = Annotated[str, of_pattern(r"\S", "write a condition", 10_000, 1)]
