"""Payloads that decoders read to rows: each object is read as JSON is. Nothing here raises."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.decoders.chain import Decode, decoder_of, objects_of
from silver.decoders.message import Message, messages
from silver.decoders.steps import steps_of
from silver.records import Node, Record, Rows, UnreadableError, nodes, rows_of
from silver.spec import PayloadFormat


def decoded_rows(payloads: pa.Array, events: pa.Table, shape: PayloadFormat, most_bytes: int) -> Iterator[Rows]:
    """Rows of payloads, null where one is too long to be read: one an object, or one an element where the format reads a list."""
    both_nodes = event, _ = nodes(shape)
    decode = decoder_of(shape, frozenset(event.members))
    records, event_at, is_readable = list[Record](), list[int](), np.ones(len(payloads), bool)
    absent = [event.record()]
    for at, message in enumerate(messages(payloads, events, shape, most_bytes)):
        of_message = None if message is None else _records(decode, event, message)
        is_readable[at] = of_message is not None
        records += of_message or absent
        event_at += [at] * len(of_message or absent)
    unpacks = any(step.name == "gzip" for step in steps_of(shape))
    longest = most_bytes if unpacks else pc.max(pc.binary_length(payloads)).as_py() or 0
    yield from rows_of(records, pa.array(is_readable), shape, both_nodes, longest, event_at=event_at)


def _records(decode: Decode, event: Node, message: Message) -> list[Record] | None:
    try:
        objects = objects_of(decode, message)
        try:
            return [msgspec.convert(members, event.record) for members in objects]
        except (msgspec.ValidationError, UnicodeError):  # a list or an object where a value should be, or the other way round
            return [event.record_of(members) for members in objects]
    except UnreadableError:
        return None
