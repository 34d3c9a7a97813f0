"""The record of the lanes of silver: by bronze batch, which sources each one takes. A run writes it, and `verify` reads it too.

The default lane, silver.readings, takes all that no other takes, so that each event is of one lane, however conf has changed since it came.
A lane keeps its bounds: a source whose bounds change goes over to another lane, from the next bronze batch on. The name of a lane is never
given again: Delta would take the batches of a new one for repeats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestration.location import Location
from orchestration.storage.checkpoints import REPAIR
from orchestration.storage.state_file import StateFile
from silver.policy import Bounds

FLOW = "silver.readings"


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


def record_of(silver: Location) -> StateFile[Lanes]:
    """The file of the record, beside the checkpoint of silver.readings; none where there never was a lane but the default one."""
    return StateFile(silver / "lanes.json", Lanes, REPAIR)


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


def _left(member: Member, lane: Lane, bounds: Mapping[str, Bounds], first: int) -> Member:
    is_of_lane = member.last is not None or bounds.get(member.source) == lane.bounds
    return member if is_of_lane else replace(member, last=first - 1)
