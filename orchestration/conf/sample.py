"""A stranger's file of JSON lines or CSV, as rows of fields by path: the first 1,000 lines are enough to propose a conf from.

In JSON, objects become dotted paths, and one list of objects becomes `each`. DuckDB sniffs separator, quote and header of a CSV.
"""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb

from expectations.wording import counted
from orchestration.conf.csv_header import cells_of, header_of
from orchestration.conf.instants import is_epoch
from orchestration.conf.names import is_json_path
from orchestration.conf.vocabulary import UNKNOWN, Scalar, is_called, is_measurement, rank
from orchestration.errors import ConfError
from silver.decoders.message import Message
from silver.records import UnreadableError
from silver.spec import ELEMENT, Origin, PayloadFormat, Time

MAX_LINES = 1_000
MAX_BYTES = 16_000_000
SNIFF = "select Delimiter, Quote, HasHeader, len(Columns) from sniff_csv(?, ignore_errors = true, null_padding = true)"
"""Only separator, quote and header: it takes a decimal comma for a separator, and `read_json_auto` gives times without their format."""
COMMENT = re.compile('#|"?TOA5"?,')
"""How a line begins that tells about the file, also that of a Campbell logger."""
MAX_COLUMNS_BY_HEADER = 64
"""The silver layer reads wider rows only with their columns in conf."""

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
NO_NAME = "a name that no header has"
SPREADSHEET = re.compile(r"\"?sep=.\"?", re.IGNORECASE)
SENML = re.compile(r'(?=.*"(bn|bt)"\s*:)(?=.*"(n|e)"\s*:)(?=.*"(v|vb|vs|vd|e)"\s*:)', re.DOTALL)
LINE_PROTOCOL = re.compile(r"[^\s,\"]+(,\w+=(\\.|[^\\,\s])+)* \w+=\S.*")

Row = dict[str, Scalar]
"""Values by path, as conf would name it; what is null or blank is absent."""
Leaves = dict[str, Any]
"""All that is no object, by path."""


@dataclass(frozen=True)
class Sample:
    """The parts of a sample. `rows` has one row a measurement or row of measurements; `columns` is empty where the header serves.

    `fields`: all that there are, by path, also those that no conf can read.
    """

    file: Path
    format: str
    rows: list[Row]
    fields: list[str]
    each: str | None = None
    has_header: bool = False
    columns: tuple[str, ...] = ()
    separator: str = ","
    quote: str = '"'
    encoding: str | None = None
    decode: str | None = None
    notes: list[str] = field(default_factory=list)


def sample_of(file: Path) -> Sample:
    """Raises ConfError for what is neither JSON lines nor CSV, perhaps packed by gzip."""
    lines, encoding = _lines_of(file)
    if decode := _decoder_of(lines):
        return replace(_json_sample(file, [*_decoded(file, decode, lines)]), encoding=encoding, decode=decode)
    sample = _json_sample(file, lines) if lines[0].lstrip().startswith(("{", "[")) else _csv_sample(file, lines)
    return replace(sample, encoding=encoding)


def _decoder_of(lines: list[str]) -> str | None:
    """Name the decoder of what is neither JSON objects nor CSV."""
    if SENML.match("\n".join(lines)):
        return "senml"
    if all(line.lstrip().startswith("[{") for line in lines):
        return "array"
    return "influx" if 2 * sum(map(bool, map(LINE_PROTOCOL.fullmatch, lines))) >= len(lines) else None


def _decoded(file: Path, decode: str, lines: list[str]) -> Iterator[str]:
    """Yield the objects of lines that can be decoded, as JSON; ConfError where there is none."""
    from silver.decoders.chain import decoder_of, objects_of

    made, count = decoder_of(PayloadFormat("json", Origin(constant="x"), Time(NO_NAME), decode=(decode,)), frozenset()), 0
    for line in lines:
        with suppress(UnreadableError):
            for members in objects_of(made, Message(line.encode())):
                count += 1
                yield json.dumps(members)
    if not count:
        raise ConfError(
            f"{file} looks like a kind of {decode} that is not read; have it written as RFC 8428 or InfluxDB have it, or as JSON"
        )


def _lines_of(file: Path) -> tuple[list[str], str | None]:
    """With the encoding, where it is not UTF-8."""
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
    texts = [line.rstrip("\r") for line in lines[:MAX_LINES] if line.strip()]
    if not texts or any(CONTROL.search(text) for text in texts):
        what = "is binary" if texts else f"has a line of more than {MAX_BYTES:,} bytes" if is_cut else "is empty"
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
    events = [dict(_leaves(event)) for line in lines if (event := _object(line)) is not None]
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
    return Sample(file, "json", rows, [*dict.fromkeys(fields)], list_path, notes=[broken] * (len(events) < len(lines)) + notes)


def _object(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


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
    """Whether it holds a number that is no time, and not about the radio."""
    numbers = [value for path, value in _scalars(row).items() if is_measurement(path, value) and not is_called(path, "radio")]
    return not all(map(is_epoch, numbers))


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
        if not name.strip() or not name.isprintable() or "." in name or is_json_path(name + "." * is_object):
            yield prefix + name, ()
        elif isinstance(inner, dict) and depth < 10:
            yield from _leaves(inner, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, inner


def _csv_sample(file: Path, lines: list[str]) -> Sample:
    lines = lines[1:] if lines[1:] and SPREADSHEET.fullmatch(lines[0]) else lines
    separator, quote, has_header = _dialect(file, [*dropwhile(COMMENT.match, lines)] or lines)
    below = [*dropwhile(lambda line: COMMENT.match(line) or separator not in line, lines)]
    above, shape = lines[: len(lines) - len(below)], PayloadFormat("csv", Origin(constant="x"), Time(NO_NAME), has_header=True)
    shape = replace(shape, separator=separator, quote=quote)
    names, lines, notes = header_of(file, above, below, shape, is_sniffed=has_header)
    rows = cells_of(lines, shape)
    if above:
        what = "lines before the rows, but for the first, are events without measurements"
        notes.append(f"{counted(len(above), 'line')} before the header: {what}")
    clean = _distinct(names)
    width = Counter(map(len, rows)).most_common(1)[0][0]
    body = [row for row in rows if len(row) == width]
    if odd := len(rows) - len(body):
        notes.append(f"another number of values in {odd} of {counted(len(rows), 'row')}; such events go to silver.quarantine")
    is_in_file = (
        lines is not below and clean == [name.strip() for name in cells_of(below, shape)[0]] and len(names) <= MAX_COLUMNS_BY_HEADER
    )
    return Sample(
        file,
        "csv",
        [_named(clean, row) for row in body],
        clean,
        has_header=bool(above) or lines is not below,
        columns=() if is_in_file and not above else tuple(clean),
        separator=separator,
        quote=quote,
        notes=notes,
    )


def _dialect(file: Path, lines: list[str]) -> tuple[str, str, bool]:
    """Let DuckDB sniff the separator, the quote and whether there is a header; ConfError where there is one column only."""
    with NamedTemporaryFile(suffix=".csv") as copy, duckdb.connect() as store:
        copy.write("\n".join([*lines, ""]).encode())
        copy.flush()
        try:
            sniffed = store.execute(SNIFF, [copy.name]).fetchone()
        except duckdb.Error:
            sniffed = None
    if sniffed is None or sniffed[3] < 2:
        raise ConfError(f"{file} is neither JSON lines nor CSV with several columns; name a file of one of the two")
    # A comma may be a decimal comma.
    separator = next((other for other in ";\t|" if sniffed[0] == "," and all(other in line for line in lines)), sniffed[0])
    return separator, sniffed[1] if sniffed[1] == "'" else '"', sniffed[2]


def _distinct(names: list[str]) -> list[str]:
    """Names that conf can hold, each once."""
    clean = ["".join(c for c in name if c.isprintable()).strip() or f"c{at + 1}" for at, name in enumerate(names)]
    return [name if clean.index(name) == at else f"{name}_{at + 1}" for at, name in enumerate(clean)]


def _named(names: list[str], cells: list[str]) -> Row:
    """A header with one name fewer leaves the first value without a name."""
    return {name: cell.strip() for name, cell in zip(names, cells[len(cells) - len(names) :], strict=True) if cell.strip()}
