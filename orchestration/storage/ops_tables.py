"""Tables of schema ops that only delta-rs writes, and that several rooms read: the ledger and the ticks."""

import pyarrow as pa

from orchestration.storage.delta import INSTANT

LEDGER_FLOW = "silver.ledger"
"""The job that writes the ledger."""
LEDGER = "ops.ledger"
MEASUREMENTS = ("readings", "quarantined", "without_measurements", "late", "duplicates")
"""What became of each measurement; `without_measurements`: events of healthy devices that measure nothing."""
CONFLICTS = "conflicts"
"""Those of the duplicates whose value differs from the kept one."""
COUNTED = ("events", *MEASUREMENTS, CONFLICTS)
LEDGER_SCHEMA = pa.schema([("bronze_batch", pa.int64()), ("source", pa.string()), *((name, pa.int64()) for name in COUNTED)])
"""Grain: one bronze batch of one source, and what a retry changed of it; sums hold. `events` counts messages, the others measurements."""

TICKS = "ops.ticks"
TICKS_SCHEMA = pa.schema([("stream", pa.string()), ("event_time", INSTANT), ("ticked_at", INSTANT)])
"""Grain: one tick of one stream. `event_time` is the instant up to which the stream is told that time has passed, plus its lateness."""

GAPS = "ops.gaps"
GAPS_SCHEMA = pa.schema(
    [
        *(("source", pa.string()), ("topic", pa.string()), ("partition", pa.int64())),
        *((name, pa.int64()) for name in ("first_offset", "last_offset", "bronze_batch")),
        ("found_at", INSTANT),
    ]
)
"""Grain: messages of one partition that were gone before anybody read them. `last_offset` null: nobody knows how far the gap went.
`bronze_batch`: the one that goes on behind it."""
