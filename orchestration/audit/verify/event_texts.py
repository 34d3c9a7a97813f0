"""Texts from where a source says, for `verify` (those of the layer are in silver/located_texts.py): one for each row."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from orchestration.audit.verify.json_payload import as_text
from silver.spec import Locator, Origin


class NoMatch(str):
    """A text in which its pattern is not found."""

    __slots__ = ()


@dataclass(frozen=True)
class EventTexts:
    """Events and what came with them. `payloads`: texts, or bytes, null where one is too long. `events`: columns of bronze.events."""

    payloads: pa.ChunkedArray | pa.Array
    events: pa.Table

    def texts(self, origin: Origin, values: Callable[[str], Sequence[Any]], event_at: Sequence[int]) -> list[str | None]:
        """Trimmed texts of rows, null where one is absent or blank; a text that does not match as NoMatch. `values`: those of a field.
        `event_at`: the event of each row."""
        first, *others = (self._of_locator(locator, values, event_at) for locator in origin.locators)
        return list(map(_better, first, others[0])) if others else first

    def _of_locator(self, locator: Locator, values: Callable[[str], Sequence[Any]], event_at: Sequence[int]) -> list[str | None]:
        if locator.constant is not None:
            return [locator.constant] * len(event_at)
        if locator.field:
            whole: Iterable[str | None] = map(trimmed_text, values(locator.field))
        elif locator.fields:
            whole = map(_joined, *map(values, locator.fields))
        else:
            of_events = list(map(_trimmed, self._of_events(locator)))
            whole = (of_events[at] for at in event_at)
        return list(map(_matched(locator.match), whole) if locator.match else whole)

    def _of_events(self, locator: Locator) -> Iterator[str | None]:
        if locator.payload:
            return map(_text, self.payloads.to_pylist())
        if locator.key:
            return map(_text, self.events["key"].to_pylist())
        if locator.header is not None:
            named = ({entry["key"]: entry["value"] for entry in entries or ()} for entries in self.events["headers"].to_pylist())
            return (_text(of_event.get(locator.header)) for of_event in named)
        positions = (position or "" for position in self.events["position"].to_pylist())
        if locator.file_name is not None:
            in_name = re.compile(locator.file_name)
            return (_group(in_name, position) for position in positions)
        return (_level_of_topic(locator.topic or 1, position) for position in positions)


def trimmed_text(value: Any) -> str | None:
    """A value as a name: its text without the spaces around it, None if it is absent or blank."""
    if type(value) is str and value.isascii():  # as nearly always
        return value.strip(" ") or None
    return _trimmed(as_text(value))


def _joined(*values: Any) -> str | None:
    """The texts with a blank between them; None if one is absent or blank."""
    texts = list(map(trimmed_text, values))
    return None if None in texts else " ".join(filter(None, texts))


def _better(first: str | None, other: str | None) -> str | None:
    """The first of two texts that is there and matches; else the first that does not match."""
    if first is None or (isinstance(first, NoMatch) and other is not None and not isinstance(other, NoMatch)):
        return other
    return first


def _matched(pattern: str) -> Callable[[str | None], str | None]:
    expression = re.compile(pattern)

    @lru_cache(maxsize=10_000)
    def read(text: str | None) -> str | None:
        return None if text is None else _trimmed(_group(expression, text)) or NoMatch(text)

    return read


def _group(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _trimmed(text: str | None) -> str | None:
    return text.strip(" ") or None if text else None


def _text(content: bytes | str | None) -> str | None:
    try:
        return content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        return None


def _level_of_topic(level: int, position: str) -> str | None:
    """The topic is what stands before the last two parts of a position."""
    levels = position.split("/")[:-2]
    return levels[level - 1] if level <= len(levels) else None
