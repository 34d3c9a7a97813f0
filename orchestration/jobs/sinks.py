"""One step of a sink: what the newest snapshot has beyond what was sent. No Spark.

What is about to be sent is written down first, so that a process that comes after a kill sends exactly the same batch again.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from orchestration import crash
from orchestration.conf.model import Conf
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow, Refusal, Refused, State, noted_rows, row_keys
from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.connectors.sinks.sink_states import Request, SinkPosition, end_request, read_state, requested, write_state
from orchestration.connectors.sinks.table_changes import PinnedTable, pinned_table
from orchestration.storage.snapshots import find_snapshot, is_kept
from orchestration.utc import to_iso


@dataclass(frozen=True)
class Sent:
    """The result of one step. `dead`: rows that the target refused for themselves. `lacking`: says which columns old rows lack there."""

    snapshot_id: int
    rows: int
    seconds: float
    is_complete: bool
    dead: int = 0
    lacking: str | None = None


@dataclass(frozen=True)
class _Asked:
    """Marks of what another process asks for; None where it asks for nothing."""

    reset: str | None
    resend: str | None

    def __bool__(self) -> bool:
        return self.reset is not None or self.resend is not None


def send(conf: Conf, name: str, sink: Sink, now: datetime) -> Sent | None:
    """Send one batch; None where the sink has what the newest snapshot has. Whatever the sink raises is raised on."""
    begin, state, asked = time.monotonic(), read_state(conf, name), _asked(conf, name)
    pinned = newest_table(conf, name)
    if pinned is None or (not asked and state == replace(state, sent=pinned.position, sending=None)):
        return None  # without asking the target, which may be looked at every few seconds for days
    last = sink.last(state.sent)
    is_half_sent = state.sending is not None and state.sending != last
    half_sent = _again(conf, name, state.sending) if is_half_sent and asked.reset is None else None
    pinned = half_sent or newest_table(conf, name) or pinned  # anew: another process may have sent a later one meanwhile
    if pinned.position == last and not asked and not is_half_sent:
        write_state(conf.lake, name, replace(state, sent=last, sending=None))
        return None
    is_asked_for = asked.reset is not None or (asked.resend is not None and not pinned.key)  # rows without a key come all or not at all
    is_complete = pinned.is_replaced_since(last) or is_asked_for or _is_of_another_history(conf, name, last)
    # Of a batch that cannot be sent again the target may have a part.
    is_complete |= is_half_sent and (half_sent is None or state.is_complete)
    write_state(conf.lake, name, replace(state, sent=last, sending=pinned.position, is_complete=is_complete))
    number = _number(pinned, asked.reset or asked.resend)
    batch = Batch(name, conf.sinks[name].table, number, last, pinned.position, is_complete, pinned.schema, pinned.key)
    noted = noted_rows(conf.lake, name)
    notes = _Notes(conf, batch, now, noted)
    refused = Refused(pinned.key, notes.write)
    # A repeat has the same rows, also those that the try before it has noted to be over.
    dead = {key: row for key, row in noted.items() if row.state == State.DEAD or row.batch == number}
    rows = _Rows(pinned, None if is_complete else last, dead, is_ordered=sink.is_ordered, is_resent=asked.resend is not None)
    if not sink.write(replace(batch, refused=refused), iter(rows)):
        return send(conf, name, sink, now)
    crash.point(crash.Point.BATCH_DELIVERED)
    refused.note()
    over = [Refusal(key, dead[key].reason) for key in (dead if is_complete or rows.are_resent else rows.came) if key not in refused.keys]
    notes.write(over, State.OVER)
    crash.point(crash.Point.DEAD_ROWS_OVER)
    write_state(conf.lake, name, replace(state, sent=pinned.position, sending=None, is_complete=False, sent_at=to_iso(now)))
    end_request(conf.lake, name, Request.RESET, asked.reset)
    end_request(conf.lake, name, Request.RESEND, asked.resend)
    lacking = old_rows_lack(sink, pinned, last, is_complete=is_complete)
    return Sent(pinned.position.snapshot_id, rows.count - refused.count, time.monotonic() - begin, is_complete, refused.count, lacking)


def old_rows_lack(sink: Sink, pinned: PinnedTable, last: SinkPosition | None, *, is_complete: bool) -> str | None:
    """Say which columns the table got since that position, where the target cannot add them; None where nothing is to be said."""
    columns = pinned.columns_since(last)
    return sink.old_rows_lack(f"the new column {', '.join(columns)}", is_complete=is_complete) if columns else None


def _asked(conf: Conf, name: str) -> _Asked:
    return _Asked(requested(conf.lake, name, Request.RESET), requested(conf.lake, name, Request.RESEND))


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


def _number(pinned: PinnedTable, request: str | None) -> str:
    """The same for the same rows; another one after a request, or a target that knows the number would take them for a repeat."""
    position = pinned.position
    parts = [position.table_id[:8], position.snapshot_id, position.mark if not pinned.key else None, request]
    return "-".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True)
class _Notes:
    """Writes down what became of rows of one batch, each once: `noted` has what a try before wrote."""

    conf: Conf
    batch: Batch
    now: datetime
    noted: Mapping[str, DeadRow]

    def write(self, rows: Sequence[Refusal], state: State = State.DEAD) -> None:
        batch, snapshot_id = self.batch, self.batch.position.snapshot_id
        notes = [DeadRow(batch.sink, batch.table, *row, state, snapshot_id, batch.number, self.now) for row in rows]
        before = {(row.row_key, row.state) for row in self.noted.values() if row.batch == batch.number}
        DEAD_ROWS.append(self.conf.lake, [note for note in notes if (note.row_key, note.state) not in before])


class _Rows:
    """The rows of a batch, a chunk at a time. `count`: of them. `came`: keys of dead rows that are among them.

    `are_resent`: dead rows come too, behind what is new, where the batch would not have them.
    """

    def __init__(
        self, pinned: PinnedTable, after: SinkPosition | None, dead: Collection[str], *, is_ordered: bool, is_resent: bool
    ) -> None:
        self._pinned, self._after, self._dead, self._is_ordered = pinned, after, dead, is_ordered
        self.are_resent = is_resent and after is not None
        self.came, self.count = set[str](), 0

    def __iter__(self) -> Iterator[pa.Table]:
        for chunk in self._pinned.rows(self._after, is_ordered=self._is_ordered):
            if self._dead:
                self.came.update(key for key in row_keys(chunk, self._pinned.key) if key in self._dead)
            yield self._counted(chunk)
        for chunk in self._pinned.rows(None, is_ordered=self._is_ordered) if self.are_resent and self._dead else ():
            is_dead = pa.array([key in self._dead and key not in self.came for key in row_keys(chunk, self._pinned.key)], pa.bool_())
            if is_dead.true_count:
                yield self._counted(chunk.filter(is_dead))

    def _counted(self, chunk: pa.Table) -> pa.Table:
        self.count += len(chunk)
        return chunk
