"""Crash points: named places at which tests kill a run, to show that no kill loses or doubles a row.

`TIDEMARK_CRASH_AT=name` kills at the first passing of that point, `name:n` at the n-th; `stop:name:n` only stops, as SIGSTOP does. Whole
process groups die, the JVM with its Python parent, as when the machine goes down: so a test starts each run in a group of its own. Without
the variable a point is one comparison.
"""

import os
import signal
from enum import StrEnum
from itertools import count

VARIABLE = "TIDEMARK_CRASH_AT"


class Point(StrEnum):
    """A point of a run at which a test can end the process: what has just been done, and what has not."""

    EVENTS_SPOOLED = "events-spooled"
    """Pushed events are on the disk of the collector, their senders have no acknowledgement."""
    COMMIT_DUE = "commit-due"
    """The files of a commit are written, and whoever commits has looked whether it may; the log does not name them."""
    EVENTS_WRITTEN = "events-written"
    """Bronze has a batch, and silver nothing of it."""
    LANE_WAITS = "lane-waits"
    """The files of a lane of silver are written, another lane has yet to bring its own; no commit names them."""
    READINGS_WRITTEN = "readings-written"
    """silver.readings has the rows, its checkpoint does not have the batch; of several lanes: no checkpoint, or not all of them."""
    AGGREGATES_WRITTEN = "aggregates-written"
    """The aggregates of a group, not its vectors."""
    WINDOWS_WRITTEN = "windows-written"
    """All tables of a stream, not the batch in the checkpoint."""
    LEDGER_BEGUN = "ledger-begun"
    """The range of batches is chosen, nothing of it is written."""
    LEDGER_TABLE_WRITTEN = "ledger-table-written"
    """One of quarantine, late and duplicates, not ops.ledger."""
    LATE_FOR_GROUP_WRITTEN = "late-for-group-written"
    """The late rows of a group, not the windows that they amend."""
    AMENDMENT_HALF_WRITTEN = "amendment-half-written"
    """Amended aggregates of a group, not its vectors."""
    AMENDMENT_WRITTEN = "amendment-written"
    """All amendments of a stream, not the end of the round."""
    MESSAGES_SENT = "messages-sent"
    """A channel has taken messages about alerts; ops.notifications has no row of them."""
    DEAD_ROWS_NOTED = "dead-rows-noted"
    """ops.dead_rows has the rows that a sink's target refuses; the lake does not know that the target has the batch, if it has."""
    BATCH_DELIVERED = "batch-delivered"
    """The target of a sink has a batch; the lake does not know it, nor that dead rows were among it."""
    DEAD_ROWS_OVER = "dead-rows-over"
    """ops.dead_rows says which rows a sink's target does not lack any more; the lake does not know that it has the batch."""
    FLOW_BEGUN = "flow-begun"
    """The slice of a flow of flows.yml is chosen, nothing of it is written."""
    FLOW_WRITTEN = "flow-written"
    """The rows of a slice, not what the next one needs, nor its end."""
    MODEL_WRITTEN = "model-written"
    """The file of a model, not its row in gold.models."""
    SNAPSHOT_DUE = "snapshot-due"
    """Everything but the row of the snapshot."""
    GATE_FAILED = "gate-failed"
    """The failure is among the results; the gate does not have it."""
    RETRY_NOTED = "retry-noted"
    """The verdict of a retry is written down; no table has changed."""
    RETRY_READMITTED = "retry-readmitted"
    """Its good rows are in late and duplicates, and in quarantine still."""
    RETRY_REPLACED = "retry-replaced"
    """All of it but the row of ops.ledger that ends it."""
    SILVER_REBUILT = "silver-rebuilt"
    """Replay: readings of the prefix, no gold."""
    GENERATION_BUILT = "generation-built"
    """All of the next generation, nobody asked to switch to it."""
    GENERATION_PROPOSED = "generation-proposed"
    """Asked, and the old one is active."""
    COMPACTED = "compacted"
    """The small files of one table are one, those of others not."""
    FILE_REMOVED = "file-removed"
    """One file that nobody needs is gone, others are not."""
    SWAPPED = "swapped"
    """The new one is active, no snapshot of it."""


_ASKED = os.environ.get(VARIABLE, "")
_NAME, _, _PASSING = _ASKED.removeprefix("stop:").partition(":")
_AT = Point(_NAME) if _NAME else None
_PASSINGS = count(1)
"""Counts how often that point was passed; two threads never get the same number."""


def point(passed: Point) -> None:
    """Does nothing, unless a test asked to end or to stop here."""
    if passed is _AT and next(_PASSINGS) == int(_PASSING or 1):
        os.killpg(0, signal.SIGSTOP if _ASKED.startswith("stop:") else signal.SIGKILL)
