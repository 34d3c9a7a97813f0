"""Tables of reference: how section `references` of pipeline.yml declares them, and their rows by key, with every mistake at once."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from expectations.settings import Key, OrAbsent, Setting, UniqueSome
from expectations.wording import hint, quoted
from orchestration.conf.diagnostic import Diagnostic, printable
from orchestration.conf.values import AbsolutePath
from orchestration.errors import ConfError

MOST = 10
"""Mistakes of one table, and columns, that are told."""
RowKey = tuple[str, str]
"""device_id or zone, and its value."""
Rows = dict[RowKey, dict[str, str]]
"""Attributes by key."""


def _named_as_columns(written: Any) -> Any:
    """A list names columns whose attributes have the same names."""
    if not isinstance(written, list) or not all(isinstance(name, str) for name in written):
        return written
    if len(set(written)) < len(written):
        raise PydanticCustomError("twice", "names a column twice")
    return dict(zip(written, written, strict=True))


_Columns = Annotated[dict[Key, Key], Field(min_length=1)]
Columns = Annotated[_Columns, BeforeValidator(_named_as_columns, json_schema_input_type=_Columns | UniqueSome[Key])]


@dataclass(frozen=True)
class ReferenceSettings(Setting):
    """A table of yours with one row a device or a zone: set `device_id` or `zone`. For an event counts what it said when the event was
    ingested."""

    one_of: ClassVar[tuple[str, ...]] = ("device_id", "zone")
    path: AbsolutePath = Field(examples=["./reference/customers.csv", "./reference/lines"])
    """A CSV file (UTF-8, commas, a header), or the folder of a Delta table. A path as for `lake`. It is read when a run starts, and again
    when it has changed."""
    attributes: Columns = Field(examples=[["customer", "contract"], {"shift_foreman": "foreman"}])
    """Attributes that readings get: columns of the table by the name of the attribute. A list names columns whose attributes have the
    same name. An attribute that the event has itself stays as it is."""
    device_id: OrAbsent[Key] = Field(default=None, examples=["serial"])
    """The column that holds devices, as readings name them."""
    zone: OrAbsent[Key] = Field(default=None, examples=["hall"])
    """The column that holds zones, as readings name them."""

    @property
    def key_column(self) -> str:
        """The column of the table that holds keys; `chosen` says of what."""
        return self.device_id or self.zone or ""


def csv_rows(name: str, settings: ReferenceSettings) -> Rows:
    """ConfError with a line for each mistake; OSError where the file cannot be read."""
    try:
        reader = csv.reader(io.StringIO(settings.path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        header, line, rows = next(reader, []), reader.line_num + 1, []
        positions = check_columns(name, settings, header, 1)
        for cells in reader:
            if cells and len(cells) != len(header):
                raise _mistake(settings, line, f"has {len(cells)} cells under {len(header)} columns; quote a cell that holds a comma")
            rows += [(line, [cells[position] for position in positions])] if cells else []
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _mistake(settings, error.object[: error.start].count(b"\n") + 1, "is not UTF-8 text; save the file as UTF-8") from None
    except csv.Error as error:
        raise _mistake(settings, reader.line_num, f"is not CSV ({error}); write quotes inside a quoted cell twice") from None
    return keyed_rows(settings, rows)


def check_columns(name: str, settings: ReferenceSettings, columns: Sequence[str], line: int = 0) -> list[int]:
    """Places of the key and of the attributes; ConfError for a column that conf names and the table lacks, or has twice."""
    named = {settings.chosen[0]: settings.key_column} | {
        f"attributes.{attribute}": column for attribute, column in settings.attributes.items()
    }
    for setting, column in named.items():
        if (count := columns.count(column)) != 1:
            remedy = "keep one" if count else hint(column, columns, f"it has {', '.join(map(quoted, columns[:MOST])) or 'none'}")
            raise _mistake(
                settings,
                line,
                f"has {f'{count} columns' if count else 'no column'} {quoted(column)}, which references.{name}.{setting} names; {remedy}",
            )
    return [columns.index(column) for column in named.values()]


def keyed_rows(settings: ReferenceSettings, rows: Iterable[tuple[int, Sequence[str | None]]]) -> Rows:
    """`rows`: the line in the file, from 1, 0 for none; the key and the attributes. Empty cells are no attributes.

    ConfError names rows without a key, and keys that two rows have.
    """
    lines: dict[RowKey, int] = {}
    said: Rows = {}
    mistakes: list[str] = []
    for line, cells in rows:
        text, *attributes = [cell and cell.strip() for cell in cells]
        key = settings.chosen[0], text or ""
        if not text:
            mistakes.append(
                str(_mistake(settings, line, f"has a row without {quoted(settings.key_column)}; fill it in, or remove the row"))
            )
        elif key in lines:
            before = f", here and in line {lines[key]}" if line else ""
            mistakes.append(
                str(_mistake(settings, line, f"{settings.key_column} is {quoted(text)} in two rows{before}; remove one of them"))
            )
        else:
            lines[key], said[key] = line, {name: cell for name, cell in zip(settings.attributes, attributes, strict=True) if cell}
    if more := mistakes[MOST:]:
        mistakes[MOST:] = [f"{settings.path}: has {len(more):,} more mistakes"]
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return said


def _mistake(settings: ReferenceSettings, line: int, text: str) -> ConfError:
    return ConfError(str(Diagnostic(str(settings.path), line, text)) if line else f"{settings.path}: {printable(text)}")
