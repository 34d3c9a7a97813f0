"""Steps by which alerts are judged, once more: bronze batches, ticks behind them, and the devices that are to send; from their tables."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

from gold.alerts.spec import Alert
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import DEVICES, batches, fill, record
from orchestration.conf.model import Conf
from orchestration.storage.delta import path_of, rows_of
from orchestration.utc import to_micros

SECOND = 1_000_000
FOR_EVER = 2**31 - 1
Presence = list[tuple[int, bool]]
"""Steps at whose beginning an entity is to send, or not any more."""


class Step(NamedTuple):
    """A bronze batch, or a tick, for which `batch` is None. `closes`: the event time of a tick that closes windows."""

    batch: int | None
    wall: int
    closes: int | None = None


class Steps:
    """The batches and ticks of a lake, and its device registry."""

    def __init__(self, store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf) -> None:
        self._conf = conf
        bronze = snapshot.tables["bronze.events"], snapshot.versions["bronze.events"]
        columns = ["bronze_batch", "max(ingested_at) as began"]
        rows = batches(*bronze, columns, f"bronze_batch <= {snapshot.bronze_batch} group by bronze_batch").read_all()
        self._batches = sorted(zip(rows["bronze_batch"].to_pylist(), rows["began"].cast(pa.int64()).to_pylist(), strict=True))
        self._ticks = [
            (row["bronze_batch"], to_micros(row["ticked_at"]))
            for row in rows_of(path_of(conf.lake, "ops.clock"))
            if row["bronze_batch"] <= snapshot.bronze_batch
        ]
        self._of_streams = rows_of(path_of(conf.lake, "ops.ticks"))
        record(store, snapshot, "silver.devices", "registry", DEVICES)
        query = (
            "select epoch_us(registered_at), device_id, groups, is_known from registry"
            " qualify row_number() over (partition by registered_at, device_id order by moved_at desc nulls last) = 1 order by all"
        )
        self._versions = store.execute(query).fetchall()

    def of_alert(self, alert: Alert, until: int) -> list[Step]:
        """Return the steps up to an instant, by the wall clock; a batch of the prefix is always among them."""
        placed: list[tuple[int, int, int, int | None]] = [(batch, 0, began, None) for batch, began in self._batches]
        placed += [(batch, 1, at, None) for batch, at in self._ticks if at <= until]
        stream = self._conf.groups[str(alert.signal.group)].stream if alert.signal.is_of_gold else None
        for row in self._of_streams:
            at = to_micros(row["ticked_at"])
            if row["stream"] == stream and at < until + 1000:  # a snapshot has milliseconds
                batch = max((batch for batch, began in self._batches if began <= at), default=-1)
                placed.append((batch, 1, at, to_micros(row["event_time"])))
        steps, wall = list[Step](), -(2**62)
        for batch, is_tick, at, closes in sorted(placed, key=lambda step: step[:3]):
            wall = max(wall, at)
            steps.append(Step(None if is_tick else batch, wall, closes))
        return steps

    def presence(self, alert: Alert, steps: Sequence[Step]) -> dict[str, Presence]:
        """Return when devices join, where they are expected, and leave."""
        signal, present, joined = alert.signal, defaultdict[str, Presence](list), set[str]()
        if signal.kind not in {"reading", "window", "count"} or signal.by == "group":
            return {}
        for at, device, groups, is_known in self._versions:
            is_member = is_known and (signal.group is None or signal.group in (groups or ()))
            if is_member == (device in joined):
                continue
            joined.symmetric_difference_update({device})
            step = next((number for number, step in enumerate(steps) if step.wall >= at), None)
            if step is not None and (alert.expected or not is_member):
                present[device].append((step, is_member))
        return {device: list(dict(events).items()) for device, events in present.items()}


def make_steps(store: duckdb.DuckDBPyConnection, steps: Sequence[Step]) -> None:
    """Make the table `alert_steps` of bronze batches."""
    of_batches = [(number, step.batch, step.wall) for number, step in enumerate(steps) if step.batch is not None]
    fill(store, "alert_steps", "step INTEGER, bronze_batch BIGINT, wall BIGINT", of_batches)


def make_clock(store: duckdb.DuckDBPyConnection, alert: Alert, steps: Sequence[Step], newest: Mapping[int, int]) -> list[int]:
    """Make the table `clock`: up to where the clock of the signal is behind each step, less `wait_seconds`. `newest`: the event time of the
    newest row of a step."""
    reached: tuple[int, int] | None = None
    rows, past = list[tuple[int, int, int]](), -(2**60)
    for number, step in enumerate(steps):
        at = step.wall if alert.signal.kind == "account" else newest.get(number)
        if at is not None and (reached is None or at > reached[0] + step.wall - reached[1]):
            reached = at, step.wall
        until = past if reached is None else max(past, reached[0] + step.wall - reached[1] - alert.wait_seconds * SECOND)
        rows.append((number, past, until))
        past = until
    fill(store, "clock", "step INTEGER, past BIGINT, until BIGINT", rows)
    return [until for _, _, until in rows]


def make_lives(store: duckdb.DuckDBPyConnection, presence: Mapping[str, Presence], clock: Sequence[int]) -> None:
    """Make `life`: from which step to which an entity is one, where it ever leaves; and `awaited`: since which instant, by the clock of
    the signal, one that joins has intervals."""
    fill(store, "life", "entity VARCHAR, begins_in INTEGER, ends_in INTEGER", _lives(presence))
    first = next((step for step, at in enumerate(clock) if at > -(2**60)), None)
    rows = list[tuple[str, int, int]]()
    for entity, events in presence.items():
        for step, is_member in events:
            if is_member and first is not None:
                begins_in = max((left for left, joins in events if not joins and left <= step), default=0)
                rows.append((entity, begins_in, clock[step - 1] if step > first else clock[first]))
    fill(store, "awaited", "entity VARCHAR, begins_in INTEGER, since BIGINT", rows)


def _lives(presence: Mapping[str, Presence]) -> Iterator[tuple[str, int, int]]:
    for entity, events in presence.items():
        leaves = [step for step, is_member in events if not is_member]
        if leaves:
            yield from ((entity, begin, end) for begin, end in zip([0, *leaves], [*leaves, FOR_EVER], strict=True))
