"""Tables of schema ops that only delta-rs writes, and that several rooms read: the ledger and the ticks."""

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")

LEDGER_FLOW = "silver.ledger"
"""The job that writes the ledger."""
LEDGER = "ops.ledger"
MEASUREMENTS = ("readings", "quarantined", "late", "duplicates")
LEDGER_SCHEMA = pa.schema(
    [("bronze_batch", pa.int64()), ("source", pa.string()), *((name, pa.int64()) for name in ("events", *MEASUREMENTS))]
)
"""Grain: one bronze batch of one source, and what a retry changed of it; sums hold. `events` counts messages, the others measurements."""

TICKS = "ops.ticks"
TICKS_SCHEMA = pa.schema([("stream", pa.string()), ("event_time", INSTANT), ("ticked_at", INSTANT)])
"""Grain: one tick of one stream. `event_time` is the instant up to which the stream is told that time has passed, plus its lateness."""
