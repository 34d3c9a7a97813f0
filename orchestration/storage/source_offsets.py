"""How far bronze has read each source: in the commits of bronze.events themselves.

A commit that brings events of sources says up to which offsets, and repeats those of all others. So the newest of these commits knows all,
and no checkpoint beside the table can disagree with it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import actions, log_of, version_of
from orchestration.storage.tables import LakeStore

KEY = "tidemark.sources"
"""In the `commitInfo` of a commit."""


@dataclass(frozen=True)
class SourceOffset:
    """`bronze_batch`: the last one that read the source, perhaps without a row. `offset`: in the source's own words."""

    bronze_batch: int
    offset: Mapping[str, Any]


def refuse_earlier_version(lake: LakeStore) -> None:
    """TidemarkError for a lake whose bronze has a checkpoint of Spark: without its account, all files would be read again."""
    if (checkpoint := lake.checkpoint("bronze.events")).exists():
        raise TidemarkError(
            f"the lake at {lake.conf.lake} was written by an earlier version of Tidemark, which kept account of files in {checkpoint}.\n"
            "  Name another `lake` in pipeline.yml: it is built anew from the landing folders. The old one can be read by the old version."
        )


def source_offsets(events: Location) -> dict[str, SourceOffset]:
    """Of every source that was ever read, by its name."""
    _, told = _told(events)
    return {name: SourceOffset(**known) for name, known in json.loads(told).items()}


def offsets_told_at(events: Location) -> int:
    """The newest version of bronze.events that tells offsets: its entry in the log must stay. -1 for none."""
    version, _ = _told(events)
    return version


def with_offsets(known: Mapping[str, SourceOffset], bronze_batch: int, new: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What the commit of a batch says that brings sources to new offsets."""
    read = {name: SourceOffset(bronze_batch, offset) for name, offset in new.items()}
    return {KEY: json.dumps({name: asdict(of_source) for name, of_source in {**known, **read}.items()})}


def next_bronze_batch(known: Mapping[str, SourceOffset]) -> int:
    """Behind every batch that was written, also one without rows."""
    return max((of_source.bronze_batch for of_source in known.values()), default=-1) + 1


def _told(events: Location) -> tuple[int, str]:
    """That version, and what it tells, as JSON."""
    for version in range(version_of(events), -1, -1):
        entry = log_of(events, version)
        if not entry.exists():
            break
        for action in actions(entry.local, "commitInfo"):
            if KEY in action["commitInfo"]:
                return version, action["commitInfo"][KEY]
    return -1, "{}"
