"""One step of a sink: what the newest snapshot has beyond what was sent. No Spark.

What is about to be sent is written down first, so that a process that comes after a kill sends exactly the same batch again.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from orchestration.conf.model import Conf
from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.connectors.sinks.sink_states import SinkPosition, end_reset, read_state, requested_reset, write_state
from orchestration.connectors.sinks.table_changes import PinnedTable, pinned_table
from orchestration.storage.snapshots import find_snapshot, is_kept


@dataclass(frozen=True)
class Sent:
    """The result of one step."""

    snapshot_id: int
    rows: int
    seconds: float
    is_complete: bool


def send(conf: Conf, name: str, sink: Sink, now: datetime) -> Sent | None:
    """Send one batch; None where the sink has what the newest snapshot has. Whatever the sink raises is raised on."""
    begin, state, reset = time.monotonic(), read_state(conf, name), requested_reset(conf.lake, name)
    pinned = newest_table(conf, name)
    if pinned is None or (reset is None and state == replace(state, sent=pinned.position, sending=None)):
        return None  # without asking the target, which may be looked at every few seconds for days
    last = sink.last(state.sent)
    is_half_sent = state.sending is not None and state.sending != last
    half_sent = _again(conf, name, state.sending) if is_half_sent and reset is None else None
    pinned = half_sent or newest_table(conf, name) or pinned  # anew: another process may have sent a later one meanwhile
    if pinned.position == last and reset is None and not is_half_sent:
        write_state(conf.lake, name, replace(state, sent=last, sending=None))
        return None
    is_complete = pinned.is_replaced_since(last) or reset is not None or _is_of_another_history(conf, name, last)
    # Of a batch that cannot be sent again the target may have a part.
    is_complete |= is_half_sent and (half_sent is None or state.is_complete)
    write_state(conf.lake, name, replace(state, sent=last, sending=pinned.position, is_complete=is_complete))
    batch = Batch(name, conf.sinks[name].table, _number(pinned, reset), last, pinned.position, is_complete, pinned.schema, pinned.key)
    rows = _Counted(pinned.rows(None if is_complete else last, is_ordered=sink.is_ordered))
    if not sink.write(batch, iter(rows)):
        return send(conf, name, sink, now)
    write_state(conf.lake, name, replace(state, sent=pinned.position, sending=None, is_complete=False, sent_at=f"{now:%Y-%m-%dT%H:%M:%SZ}"))
    if reset is not None:
        end_reset(conf.lake, name, reset)
    return Sent(pinned.position.snapshot_id, rows.count, time.monotonic() - begin, is_complete)


def newest_table(conf: Conf, name: str) -> PinnedTable | None:
    """The table of a sink at the newest snapshot; None where there is none yet, or where it does not have the table yet."""
    snapshot = find_snapshot(conf.lake)
    return None if snapshot is None else pinned_table(conf, conf.sinks[name].table, snapshot)


def _again(conf: Conf, name: str, half_sent: SinkPosition | None) -> PinnedTable | None:
    """The table as it was when a process began to send it; None where that cannot be read any more."""
    if half_sent is None or not is_kept(conf.lake, half_sent.snapshot_id):
        return None
    snapshot = find_snapshot(conf.lake, half_sent.snapshot_id)
    pinned = None if snapshot is None else pinned_table(conf, conf.sinks[name].table, snapshot)
    return pinned if pinned is not None and pinned.position == half_sent else None


def _is_of_another_history(conf: Conf, name: str, last: SinkPosition | None) -> bool:
    """Whether the snapshot that the target has is not the one of that id here: the lake was restored from a backup, and went on."""
    return last is not None and is_kept(conf.lake, last.snapshot_id) and _again(conf, name, last) is None


def _number(pinned: PinnedTable, reset: str | None) -> str:
    """The same for the same rows; another one after a reset, or a target that knows the number would take them for a repeat."""
    position = pinned.position
    parts = [position.table_id[:8], position.snapshot_id, position.mark if not pinned.key else None, reset]
    return "-".join(str(part) for part in parts if part is not None)


class _Counted:
    """Chunks, and how many rows they had."""

    def __init__(self, chunks: Iterator[pa.Table]) -> None:
        self._chunks, self.count = chunks, 0

    def __iter__(self) -> Iterator[pa.Table]:
        for chunk in self._chunks:
            self.count += len(chunk)
            yield chunk
