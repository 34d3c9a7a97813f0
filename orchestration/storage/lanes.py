"""Lanes of silver: sources with equal bounds share a query, with a watermark of its own; so what one lane brings makes no other late.

The default lane, silver.readings, takes all that no other takes. `lanes.json` beside its checkpoint says, by bronze batch, which sources
the others take, so that each event is of one lane, however conf has changed since it came. A lane keeps its bounds: a source whose
bounds change goes over to another lane, from the next bronze batch on. The name of a lane is never given again: Delta would take the
batches of a new one for repeats.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gold.instants import SECOND
from orchestration.storage.bindings import THE_BEGINNING, Start, begin
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import answers, instant, literal, version_of
from orchestration.storage.positions import newest_read
from orchestration.storage.retention import first_version, is_whole
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import LakeStore
from silver.policy import Bounds

FLOW, EVENTS, LATE = "silver.readings", "bronze.events", "silver.late"
WAY_OUT = "Restore it with the checkpoint, or run `tidemark replay`."


@dataclass(frozen=True)
class Member:
    """A source of a lane from bronze batch `first` on, up to `last`; None: still."""

    source: str
    first: int
    last: int | None = None

    def sql(self) -> str:
        conditions = [f"source = '{self.source}'"]
        conditions += [f"bronze_batch >= {self.first}"] if self.first else []
        conditions += [] if self.last is None else [f"bronze_batch <= {self.last}"]
        return f"({' and '.join(conditions)})"


@dataclass(frozen=True)
class Lane:
    """A lane that is not the default one. `first`: the first bronze batch of which it writes rows. `is_over`: all are written."""

    name: str
    bounds: Bounds
    first: int
    members: list[Member] = field(default_factory=list)
    is_over: bool = False

    @property
    def flow(self) -> str:
        return f"{FLOW}@{self.name}"

    @property
    def sources(self) -> list[str]:
        """The sources that it takes by now."""
        return [member.source for member in self.members if member.last is None]

    @property
    def last(self) -> int | None:
        """The last bronze batch of its sources; None where it has some still."""
        return None if self.sources else max((member.last for member in self.members if member.last is not None), default=None)

    def sql(self) -> str:
        """Events that it reads: those of its first sources from before it began too, for its state."""
        return " or ".join(replace(member, first=0 if member.first == self.first else member.first).sql() for member in self.members)


@dataclass(frozen=True)
class Lanes:
    """The lanes of one generation of silver beside the default one, those that are over too.

    `last_of_default`: the last bronze batch of sources of the default lane; None where it has some still.
    """

    every: list[Lane] = field(default_factory=list)
    last_of_default: int | None = None

    @property
    def present(self) -> list[Lane]:
        return [lane for lane in self.every if not lane.is_over]

    @property
    def flows(self) -> list[str]:
        """Names of the queries of silver, the default lane first."""
        return [FLOW, *(lane.flow for lane in self.present)]

    def of_default(self) -> str | None:
        """SQL of events of the default lane; None for all."""
        others = [member.sql() for lane in self.every for member in lane.members]
        return f"not ({' or '.join(others)})" if others else None

    def of_row(self) -> str:
        """SQL for the name of the lane that wrote a row; no text for the default one."""
        cases = "".join(f" when {member.sql()} then '{lane.name}'" for lane in self.every for member in lane.members)
        return f"case{cases} else '' end" if cases else "''"

    def of_source(self, source: str) -> str:
        """The query that takes what the source brings by now."""
        return next((lane.flow for lane in self.every if source in lane.sources), FLOW)


def changed(lanes: Lanes, bounds: Mapping[str, Bounds], default: Bounds, first: int) -> Lanes:
    """The lanes under a conf with these bounds, by source, from bronze batch `first` on."""
    kept = [replace(lane, members=[_left(member, lane, bounds, first) for member in lane.members]) for lane in lanes.every]
    for source, own in bounds.items():
        if own == default or any(source in lane.sources for lane in kept):
            continue
        at = next((at for at, lane in enumerate(kept) if lane.bounds == own and lane.sources), None)
        if at is None:
            name = source if all(lane.name != source for lane in kept) else f"{source}_{first}"
            kept.append(Lane(name, own, first, [Member(source, first)]))
        else:
            kept[at] = replace(kept[at], members=[*kept[at].members, Member(source, first)])
    last = first - 1 if lanes.last_of_default is None else lanes.last_of_default
    return Lanes(kept, None if default in bounds.values() else last)


def lanes_of(lake: LakeStore) -> Lanes:
    """Return the lanes under today's conf."""
    recorded, default = _recorded(lake), _default(lake)
    if not recorded.every and {*lake.conf.bounds.values()} <= {default}:
        return recorded
    lanes = changed(recorded, lake.conf.bounds, default, next_bronze_batch(source_offsets(lake.table_path(EVENTS))))
    return replace(lanes, every=[replace(lane, is_over=lane.is_over or _is_over(lake, lane)) for lane in lanes.every])


def begin_lanes(lake: LakeStore) -> None:
    """Write the lanes down; begin new ones so that each knows the keys it must remember, and remove the checkpoints of those that are over.

    A new one begins as far back as its sources' newest readings are not late, and drops what is written already.
    """
    lanes, recorded = lanes_of(lake), _recorded(lake)
    if lanes == recorded:
        return
    for lane in lanes.every[len(recorded.every) :]:
        begin(lake, lane.flow, (lake.tables[FLOW],), _start(lake, lane))
    _file(lake).write(lanes)
    for lane in lanes.every:
        if lane.is_over:
            shutil.rmtree(lake.checkpoint(lane.flow).local, ignore_errors=True)


def begin_anew(lake: LakeStore, up_to: int) -> None:
    """Begin the queries of a generation of which a batch job has written the bronze batches up to one."""
    lanes = changed(Lanes(), lake.conf.bounds, _default(lake), 0)
    _file(lake).write(lanes)
    versions = versions_with_state(lake, lanes)
    following = first_version(lake.table_path(EVENTS), lambda most: most["bronze_batch"] >= up_to)
    for name in lanes.flows:
        begin(lake, name, (lake.tables[FLOW],), Start(versions.get(name, following), up_to))


def versions_with_state(lake: LakeStore, lanes: Lanes) -> dict[str, int]:
    """Return, by query, the version of bronze that holds the first event whose key it must remember; none for one that has seen none."""
    others = [source for lane in lanes.present for source in lane.sources]
    of_default = f"source not in {literal(others)}" if others else "true"
    versions = {FLOW: _version_with_state(lake, lake.conf.policy.lateness_seconds, of_default)}
    versions |= {lane.flow: _version_with_state(lake, lane.bounds.lateness_seconds, _of(lane)) for lane in lanes.present}
    return {name: version for name, version in versions.items() if version is not None}


def _of(lane: Lane) -> str:
    return f"source in {literal(lane.sources)}" if lane.sources else "false"


def _version_with_state(lake: LakeStore, lateness_seconds: int, where: str) -> int | None:
    """None where nothing has come. Late rows count where there are no others: a source may have been late as a whole."""
    times = (_answer(lake, name, "arrow_cast(max(event_time), 'Int64')", where) for name in (FLOW, LATE))
    newest = next((at for at in times if at is not None), None)
    if newest is None:
        return None
    of_state = f"{where} and event_time >= {instant(newest - lateness_seconds * SECOND)}"
    batches = (_answer(lake, name, "min(bronze_batch)", of_state) for name in (FLOW, LATE))
    first = min(batch for batch in batches if batch is not None)
    return first_version(lake.table_path(EVENTS), lambda most: most["bronze_batch"] >= first)


def _answer(lake: LakeStore, name: str, what: str, where: str) -> int | None:
    rows = answers(lake.table_path(name), f"select {what} as answer from rows where {where}")
    return None if not rows or rows[0]["answer"] is None else int(rows[0]["answer"])


def _start(lake: LakeStore, lane: Lane) -> Start:
    """Without state where nothing of its sources has come, or where bronze is not there commit by commit any more."""
    if lane.first == 0:
        return THE_BEGINNING
    bronze = lake.table_path(EVENTS)
    version = _version_with_state(lake, lane.bounds.lateness_seconds, _of(lane))
    return Start(version if version is not None and is_whole(bronze, version) else version_of(bronze), lane.first - 1)


def _left(member: Member, lane: Lane, bounds: Mapping[str, Bounds], first: int) -> Member:
    is_of_lane = member.last is not None or bounds.get(member.source) == lane.bounds
    return member if is_of_lane else replace(member, last=first - 1)


def _is_over(lake: LakeStore, lane: Lane) -> bool:
    """Whether no source is left, and silver has passed the last batch of those that were."""
    if lane.last is None:
        return False
    done = newest_batch(lake.checkpoint(FLOW) / "commits")
    passed = newest_read(lake, FLOW, done, EVENTS) if done >= 0 else None
    return passed is not None and passed >= lane.last


def _default(lake: LakeStore) -> Bounds:
    return Bounds(lake.conf.policy.lateness_seconds, lake.conf.policy.max_future_seconds)


def _recorded(lake: LakeStore) -> Lanes:
    return _file(lake).read() or Lanes()


def _file(lake: LakeStore) -> StateFile[Lanes]:
    return StateFile(lake.checkpoint(FLOW) / "lanes.json", Lanes, WAY_OUT)
