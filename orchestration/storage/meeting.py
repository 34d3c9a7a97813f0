"""Lanes of silver meet at each bronze batch: the rows of all are one commit of silver.readings, as if one query had written them.

So a version of silver.readings holds whole bronze batches, in their order, and whatever reads it need not know of lanes. Each lane computes
its files and waits for the others; the one that comes last commits. Then all return, and Spark notes the batch in each checkpoint. A
lane whose checkpoint lacks a batch after a kill finds its own transaction in the log, and does not come here.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestration import crash
from orchestration.storage.data_files import DataFile

PAUSE_SECONDS = 0.05
Transaction = tuple[str, int]


class StoppedError(Exception):
    """Raised inside a micro-batch before it has written anything: the run is to end, or another lane has ended before it came so far."""


@dataclass(frozen=True)
class Share:
    """The files that a lane brings to a commit, and its transaction."""

    files: Sequence[DataFile]
    transaction: Transaction


class Meeting:
    """The meeting of the queries of one run. `stop` is the run's own."""

    def __init__(self, starts: Callable[[], Mapping[str, int]], commit: Callable[[Sequence[Share]], None]) -> None:
        """`starts`: by query, the bronze batch behind which it writes; asked once the queries have begun."""
        self.stop = threading.Event()
        self._starts, self._commit = starts, commit
        self._come = threading.Condition()
        self._shares: defaultdict[int, dict[str, Share]] = defaultdict(dict)
        self._committed = -1
        self._left: set[str] = set()

    def leave(self, query: str) -> None:
        """Say that a query has ended: nobody waits for it any more."""
        with self._come:
            self._left.add(query)
            self._come.notify_all()

    def bring(self, query: str, bronze_batch: int, share: Share) -> None:
        """Return when the rows of all lanes are written; StoppedError where that will not happen in this run."""
        others = {name for name, start in self._starts().items() if start < bronze_batch} - {query}
        with self._come:
            shares = self._shares[bronze_batch]
            shares[query] = share
            if others <= shares.keys():
                self._commit([shares[name] for name in sorted(shares)])  # the default lane is the first, whoever comes last
                del self._shares[bronze_batch]
                self._committed = bronze_batch
                self._come.notify_all()
                return
            crash.point(crash.Point.LANE_WAITS)
            while self._committed < bronze_batch:
                if self.stop.is_set() or (others - shares.keys()) & self._left:
                    raise StoppedError
                self._come.wait(PAUSE_SECONDS)
