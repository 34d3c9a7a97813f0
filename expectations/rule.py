"""A rule: what must be true of a row; and the kinds of values that a row has. Data, without a parser."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from expectations.settings import EntryName, Predicate, Setting


class Kind(StrEnum):
    """The kind of a value in a condition."""

    TEXT = "text"
    NUMBER = "number"
    """A double, whatever the column holds."""
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    """An instant, in UTC."""
    TEXTS = "list of texts"
    ATTRIBUTES = "map of attributes"
    """Texts by name."""
    OTHER = "value of another type"
    NULL = "null"
    """Nothing, which may stand for a value of any kind."""


@dataclass(frozen=True)
class Rule(Setting):
    """One rule."""

    name: EntryName
    holds: Annotated[Predicate, AfterValidator(lambda text: text.strip())] = Field(
        examples=["value >= 0", "metric <> 'temperature' or value <> 85"]
    )
    """Condition over a reading (device_id, metric, value, unit, event_time, zone, groups, attributes, source, ingested_at), true for a good
    one; expectations/README.md has the language. What cannot be computed for a reading is null, and null counts as broken."""
