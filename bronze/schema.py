"""Bronze tables: the columns that they are made of and checked against."""

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def declared(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    """A schema of names, types and comments; Delta tables keep the comments."""
    return pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in columns])


EVENTS = declared(
    ("payload", pa.binary(), "the message as it came, byte for byte, without its line end"),
    ("header", pa.string(), "first line of the file it came in, where the source has headers; else null"),
    ("source", pa.string(), "name of the source in conf/sources.yml"),
    ("position", pa.string(), "where in the source: path below the landing folder, topic/partition/offset, request or topic and number"),
    ("received_at", INSTANT, "when the source had it, UTC: time of the file, of the message at the broker, when a pushed event came"),
    ("key", pa.binary(), "key of the message, null where it has none"),
    ("headers", HEADERS, "headers of the message as they came, null where the source has none"),
    ("ingested_at", INSTANT, "when its bronze batch began, UTC"),
    ("ingested_on", pa.date32(), "day of ingested_at"),
    ("bronze_batch", pa.int64(), "ever increasing, in the order of commits"),
    ("bronze_row", pa.int64(), "unique within bronze_batch; with it the identity of the event for ever"),
)
"""Grain: one message received. Key: bronze_batch, bronze_row. Append only."""

EVENTS_PARTITION = "ingested_on"
