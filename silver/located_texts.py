"""Texts from where a source says: a field, the payload, what came with it, or a constant; one a row. Pure, of Arrow."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from silver.json_rows import as_text
from silver.records import Rows, Values
from silver.spec import Locator, Origin


@dataclass(frozen=True)
class LocatedTexts:
    """The texts of rows. `payloads`: texts, or bytes in UTF-8, of the events; `events`: what came with them."""

    rows: Rows
    payloads: pa.Array
    events: pa.Table

    def of(self, origin: Origin | None) -> pa.Array:
        """Trimmed texts; null where one is absent, blank, or does not match."""
        if origin is None:
            return pa.nulls(len(self.rows.event_at), pa.string())
        return self.located(origin)[0] if origin.match or origin.otherwise else self.whole(origin)

    def located(self, origin: Origin) -> tuple[pa.Array, pa.Array]:
        """Trimmed texts, null where there is none; and there the text that does not match, if that is why."""
        texts = unmatched = pa.nulls(len(self.rows.event_at), pa.string())
        for locator in origin.locators:
            whole = self.whole(locator)
            texts = pc.coalesce(texts, first_groups(whole, locator.match))
            unmatched = pc.coalesce(unmatched, whole) if locator.match else unmatched
        return texts, pc.if_else(texts.is_null(), unmatched, None)

    def whole(self, locator: Locator) -> pa.Array:
        """Trimmed texts before any pattern; null where one is absent or blank."""
        if locator.constant is not None:
            return pa.repeat(pa.scalar(locator.constant, pa.string()), len(self.rows.event_at))
        if locator.parts:
            texts = [named(texts_of(self.rows.values(part))) for part in locator.parts]
            return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, " ")
        return self.rows.of_event(named(self._of_events(locator)))

    def _of_events(self, locator: Locator) -> pa.Array:
        if locator.payload:
            return utf8(self.payloads)
        if locator.key:
            return utf8(whole_column(self.events["key"]))
        if locator.header is not None:
            return utf8(header_values(whole_column(self.events["headers"]), locator.header))
        positions = pc.fill_null(whole_column(self.events["position"]), "")
        return (
            first_groups(positions, locator.file_name) if locator.file_name is not None else _level_of_topic(locator.topic or 1, positions)
        )


def first_groups(texts: pa.Array, pattern: str | None) -> pa.Array:
    """The first group of a pattern in each text, trimmed; null where the pattern is not found. Texts as they are without a pattern."""
    if pattern is None:
        return texts
    encoded, search = texts.dictionary_encode(), re.compile(pattern).search
    groups = [match[1] if (match := search(text)) else None for text in encoded.dictionary.to_pylist()]
    return named(pa.array(groups, pa.string()).take(encoded.indices))


def header_values(headers: pa.Array, name: str) -> pa.Array:
    """The bytes of a header of each event, of several with this name the last; null without it."""
    values = ([entry["value"] for entry in entries or () if entry["key"] == name] for entries in headers.to_pylist())
    return pa.array((of_event[-1] if of_event else None for of_event in values), pa.binary())


def utf8(texts: pa.Array) -> pa.Array:
    """Bytes as texts; null where they are none."""
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(map(_utf8, texts.to_pylist()), pa.string())


def texts_of(values: Values) -> pa.Array:
    """Values of a field as texts."""
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, pa.string())
    except (ValueError, TypeError):  # nearly all are texts
        return pa.array(map(as_text, values), pa.string())


def named(texts: pa.Array) -> pa.Array:
    """Without spaces around them; null where nothing is left."""
    trimmed = pc.utf8_trim(texts, " ")
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def whole_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _utf8(content: Any) -> str | None:
    try:
        return content if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _level_of_topic(level: int, positions: pa.Array) -> pa.Array:
    """Return a level of topic/partition/offset or topic/session/number: two parts follow the topic, which may have several levels. Else
    null."""
    pattern = rf"^(?:[^/]*/){{{level - 1}}}(?P<level>[^/]*)(?:/[^/]*)*/[^/]*/[^/]*$"
    return pc.struct_field(pc.extract_regex(positions, pattern), "level")
