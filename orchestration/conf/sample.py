"""A stranger's file of JSON lines or CSV, as rows of fields by path: the first 1,000 lines are enough to propose a conf from.

In JSON, objects become dotted paths, and one list of objects becomes `each`.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from expectations.wording import counted
from orchestration.conf.csv_table import csv_table
from orchestration.conf.instants import is_epoch
from orchestration.conf.names import is_json_path
from orchestration.conf.number_marks import marks_of, with_points_by_text
from orchestration.conf.sample_decoders import Decoders, decoders_of, object_of, objects_in
from orchestration.conf.vocabulary import UNKNOWN, Scalar, is_called, is_measurement, number_of, rank
from orchestration.errors import ConfError
from silver.short_forms import ELEMENT

MAX_LINES = 1_000
MAX_BYTES = 16_000_000
LEAST_CLOCK = 10_000
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")

Row = dict[str, Scalar]
"""Values by path, as conf would name it; what is null or blank is absent."""
Leaves = dict[str, Any]
"""All that is no object, by path."""


@dataclass(frozen=True)
class Sample:
    """The parts of a sample. `rows` has one row a measurement or row of measurements, with numbers as silver reads them.

    `fields`: all that there are, by path, also those that no conf can read. `settings`: of its source, as sources.yml writes them. `units`
    by column, of a line below the header of CSV. `time_parts`: the fields that one of `fields` stands for. `empty`: fields without a value
    that a path leads to, with the reason. `parted`: the patterns that take device and metric out of one field.
    """

    file: Path
    format: str
    rows: list[Row]
    fields: list[str]
    each: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    time_parts: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    encoding: str | None = None
    decode: Decoders = ()
    empty: dict[str, str] = field(default_factory=dict)
    parted: tuple[str, ...] = ()

    @property
    def row(self) -> str:
        """A word for a row: an event may have several."""
        return "element" if self.each else "object" if self.decode else "event"

    notes: list[str] = field(default_factory=list)


def sample_of(file: Path) -> Sample:
    """Raises ConfError for what is neither JSON lines nor CSV, perhaps packed by gzip."""
    lines, encoding = lines_of(file)
    filled = [line for line in lines if line.strip()]
    if decode := decoders_of(file, filled):
        sample = replace(_json_sample(file, [*objects_in(file, decode, filled)]), decode=decode)
    else:
        sample = _json_sample(file, filled) if filled[0].lstrip().startswith(("{", "[")) else _csv_sample(file, lines)
    return replace(_with_points(sample), encoding=encoding)


def lines_of(file: Path) -> tuple[list[str], str | None]:
    """The first lines of a file, perhaps packed, and the encoding where it is not UTF-8; ConfError where it is no text."""
    try:
        with file.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
        with gzip.open(file) if is_gzip else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfError(f"{file} cannot be read ({reason}); check the path and that the file is whole") from None
    if data.startswith(b"PAR1"):
        raise ConfError(f"{file} is Parquet, which a source of files or s3 reads by `format: parquet`; name a sample of JSON lines or CSV")
    is_cut = len(data) > MAX_BYTES
    encoding = _encoding_of(data)
    text = data.decode(encoding or "utf-8-sig", "ignore" if is_cut else "replace")
    lines = text.split("\n" if "\n" in text else "\r")[: -1 if is_cut else None]
    texts = [line.rstrip("\r") for line in lines[:MAX_LINES]]
    if not any(map(str.strip, texts)) or any(CONTROL.search(text) for text in texts):
        what = "is binary" if any(map(str.strip, texts)) else f"has a line of more than {MAX_BYTES:,} bytes" if is_cut else "is empty"
        raise ConfError(f"{file} {what}; name a file of JSON lines or CSV")
    return texts, encoding


def _encoding_of(data: bytes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return None if error.reason == "unexpected end of data" else "latin-1"
    return None


def _json_sample(file: Path, lines: list[str]) -> Sample:
    events = [dict(_leaves(event)) for line in lines if (event := object_of(line)) is not None]
    if 2 * len(events) < len(lines):
        raise ConfError(f"{file} looks like JSON, but not one object a line; convert it first, for example with jq -c '.[]' or jq -c .")
    broken = f"{len(lines) - len(events)} of {counted(len(lines), 'line')} are no JSON object; such events go to silver.quarantine"
    list_path, others = _list_of_measurements(events)
    notes = [
        f"{path}: a list with numbers in {count} of {counted(len(events), 'event')}, which is not read" for path, count in others.items()
    ]
    rows = [row for event in events for row in _rows(event, list_path)]
    fields = [path for event in events for path in event if path != list_path]
    fields += [ELEMENT + path for event in events for element in _elements(event, list_path) for path in element]
    empty = {path: _why_empty([event[path] for event in events if path in event]) for path in fields}
    notes = [broken] * (len(events) < len(lines)) + notes
    return Sample(file, "json", rows, [*dict.fromkeys(fields)], list_path, notes=notes, empty=empty)


def _why_empty(values: list[Any]) -> str:
    return (
        "is a list"
        if any(isinstance(value, list) for value in values)
        else "has a name that no path can have"
        if () in values
        else "is empty"
    )


def _list_of_measurements(events: list[Leaves]) -> tuple[str | None, dict[str, int]]:
    """The list of objects that most events have, if it holds what they measure; and the others with numbers, in how many events."""
    lists = Counter(path for event in events for path, value in event.items() if isinstance(value, list))
    counts = {path: sum(any(map(_measures, _elements(event, path))) for event in events) for path in lists}
    counts = {path: count for path, count in counts.items() if count}
    rows = {path: [row for event in events for row in _elements(event, path)] for path in counts}
    is_long = {
        path: 2 * sum(_has(row, "value") and _has(row, "metric") for row in elements) >= len(elements) for path, elements in rows.items()
    }
    often = [path for path in counts if 2 * lists[path] >= len(events)]
    best = max(often, key=lambda path: (is_long[path], counts[path]), default=None)
    numbers = [event for event in events if _measures({path: value for path, value in event.items() if not isinstance(value, bool)})]
    if best and not is_long[best] and 2 * len(numbers) >= len(events) and any(_has(event, "time") for event in events):
        best = None
    return best, {path: count for path, count in counts.items() if path != best}


def _has(row: Leaves, role: str) -> bool:
    return any(rank(path, role) < UNKNOWN for path in row)


def _measures(row: Leaves) -> bool:
    """Whether it holds a number that is no time, and not about a radio or its place."""
    scalars = {path: value for path, value in _scalars(row).items() if is_measurement(path, value)}
    is_received = any(is_called(path, "radio") for path in scalars)
    return any(
        not (is_epoch(value) or is_called(path, "radio") or (is_received and is_called(path, "place")) or _is_clock(path, value))
        for path, value in scalars.items()
    )


def _is_clock(path: str, value: Scalar) -> bool:
    """Whether it is named after a time, and too great for most measurements, such as microseconds since a gateway was started."""
    return rank(path, "time") < UNKNOWN and (number_of(value) or 0) >= LEAST_CLOCK


def _elements(event: Leaves, list_path: str | None) -> list[dict[str, Any]]:
    """The objects of a list, as values by path."""
    elements = event.get(list_path or "")
    return [dict(_leaves(element)) for element in elements if isinstance(element, dict)] if isinstance(elements, list) else []


def _rows(event: Leaves, list_path: str | None) -> Iterator[Row]:
    own = {path: value for path, value in _scalars(event).items() if not list_path or not _is_in_the_way(path, list_path)}
    if not list_path or not isinstance(event.get(list_path), list):
        yield own
    for element in _elements(event, list_path):
        yield own | {ELEMENT + path: value for path, value in _scalars(element).items()}


def _is_in_the_way(path: str, list_path: str) -> bool:
    """A field that conf could not tell from the list, or from what is in it."""
    return path == list_path or path.startswith((f"{list_path}.", ELEMENT)) or list_path.startswith(f"{path}.")


def _scalars(leaves: Leaves) -> Row:
    """Values that are no list; half of a surrogate pair, which JSON may hold and Arrow does not, becomes a question mark."""
    plain = {path: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for path, value in leaves.items()}
    return {path: value for path, value in plain.items() if isinstance(value, str | int | float) and str(value).strip()}


def _leaves(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Values by path; that of a field which no path of conf can name, such as one with a dot in its name, is an empty tuple."""
    for name, inner in value.items():
        is_object = isinstance(inner, dict)
        if not name.strip() or not name.isprintable() or {*name} & {*'."\\'} or is_json_path(name + "." * is_object):
            yield prefix + name, ()
        elif isinstance(inner, dict) and depth < 10:
            yield from _leaves(inner, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, inner


def _csv_sample(file: Path, lines: list[str]) -> Sample:
    table = csv_table(file, lines)
    rows: list[Row] = [{name: cell.strip() for name, cell in zip(table.names, row, strict=False) if cell.strip()} for row in table.rows]
    return Sample(file, "csv", rows, table.names, settings=table.settings, units=table.units, notes=table.notes)


def _with_points(sample: Sample) -> Sample:
    """The sample with its numbers as silver reads them: with a point, and no marks of thousands."""
    texts = {value for row in sample.rows for value in row.values() if isinstance(value, str)}
    marks = marks_of(texts)
    has_exact_times = any(isinstance(value, float) and is_epoch(value) for row in sample.rows for value in row.values())
    plain = {} if has_exact_times else with_points_by_text(texts, marks)  # marks hold for times too, and these have a point
    rows = [{path: plain.get(value, value) if isinstance(value, str) else value for path, value in row.items()} for row in sample.rows]
    settings = {name: mark for name, mark in zip(("decimal", "thousands"), marks, strict=True) if plain and mark not in (".", None)}
    settings |= {"thousands": "."} if plain and marks[1] == "." else {}
    return replace(sample, rows=rows, settings=sample.settings | settings)
