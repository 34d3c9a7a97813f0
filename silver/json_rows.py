"""JSON payloads to rows: of each payload the fields that a format declares, as they stand there.

msgspec reads JSON into a class that is made of the declared paths. What it refuses is read again with care by json_text, which decides: NaN
and infinities, half surrogate pairs, an object where a value should be, nulls where an object should be. So is what is long enough to reach
one of its limits.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.json_text import BLANKS, DEEPEST, LONGEST_NAME, UnreadableError, read_object
from silver.records import Node, Record, Rows, nodes, rows_of
from silver.spec import PayloadFormat

ALWAYS_WITHIN = 1_000
"""Letters of a payload that is too short for any limit of json_text."""
MOST_BRACKETS, LONGEST = DEEPEST, LONGEST_NAME
NOTHING = ("", "null")
"""Payloads that say that nothing was measured: an empty line, a message that only deletes."""
MANY_DIGITS = re.compile(r"[0-9]{300}")


def json_rows(texts: pa.Array, shape: PayloadFormat) -> Iterator[Rows]:
    """Rows of payloads, null where one is too long to be read: one an event, or one an element where the format reads a list."""
    both_nodes = event, _ = nodes(shape)
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    records, is_readable = _records(texts.to_pylist(), event, longest)
    yield from rows_of(records, is_readable, shape, both_nodes, longest)


def _records(texts: Sequence[str | None], event: Node, longest: int) -> tuple[list[Record], pa.Array]:
    """Return a record for each text, and whether it could be read. A text that msgspec refuses, or null, ends its run; decoding goes on
    after it."""
    decode, absent = msgspec.json.Decoder(event.record).decode, event.record()
    if longest > ALWAYS_WITHIN:
        decode = partial(_decode_within_limits, decode)
    records: list[Record] = []
    is_readable, rest = np.ones(len(texts), bool), iter(texts)
    while len(records) < len(texts):
        try:
            records.extend(map(decode, rest))  # type: ignore[arg-type]  # of null it raises TypeError
        except (msgspec.DecodeError, TypeError, RecursionError):
            record = _read_with_care(texts[len(records)], event)
            is_readable[len(records)] = record is not None
            records.append(absent if record is None else record)
    return records, pa.array(is_readable)


def _decode_within_limits(decode: Callable[[str], Record], text: str) -> Record:
    if len(text) <= LONGEST and text.count("{") + text.count("[") <= MOST_BRACKETS and MANY_DIGITS.search(text) is None:
        return decode(text)
    raise msgspec.DecodeError


def _read_with_care(text: str | None, event: Node) -> Record | None:
    if text is None:
        return None
    if text.strip(BLANKS) in NOTHING:
        return event.record()
    try:
        return event.record_of(read_object(text))
    except UnreadableError:
        return None
