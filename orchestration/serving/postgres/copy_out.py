"""COPY TO STDOUT of a query or a table: text, csv, binary."""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.serving.postgres.datatypes import DataType
from orchestration.serving.postgres.parameters import Query
from orchestration.serving.postgres.portals import Portal
from orchestration.serving.postgres.rows import encoded, framed, framed_lines, parts
from orchestration.serving.postgres.wire import PostgresError, Wire, text
from orchestration.serving.sql.sql_words import Word

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
FALSE = {"false", "off", "0"}
ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


@dataclass(frozen=True)
class CopyForm:
    """The form of rows: `name` is text, csv or binary."""

    name: str
    has_header: bool
    delimiter: str
    null: str


@dataclass(frozen=True)
class CopyOut:
    """A COPY statement that is ready to run."""

    portal: Portal
    form: CopyForm


def read_copy(query: Query, listed: Sequence[Word]) -> tuple[Query, CopyForm]:
    """Read the query and the form of a COPY statement. PostgresError for one that writes or opens a file. `listed`: its words."""
    depth, to = 0, None
    for index, word in enumerate(listed):
        depth += (word.text == "(") - (word.text == ")")
        if not depth and word.name.lower() in {"to", "from"}:
            to = index
            break
    if to is None or to < 2 or to + 1 == len(listed):
        raise PostgresError("42601", "COPY takes a table or a query in parentheses, TO STDOUT")
    if listed[to].name.lower() == "from":
        raise PostgresError("25006", "a session only reads: cannot execute COPY FROM in a read-only transaction")
    if listed[to + 1].name.lower() != "stdout":
        raise PostgresError("42501", "COPY only to stdout: a session reads, and opens no file")
    return _source(query, listed[1].at, listed[to].at), _form(listed[to + 2 :])


def _source(query: Query, start: int, end: int) -> Query:
    source = query.text[start:end].rstrip()
    if source.startswith("("):
        return query.part(start + 1, start + len(source) - 1)
    columns = re.fullmatch(r"(.*?)\((.*)\)", source, re.DOTALL)
    table, listed = (columns[1], columns[2]) if columns else (source, "*")
    before = f"select {listed} from "
    return Query(before + table, query.start + start - len(before), query.edits)


def _form(words: Sequence[Word]) -> CopyForm:
    """Read WITH CSV HEADER, and (FORMAT csv, HEADER true, DELIMITER ';', NULL '-')."""
    options, name = dict[str, str](), ""
    for word in words:
        value = word.text[1:-1].replace("''", "'") if word.kind == "string_const" else word.text.lower()
        if value in {"csv", "binary", "text"} and word.kind != "string_const":
            options["format"], name = value, ""
        elif value in {"format", "header", "delimiter", "null", "encoding"} and word.kind != "string_const":
            options[name := value] = ""
        elif name and value not in {",", ")"}:
            options[name], name = value, ""
        elif value not in {"with", "(", ")", ",", "as"}:
            raise PostgresError("0A000", f"COPY does not know the option {value!r} here", "It has FORMAT, HEADER, DELIMITER and NULL.")
    name = options.get("format", "text").lower()
    if name not in {"csv", "binary", "text"}:
        raise PostgresError("22023", f'COPY format "{name}" not recognized')
    delimiter = options.get("delimiter", "," if name == "csv" else "\t")
    if len(delimiter.encode()) != 1 or delimiter in '\n\r"\\':
        raise PostgresError("22023", "COPY delimiter must be a single one-byte character")
    has_header = "header" in options and options["header"] not in FALSE
    return CopyForm(name, has_header, delimiter, options.get("null", "" if name == "csv" else "\\N"))


def send_copy(wire: Wire, copy: CopyOut) -> None:
    """Send all rows."""
    portal, form = copy.portal, copy.form
    is_binary = form.name == "binary"
    wire.write("H", struct.pack(f"!bh{len(portal.types)}h", is_binary, len(portal.types), *[int(is_binary)] * len(portal.types)))
    head = SIGNATURE if is_binary else b""
    if form.has_header and not is_binary:
        names = [_written(pa.array([name]), None, form) for name in portal.names]
        wire.write_framed(framed_lines(names, form.delimiter.encode()))
    for batch in portal.taken(None, [is_binary] * len(portal.types)):
        for part in parts(batch):
            rows = _framed(part, portal.types, form)
            if head:  # goes with the first row, as clients expect it
                end = 1 + struct.unpack("!i", rows[1:5])[0]
                wire.write("d", head, bytes(rows[5:end]))
                head, rows = b"", rows[end:]
            wire.write_framed(rows)
        portal.sent += batch.num_rows
    if is_binary:
        wire.write("d", head, b"\xff\xff")
    wire.write("c")
    wire.write("C", text(f"COPY {portal.sent}"))


def _framed(batch: pa.RecordBatch, types: Sequence[DataType], form: CopyForm) -> memoryview:
    columns = zip(batch.columns, types, strict=True)
    if form.name == "binary":
        return framed([encoded(column, data_type) for column, data_type in columns], b"d")
    return framed_lines([_written(column, data_type, form) for column, data_type in columns], form.delimiter.encode())


def _written(column: pa.Array, data_type: DataType | None, form: CopyForm) -> pa.Array:
    """Escape texts. Those of numbers and times hold nothing to escape, unless the delimiter is an unusual one."""
    if not (data_type and data_type.is_bounded and form.delimiter in "\t,;|"):
        column = _quoted(column, form) if form.name == "csv" else _escaped(column, form)
    return column.fill_null(form.null).cast(pa.binary())


def _escaped(column: pa.Array, form: CopyForm) -> pa.Array:
    for old, new in (ESCAPES | ({} if form.delimiter == "\t" else {form.delimiter: f"\\{form.delimiter}"})).items():
        if pc.any(pc.match_substring(column, old)).as_py():
            column = pc.replace_substring(column, old, new)
    return column


def _quoted(column: pa.Array, form: CopyForm) -> pa.Array:
    needs = pc.or_(pc.match_substring_regex(column, f'["\\n\\r{re.escape(form.delimiter)}]'), pc.equal(column, form.null))
    if not pc.any(needs).as_py():
        return column
    quoted = pc.binary_join_element_wise(pa.scalar('"'), pc.replace_substring(column, '"', '""'), pa.scalar('"'), "")
    return pc.if_else(needs.fill_null(False), quoted, column)
