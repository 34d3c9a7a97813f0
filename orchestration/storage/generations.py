"""Generations: incarnations of silver and gold, each with tables and checkpoints of its own. One is active; others wait, for a rollback.

A row of ops.generations says which one is active from then on, so that a switch is one commit. The first generation lies in the lake's own
folders, what a replay built lies in `generations/<number>` below it. A replay of one group builds the gold of its stream only; the rest
stays where it is. So the generation that holds the checkpoint of a stream has its rows of gold too, beside those of no other stream.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.kept import forget
from orchestration.storage.log import Log
from orchestration.storage.seals import damaged_log, listed
from orchestration.storage.state_file import StateFile

FOLDER = "generations"
REQUESTED = "proposed.json"


@dataclass(frozen=True)
class Generation:
    """Grain: one switch, a row of ops.generations.

    `swap`: number of the switch, from 1; 0 for the first generation, to which nobody switched. `generation`: number of the generation.
    `cause`: what led to it, in words. `bronze_batch`: the newest that a batch job built it from, null for the first and for a rollback.
    `places`: by folder below the lake, such as silver/readings or checkpoints/gold.kitchen, the generation that holds it; the first where
    a folder is not named.
    """

    swap: int = 0
    generation: int = 1
    at: datetime | None = None
    cause: str = "the first"
    bronze_batch: int | None = None
    places: dict[str, int] = field(default_factory=dict)

    def table(self, lake: Location, name: str) -> Location:
        """Return the path of a table by its name, whether it exists or not; of a table of gold by the name that `gold` gives it."""
        name, _, holder = name.partition("@")
        folder = name.replace(".", "/", 1)
        return _root(lake, int(holder)) / folder if holder else self._below(lake, folder)

    def gold(self, stream: str, kind: str) -> str:
        """The name of the table of gold that a stream writes: gold.<kind>, and in what a replay built @ and its generation behind it."""
        holder = self.holder(f"gold.{stream}")
        return f"gold.{kind}" + (f"@{holder}" if holder > 1 else "")

    def checkpoint(self, lake: Location, flow: str) -> Location:
        return _root(lake, self.holder(flow)) / f"checkpoints/{flow}"

    def holder(self, flow: str) -> int:
        """The generation whose folder holds the flow's checkpoint; all lanes of silver are in one."""
        return self.places.get(f"checkpoints/{flow.partition('@')[0]}", 1)

    def _below(self, lake: Location, folder: str) -> Location:
        return _root(lake, self.places.get(folder, 1)) / folder


GENERATIONS = Log("ops.generations", Generation, order="swap", is_maintained=True)


def switches(lake: Location) -> list[Generation]:
    """Every generation that ever became active, in that order, a rollback included; the first is always there."""
    if damages := damaged_log(GENERATIONS.path(lake)):
        raise TidemarkError(f"the log of {GENERATIONS.table} is damaged: {listed(damages)}.\n  Restore it from a backup.")
    return [Generation(), *GENERATIONS.rows(lake)]


def active_generation(lake: Location) -> Generation:
    """The one that readers and runs use now."""
    return switches(lake)[-1]


def numbered(lake: Location, number: int) -> Generation:
    """The one of that number; KeyError where none became active."""
    if number == 1:
        return Generation()  # whatever switched since: a store is not asked
    return {generation.generation: generation for generation in switches(lake)}[number]


def request_switch(lake: Location, generation: Generation) -> None:
    """Ask whoever writes the lake to switch to this one."""
    _requested(lake).write(generation)


def requested_switch(lake: Location) -> Generation | None:
    """The one that is to be active, if there is one that is not yet."""
    requested = _requested(lake).read()
    return requested if requested and requested.swap > active_generation(lake).swap else None


def switch(lake: Location, now: datetime) -> Generation | None:
    """Switch to the requested one, in one commit; None where there is none. Only who holds the lake may."""
    generation = requested_switch(lake)
    if generation is not None:
        forget(lake / FOLDER)  # until now another process wrote there
        GENERATIONS.append(lake, [replace(generation, at=now)])
    return generation


def folder_of(lake: Location, number: int) -> Location:
    return lake / FOLDER / str(number)


def _requested(lake: Location) -> StateFile[Generation]:
    return StateFile(lake / FOLDER / REQUESTED, Generation, "Remove it, and ask again, with `tidemark replay` or `tidemark rollback`.")


def _root(lake: Location, holder: int) -> Location:
    return lake if holder == 1 else folder_of(lake, holder)
