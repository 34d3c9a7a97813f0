"""How far bronze has read each source: in the commits of bronze.events themselves.

A commit that brings events of sources says up to which offsets, and repeats those of all others. So the newest of these commits knows all,
and no checkpoint beside the table can disagree with it.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import actions, committed_at, log_of, version_of
from orchestration.storage.tables import LakeStore

KEY = "tidemark.sources"
"""Key in the `commitInfo` of a commit."""


@dataclass(frozen=True)
class SourceOffset:
    """`bronze_batch`: the last one that read the source, perhaps without a row. `offset`: in the source's own words.

    `rows`: that were read of it. `received_at`: the newest in the last batch that had rows, in ISO 8601, UTC, to the second; None for none.
    """

    bronze_batch: int
    offset: Mapping[str, Any]
    rows: int = 0
    received_at: str | None = None


def refuse_earlier_version(lake: LakeStore) -> None:
    """TidemarkError for a lake whose bronze has a checkpoint of Spark: without its account, all files would be read again.

    And for one whose groups have tables of gold each: rows of these would come a second time.
    """
    if (checkpoint := lake.checkpoint("bronze.events")).is_dir():
        raise TidemarkError(
            f"the lake at {lake.conf.lake} was written by an earlier version of Tidemark, which kept account of files in {checkpoint}.\n"
            "  Name another `lake` in pipeline.yml: it is built anew from the landing folders. The old one can be read by the old version."
        )
    if old := [*lake.conf.lake.glob("gold/*_aggregates"), *lake.conf.lake.glob("generations/*/gold/*_aggregates")]:
        raise TidemarkError(
            f"{old[0]} was written by an earlier version of Tidemark, which had tables of gold for each group.\n"
            f"  Move `gold` and `checkpoints/gold.*` of {lake.conf.lake}, and of its `generations/*`, away: the next run builds gold anew."
        )


def source_offsets(events: Location) -> dict[str, SourceOffset]:
    """Read the offset of every source that was ever read, by its name."""
    return _parsed(_newest_entry(events, version_of(events))[1])


def offsets_told_at(events: Location) -> int:
    """Return the newest version of bronze.events whose commit has offsets: its entry in the log must stay. -1 for none."""
    return _newest_entry(events, version_of(events))[0]


def rows_since(events: Location, instant: datetime) -> dict[str, int]:
    """Count rows by source that came with commits after an instant."""
    # Entries that are gone count as the oldest. Where all before the instant are, rows of the first that is left are not counted.
    first = bisect_left(range(version_of(events) + 1), instant, key=partial(committed_at, events))
    before = _parsed(_newest_entry(events, first - 1 if log_of(events, first - 1).exists() else first)[1])
    return {name: now.rows - (before[name].rows if name in before else 0) for name, now in source_offsets(events).items()}


def with_offsets(
    before: Mapping[str, SourceOffset],
    bronze_batch: int,
    new: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, int],
    received_us: Mapping[str, int],
) -> dict[str, str]:
    """Return the `commitInfo` of a batch that brings sources to new offsets. `received_us`: since 1970, of the newest event."""
    offsets = dict(before)
    for name, offset in new.items():
        last = before.get(name) or SourceOffset(-1, {})
        received_at = f"{np.datetime64(received_us[name] // 1_000_000, 's')}Z" if name in received_us else last.received_at
        offsets[name] = SourceOffset(bronze_batch, offset, last.rows + rows.get(name, 0), received_at)
    return {KEY: json.dumps({name: asdict(offset) for name, offset in offsets.items()})}


def next_bronze_batch(offsets: Mapping[str, SourceOffset]) -> int:
    """Return the number after every batch that was written, also one without rows."""
    return max((offset.bronze_batch for offset in offsets.values()), default=-1) + 1


def _parsed(text: str) -> dict[str, SourceOffset]:
    return {name: SourceOffset(**fields) for name, fields in json.loads(text).items()}


def _newest_entry(events: Location, newest: int) -> tuple[int, str]:
    """Find the last version up to `newest` whose commit has offsets; returns it and the offsets, as JSON."""
    for version in range(newest, -1, -1):
        entry = log_of(events, version)
        try:
            stored = [action["commitInfo"][KEY] for action in actions(entry, "commitInfo") if KEY in action["commitInfo"]]
        except FileNotFoundError:
            break
        if stored:
            return version, stored[0]
    return -1, "{}"
