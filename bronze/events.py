"""The bronze layer: messages as they came, with where and when. Nothing parsed, nothing refused, bytes kept. Pure.

In Arrow: no column is computed here, and Spark took 13 s from cold to bring 2,000,000 lines from files to a table, where this takes 1
(measured).
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import EVENTS, INSTANT

LINE_FEED = b"\n"
ARRIVED = pa.schema([(field.name, field.type) for field in EVENTS][: EVENTS.get_field_index("ingested_at")])
"""Grain: one event as its source hands it over, still without identity."""


@dataclass(frozen=True)
class File:
    """Facts of all lines of a file. `header`: its first line, for a source with headers; if rows begin with a number that it does not
    name, it begins with a separator. `header_line`: the bytes of that line in the file."""

    source: str
    position: str
    received_at: datetime
    header: str | None = None
    header_line: bytes | None = None


def lines(content: bytes, end: bytes = LINE_FEED) -> pa.BinaryArray:
    """Split content at each `end`; the rest after the last one is a line unless it is empty. A carriage return stays with its line, if
    `end` is none.

    `end`: one letter of 1, 2 or 4 bytes; it stands at multiples of its length.
    """
    width = len(end)
    behind = len(content) - len(content) % width
    units = np.frombuffer(content[:behind], f"u{width}")
    is_end = units == np.frombuffer(end, units.dtype)
    ends = np.flatnonzero(is_end) * width
    text = content.replace(end, b"") if width == 1 else units[~is_end].tobytes() + content[behind:]
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends)) * width  # without the ends before it
    if len(text) > offsets[-1]:
        offsets = np.append(offsets, np.int32(len(text)))
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, [None, *map(pa.py_buffer, (offsets, text))])


def events(payloads: pa.BinaryArray, file: File) -> pa.Table:
    """Lines of one file to ARRIVED; header lines are left out, also one that stands again further down."""
    if file.header_line is not None:
        payloads = payloads.filter(pc.not_equal(payloads, pa.scalar(file.header_line, pa.binary())))
    same = (pa.scalar(getattr(file, field.name, None), field.type) for field in ARRIVED if field.name != "payload")
    return pa.table([payloads, *(pa.repeat(value, len(payloads)) for value in same)], schema=ARRIVED)


def identified(events: pa.Table, ingested_at: datetime, bronze_batch: int, first_row: int) -> pa.Table:
    """Events with their identity, of a bronze batch that began at `ingested_at`; `first_row`: how many of it come before these."""
    rows = pa.array(np.arange(first_row, first_row + len(events)))
    same = {
        "ingested_at": pa.scalar(ingested_at, INSTANT),
        "ingested_on": pa.scalar(ingested_at.date()),
        "bronze_batch": pa.scalar(bronze_batch, pa.int64()),
    }
    for name, value in same.items():
        events = events.append_column(name, pa.repeat(value, len(events)))
    return events.append_column("bronze_row", rows)
