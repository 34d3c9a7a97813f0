"""Tables of a lake and checkpoints of flows written by hand, commit by commit."""

import json
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from orchestration.conf.model import Conf
from orchestration.storage import snapshots
from orchestration.storage.delta import OF_LOG

EVENTS = pa.schema([("bronze_batch", pa.int64()), ("payload", pa.binary()), ("ingested_on", pa.date32())])
INSTANT = pa.timestamp("us", "UTC")
READINGS = pa.schema([("bronze_batch", pa.int64()), ("event_time", INSTANT), ("value", pa.float64())])


def measured_at(number: int) -> datetime:
    """Hours after the readings of the batch before, so all of these are late."""
    return datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=number)


def batch(made: Conf, number: int) -> None:
    """A commit of one file a day to bronze, and one of one file to silver."""
    days = [date(2026, 1, 5), date(2026, 1, 6)]
    bronze = [{"bronze_batch": number, "payload": f"{number} {day}".encode(), "ingested_on": day} for day in days]
    once = CommitProperties(app_transactions=[Transaction("flow", number)])
    tables = (
        ("bronze/events", EVENTS, bronze),
        ("silver/readings", READINGS, [{"bronze_batch": number, "event_time": measured_at(number), "value": number}]),
    )
    for name, schema, rows in tables:
        write_deltalake(
            made.lake.local / name,
            pa.Table.from_pylist(rows, schema),
            mode="append",
            partition_by=["ingested_on"] if name == "bronze/events" else None,
            configuration=OF_LOG,
            commit_properties=once,
        )


def pinned(made: Conf, number: int, at: datetime, generation: int = 1) -> None:
    """A snapshot of the newest versions."""
    versions = {name: DeltaTable(made.lake.local / name.replace(".", "/")).version() for name in ("bronze.events", "silver.readings")}
    row = {"snapshot_id": number, "at": at, "generation": generation, "bronze_batch": number}
    row |= {"versions": list(versions.items()), "closed_until": []}
    write_deltalake(
        made.lake.local / "ops/snapshots", pa.Table.from_pylist([row], snapshots.SNAPSHOTS.schema), mode="append", configuration=OF_LOG
    )


def read_up_to(made: Conf, flow: str, table: str, version: int, *, done: bool = True, is_state: bool = False) -> None:
    """The checkpoint of a flow that has read all before that version of a table."""
    offset = {"reservoirId": str(DeltaTable(made.lake.local / table).metadata().id), "reservoirVersion": version, "index": -1}
    checkpoint = made.lake / "checkpoints" / flow
    for folder in ("offsets", "commits"):
        (checkpoint.local / folder).mkdir(parents=True, exist_ok=True)
    (checkpoint.local / "offsets" / "0").write_text(
        'v2\n{"batchWatermarkMs": 0, "batchTimestampMs": 0}\nreadings:' + json.dumps(offset | {"isStartingVersion": is_state})
    )
    if done:
        (checkpoint.local / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
