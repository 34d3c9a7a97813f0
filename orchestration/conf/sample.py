"""A stranger's file of JSON lines or CSV, as rows of fields by path: the first 1,000 lines are enough to propose a conf from.

In JSON, objects become dotted paths, and one list of objects becomes `each`. Separator, quote and header of a CSV are found by what makes
its rows alike.
"""

import csv
import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestration.conf.instants import Scalar, time_format_of
from orchestration.errors import ConfError
from silver.spec import ELEMENT

MAX_LINES = 1_000
MAX_BYTES = 16_000_000
SEPARATORS = (";", "\t", "|", ",")
"""Where two serve equally well the comma loses: it may be a decimal comma."""
MAX_COLUMNS_BY_HEADER = 64
"""The silver layer reads wider rows only with their columns in conf."""

Row = dict[str, Scalar]
"""Values by path, as conf would name it; what is null or blank is absent."""


@dataclass(frozen=True)
class Sample:
    """What the sample is made of. `rows` has one row a measurement or row of measurements; `columns` is empty where the header serves."""

    file: Path
    format: str
    rows: list[Row]
    each: str | None = None
    has_header: bool = False
    columns: tuple[str, ...] = ()
    separator: str = ","
    quote: str = '"'
    notes: list[str] = field(default_factory=list)


def sample_of(file: Path) -> Sample:
    """Raises ConfError for what is neither JSON lines nor CSV, perhaps packed by gzip."""
    lines = _lines_of(file)
    return _json_sample(file, lines) if lines[0].lstrip().startswith(("{", "[")) else _csv_sample(file, lines)


def _lines_of(file: Path) -> list[str]:
    try:
        with file.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
        with gzip.open(file) if is_gzip else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfError(f"{file} cannot be read ({reason}); check the path and that the file is whole") from None
    is_cut = len(data) > MAX_BYTES
    lines = [line.rstrip(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    try:
        texts = [line.decode("utf-8") for line in lines[: -1 if is_cut else None][:MAX_LINES]]
    except UnicodeDecodeError as error:
        raise ConfError(f"{file} is not UTF-8 text ({error.reason}); convert it first, for example with iconv -t UTF-8") from None
    texts = [text for text in texts if text.strip()]
    if not texts or any("\x00" in text for text in texts):
        what = "is binary" if texts else f"has a line of more than {MAX_BYTES:,} bytes" if is_cut else "is empty"
        raise ConfError(f"{file} {what}; name a file of JSON lines or CSV")
    return texts


def _json_sample(file: Path, lines: list[str]) -> Sample:
    events = [event for line in lines if (event := _object(line)) is not None]
    if 2 * len(events) < len(lines):
        raise ConfError(f"{file} looks like JSON, but not one object a line; convert it first, for example with jq -c '.[]' or jq -c .")
    each = _list_of_measurements(events)
    rows = [row for event in events for row in _rows(event, each)]
    notes = [f"{len(lines) - len(events)} of {len(lines)} lines are no JSON object; such events go to silver.quarantine"]
    return Sample(file, "json", rows, each=each, notes=notes if len(events) < len(lines) else [])


def _object(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _list_of_measurements(events: list[dict[str, Any]]) -> str | None:
    """The path that holds a list of objects in most events."""
    counts = Counter(
        path for event in events for path, value in _leaves(event) if isinstance(value, list) and value and isinstance(value[0], dict)
    )
    return counts.most_common(1)[0][0] if counts else None


def _rows(event: dict[str, Any], list_path: str | None) -> Iterator[Row]:
    leaves = dict(_leaves(event))
    own = {path: value for path, value in _scalars(leaves).items() if not list_path or not _is_in_the_way(path, list_path)}
    elements = leaves.get(list_path) if list_path else None
    if not isinstance(elements, list):
        yield own
        return
    for element in elements:
        if isinstance(element, dict):
            yield own | {ELEMENT + path: value for path, value in _scalars(dict(_leaves(element))).items()}


def _is_in_the_way(path: str, list_path: str) -> bool:
    """A field that conf could not tell from the list, or from what is in it."""
    return path == list_path or path.startswith((f"{list_path}.", ELEMENT)) or list_path.startswith(f"{path}.")


def _scalars(leaves: Mapping[str, Any]) -> Row:
    return {path: value for path, value in leaves.items() if isinstance(value, str | int | float) and str(value).strip()}


def _leaves(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Fields whose names hold dots or backticks cannot be named by a path."""
    for name, inner in value.items():
        if not name.strip() or not name.isprintable() or "." in name or "`" in name:
            continue
        if isinstance(inner, dict) and depth < 10:
            yield from _leaves(inner, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, inner


def _csv_sample(file: Path, lines: list[str]) -> Sample:
    separator, quote, rows = _split(file, lines)
    width = Counter(len(row) for row in rows[1:] or rows).most_common(1)[0][0]
    has_header = _is_header(rows, width)
    names = [name.strip() for name in rows[0]] if has_header else [f"c{n + 1}" for n in range(width)]
    clean = _distinct(names)
    is_said = not has_header or clean != names or len(names) > MAX_COLUMNS_BY_HEADER
    body = [row for row in rows[1 if has_header else 0 :] if len(row) == width]
    return Sample(
        file,
        "csv",
        [_named(clean, row) for row in body],
        has_header=has_header,
        columns=tuple(clean) if is_said else (),
        separator=separator,
        quote=quote,
        notes=_notes(names, width, len(rows) - has_header - len(body), has_header),
    )


def _split(file: Path, lines: list[str]) -> tuple[str, str, list[list[str]]]:
    tried: list[tuple[int, str, str, list[list[str]]]] = []
    for separator in SEPARATORS:
        for quote in ('"', "'"):
            rows = list(_cells(lines, separator, quote))
            width, count = Counter(len(row) for row in rows).most_common(1)[0]
            # A quote is right where it takes signs away that would otherwise stay in the values.
            clean = sum(not cell.startswith(("'", '"')) for row in rows for cell in row) / sum(len(row) for row in rows)
            tried.append((round(1000 * count / len(rows) * clean) if width > 1 else 0, separator, quote, rows))
    score, separator, quote, rows = max(tried, key=lambda attempt: attempt[0])
    if score == 0:
        raise ConfError(f"{file} is neither JSON lines nor CSV with several columns; name a file of one of the two")
    return separator, quote, rows


def _cells(lines: list[str], separator: str, quote: str) -> list[list[str]]:
    """Line by line, as bronze does: a line end inside quotes ends the row."""
    try:
        return [next(csv.reader([line], delimiter=separator, quotechar=quote, skipinitialspace=True)) for line in lines]
    except csv.Error:  # a value beyond the limit of the csv module
        return [[line] for line in lines]


def _is_header(rows: list[list[str]], width: int) -> bool:
    """A first line of texts above columns of numbers or times; it may have one name fewer than the rows have values."""
    first, others = rows[0], [row for row in rows[1:] if len(row) == width]
    if len(first) not in (width, width - 1) or not others:
        return False
    is_of_names = not any(_is_measured([cell]) for cell in first)
    return is_of_names and any(_is_measured([row[at] for row in others]) for at in range(width))


def _is_measured(cells: list[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and (all(is_number(cell) for cell in filled) or time_format_of(filled) is not None)


def is_number(text: str) -> bool:
    """Whether Spark's cast would read it; `nan` and `inf` are no measurements."""
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def _distinct(names: list[str]) -> list[str]:
    """Names that conf can hold, each once."""
    clean = ["".join(c for c in name if c.isprintable() and c != "`").strip() or f"c{at + 1}" for at, name in enumerate(names)]
    return [name if clean.index(name) == at else f"{name}_{at + 1}" for at, name in enumerate(clean)]


def _named(names: list[str], cells: list[str]) -> Row:
    """A header with one name fewer leaves the first value without a name."""
    return {name: cell.strip() for name, cell in zip(names, cells[len(cells) - len(names) :], strict=True) if cell.strip()}


def _notes(names: list[str], width: int, odd: int, has_header: bool) -> list[str]:
    notes = []
    if has_header and len(names) < width:
        notes.append("the header has one name fewer than the rows have values: the first value is taken for a row number and not read")
    if not has_header:
        notes.append("no header was found: the columns are numbered; give them their names")
    if odd:
        notes.append(f"{odd} of the rows have another number of values; such events go to silver.quarantine")
    return notes
