"""Tests of a conf, as files in `<conf>/tests` declare them: messages that are given, and rows that are expected."""

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from expectations.settings import OrAbsent, PlainText, Setting, Text, Whole, unreadable
from expectations.wording import hint, quoted
from gold.schema import AGGREGATES, ALERTS, FLOW_KINDS, VECTORS
from silver.schema import DUPLICATES, LATE, READINGS

COLUMNS: dict[str, tuple[str, ...]] = {
    "readings": tuple(READINGS.names),
    "quarantine": ("rules", "payload", "device_id", "metric", "event_time", "value", "source"),
    "without_measurements": ("payload", "source"),
    "late": tuple(LATE.names),
    "duplicates": tuple(DUPLICATES.names),
    "windows": ("group", *(name for name in AGGREGATES.names if name != "device_group")),
    "vectors": ("group", *(name for name in VECTORS.names if name != "device_group")),
    "flows": tuple(dict.fromkeys(name for schema, _ in FLOW_KINDS.values() for name in schema.names)),
    "alerts": tuple(ALERTS.names),
}
"""Columns that a row of each table may name."""


def instant(text: str) -> datetime:
    """Read an instant of ISO 8601 that names its offset."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise unreadable(f"is {quoted(text)}, which is no instant; write for example 2026-01-05T12:00:00Z") from None
    if at.tzinfo is None:
        raise unreadable(f"is {quoted(text)}, without an offset from UTC; write for example {text}Z")
    return at


def _instant(text: str) -> str:
    instant(text)
    return text


Instant = Annotated[Text, AfterValidator(_instant), Field(examples=["2026-01-05T12:00:00Z"])]


@dataclass(frozen=True)
class Given(Setting):
    """A message that a source receives, or a file of such messages. Set exactly one of `payload`, `base64` and `sample`."""

    one_of: ClassVar[tuple[str, ...]] = ("payload", "base64", "sample")
    payload: Any = Field(default=None, examples=[{"device": "oven-01", "temperature": 180}])
    """The message: a mapping or a list is written as JSON, a text is taken as it is. Of a source that reads files a text may have several
    lines, with the header first where the source has one."""
    base64: OrAbsent[Text] = Field(default=None, examples=["AAECAw=="])
    """The message in base64, for messages that are no text."""
    sample: OrAbsent[PlainText] = Field(default=None, examples=["samples/oven.csv"])
    """A file, beside this one, whose first 1,000 events are read as the source reads files."""
    source: OrAbsent[Text] = Field(default=None, examples=["plant"])
    """The source that receives it; may be left out where conf has one."""
    arrival: OrAbsent[Instant] = None
    """When it arrives. Absent: together with the message before it; the first ones when their newest measurement was made. What arrives
    at one instant is one batch."""
    key: OrAbsent[PlainText] = Field(default=None, examples=["oven-01"])
    """The key of the message."""
    headers: dict[Text, PlainText] = Field(default_factory=dict, examples=[{"device": "oven-01"}])
    """The headers of the message, as texts."""
    topic: OrAbsent[Text] = Field(default=None, examples=["plant/oven-01/temperature"])
    """The topic of the message."""
    file_name: OrAbsent[Text] = Field(default=None, examples=["hall-2/oven-01.csv"])
    """The path of the file below the landing folder."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Which of `one_of` is set; a message may be an empty mapping."""
        return tuple(key for key in self.one_of if getattr(self, key) is not None)


def _columns_exist(rows: int | list[dict[str, Any]] | None, info: ValidationInfo) -> int | list[dict[str, Any]] | None:
    columns = COLUMNS[str(info.field_name)]
    otherwise = f"known here: {', '.join(columns)}"
    for name in (name for row in (rows if isinstance(rows, list) else ()) for name in row):
        if name not in columns:
            raise unreadable(f"names the column {quoted(name)}; {hint(name, columns, otherwise)}")
    return rows


Rows = Annotated[Whole | list[dict[str, Any]] | None, AfterValidator(_columns_exist)]


@dataclass(frozen=True)
class Expected(Setting):
    """The outcome of the messages. A number is a count of rows. A list has all rows, each with the columns that matter, in any order."""

    readings: Rows = Field(default=None, examples=[[{"device_id": "oven-01", "metric": "temperature", "value": 180}]])
    """Rows of silver.readings."""
    quarantine: Rows = Field(default=None, examples=[[{"rules": ["value_is_in_range"], "value": 999}]])
    """Rows of silver.quarantine; `rules` are the names of all rules that the row breaks."""
    without_measurements: Rows = Field(default=None, examples=[1])
    """Events of healthy devices that measure nothing; they are no rows of `quarantine` here."""
    late: Rows = Field(default=None, examples=[0])
    """Rows of silver.late."""
    duplicates: Rows = Field(default=None, examples=[0])
    """Rows of silver.duplicates."""
    windows: Rows = Field(default=None, examples=[[{"device_id": "oven-01", "metric": "temperature", "value": 180}]])
    """Rows of gold.aggregates, with the name of their `group`. At the end of a test all windows are closed."""
    vectors: Rows = Field(default=None, examples=[0])
    """Rows of gold.vectors, with the name of their `group`."""
    flows: Rows = Field(default=None, examples=[0])
    """Rows of all flows; the column `flow` is the name of one."""
    alerts: Rows = Field(default=None, examples=[[{"alert": "oven_too_hot", "entity": "oven-01", "state": "firing"}]])
    """Rows of gold.alerts, one for each change of a state. `summary` is the text that a message has."""

    @property
    def is_set(self) -> bool:
        """Whether anything is expected."""
        return any(getattr(self, name) is not None for name in COLUMNS)


@dataclass(frozen=True)
class ConfTest(Setting):
    """One test: messages, and what comes of them. Each test begins with an empty lake."""

    name: Text = Field(examples=["a reading in Fahrenheit is kept in Celsius"])
    """A sentence that is true of the conf."""
    given: list[Given] = Field(min_length=1, examples=[[{"payload": {"device": "oven-01", "temperature": 180}}]])
    """The messages, in order."""
    expect: Expected = Field(default_factory=Expected, examples=[{"quarantine": 0}])
    """The outcome. Only tables and columns that are named are compared."""
    until: OrAbsent[Instant] = None
    """The instant at which the test ends, for alerts that time alone changes. Absent: when the last message has arrived."""


@dataclass(frozen=True)
class ConfTests(Setting):
    """A file of `<conf>/tests`."""

    tests: list[ConfTest] = Field(min_length=1, examples=[[{"name": "all is read", "given": [{"payload": {}}]}]])
    """The tests."""
