"""Kinds of values that only orchestration reads: paths, instants and addresses; the others are in expectations/settings.py."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass as plain_dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from expectations.settings import Text, unreadable
from expectations.wording import hint, quoted
from orchestration.conf.place import absolute, lake_path
from orchestration.utc import from_iso


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
            raise unreadable(str(error)) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def instant(text: str) -> datetime:
    """In ISO 8601, UTC where it names no zone; ValueError says what is wrong."""
    try:
        return from_iso(text)
    except ValueError:
        raise ValueError(f"is {quoted(text)}, which is no instant; write one in ISO 8601, such as 2026-01-05T00:00:00Z") from None


def _starting(_: Path, text: str) -> datetime | str:
    try:
        return text if text in ENDS else instant(text)
    except ValueError:
        remedy = hint(text, ENDS, "write earliest, latest or an instant such as 2026-01-05T00:00:00Z")
        raise ValueError(f"is {quoted(text)}; {remedy}") from None


ENDS = ("earliest", "latest")
Instant = Annotated[datetime, OfText(lambda _, text: instant(text))]
Starting = Annotated[datetime | Literal["earliest", "latest"], OfText(_starting)]
AbsolutePath = Annotated[Path, OfText(absolute)]
LakePath = Annotated[PurePath, OfText(lake_path)]
WrittenPath = Annotated[str, OfText(lambda folder, text: text if absolute(folder, text) else "")]
"""One that can be resolved, and is not yet."""
