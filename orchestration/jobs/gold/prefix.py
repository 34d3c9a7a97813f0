"""The prefix of bronze at which all of gold is: flows and alerts follow it, and a snapshot pins it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from orchestration.engine.lake import Lake
from orchestration.engine.writing import is_half_done
from orchestration.jobs.account import retry
from orchestration.jobs.gold.amendments import is_amended
from orchestration.storage.delta import ask, open_table
from orchestration.storage.positions import GoldPosition, gold_position


@dataclass(frozen=True)
class Prefix:
    """All bronze batches up to one at which all of gold is, and the position of each stream then."""

    bronze_batch: int
    positions: Mapping[str, GoldPosition]
    _newest: dict[int, int | None] = field(default_factory=dict)

    def newest_reading(self, lake: Lake, start: int) -> int | None:
        """Return the newest reading of bronze batches after `start`, in microseconds since 1970; most flows and alerts ask for the same."""
        if start not in self._newest:
            batches = f"bronze_batch > {start} and bronze_batch <= {self.bronze_batch}"
            readings = {"rows": open_table(lake.table_path("silver.readings"))}
            answer = ask(f"select max(event_time) as newest from rows where {batches}", readings).read_all()
            self._newest[start] = answer["newest"].cast(pa.int64())[0].as_py()
        return self._newest[start]


def consistent_prefix(lake: Lake) -> Prefix | None:
    """Return the prefix at which everything is; None while something is behind or half done, and before the first batch."""
    positions = {stream: reached for stream in lake.conf.streams if (reached := gold_position(lake, stream)) is not None}
    # Versions would pin what a kill left: of gold a part of a batch, of silver rows that are in quarantine as well.
    if len(positions) < len(lake.conf.streams) or retry.pending(lake) is not None or any(is_half_done(lake, name) for name in positions):
        return None
    if not all(is_amended(lake, stream, reached) for stream, reached in positions.items()):
        return None
    batches = {batch for reached in positions.values() for batch in (reached.bronze_batch, reached.accounted_for)}
    return Prefix(batches.pop(), positions) if len(batches) == 1 and min(batches) >= 0 else None
