"""`make chaos`: rounds over all phases, each kill in a plant of its own; told as a table and in artifacts/chaos.json.

A kill is told by its seed and its phase, and comes again by `SEED=... ROUNDS=1 PHASE=...`: the same files, the same passing of the phase.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos import far_side
from tests.chaos.account import assert_as_undisturbed
from tests.chaos.kill import kill
from tests.chaos.phases import FILES, PHASES, Phase
from tests.chaos.plants import Plant, events
from tests.object_store import Store
from tests.s3_proxy import Proxy

RESULT = Path("artifacts/chaos.json")
BEFORE = (FILES // 2, FILES - 3, 3, FILES - 2)
"""Files that a second run finds through already, by attempt: what comes then may have no row that is late for a group, say. A passing that
does not come is looked for earlier."""


@dataclass(frozen=True)
class Outcome:
    """What became of a plant that was killed; `outcome` is `as undisturbed`, or what was found instead."""

    phase: str
    seed: int
    is_hit: bool
    kills: list[str]
    outcome: str
    seconds: float

    @property
    def is_good(self) -> bool:
        """The phase was hit, and it did no harm."""
        return self.is_hit and self.outcome == "as undisturbed"


@dataclass(frozen=True)
class Round:
    """What the plants of a seed have in common. `seconds`: how long a run takes that nobody disturbs. `proxy`: of plants in a store."""

    seed: int
    folder: Path
    files: Sequence[Path]
    undisturbed: Plant
    seconds: float
    proxy: Proxy | None


def begun(seed: int, folder: Path, proxy: Proxy | None) -> Round:
    """Files, and a plant on the disk that nobody disturbs."""
    files, plant, begin = events(folder, FILES, seed), Plant(folder / "undisturbed"), time.monotonic()
    plant.land(files)
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    return Round(seed, folder, files, plant, time.monotonic() - begin, proxy)


def disturbed(this: Round, phase: Phase) -> Outcome:
    """Kill in the phase, bring to the end, compare."""
    draw, begin = random.Random(f"{this.seed} {phase.name}"), time.monotonic()
    # In a store a run in which the phase is not met takes minutes, so only passings that each run has are drawn.
    most = min(phase.passings, FILES) if this.proxy else phase.passings
    passing, seconds = draw.randint(1, most), draw.uniform(0, this.seconds)
    for attempt, before in enumerate(BEFORE):
        plant = Plant(this.folder / f"{PHASES.index(phase)}-{attempt}", store=this.proxy)
        if phase.has_sink:
            plant.add_sink()
        _land(plant, this.files, before if phase.is_second else 0)
        kills = [kill(plant, phase, max(1, passing >> attempt), seconds=seconds)]
        if kills[0].is_hit:
            break
    if draw.random() < 0.5:
        kills.append(kill(plant, phase, seconds=seconds))  # what mends is killed too, or the work that comes after
    return Outcome(phase.name, this.seed, kills[0].is_hit, [each.where for each in kills], _ended(plant, this), time.monotonic() - begin)


def _land(plant: Plant, files: Sequence[Path], before: int) -> None:
    """So many of the files are through already."""
    if before:
        plant.land(files[:before])
        assert plant.exit_code("run", "--once") == 0, plant.log_end()
    plant.land(files[before:])


def _ended(plant: Plant, this: Round) -> str:
    try:
        assert plant.exit_code("run", "--once") == 0, plant.log_end()
        assert_as_undisturbed(plant, this.undisturbed)
        assert not (plant.opened().conf.sinks and far_side.wrong(plant.opened().conf))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "as undisturbed"


def main() -> int:
    """Exit code 1: a phase was not hit, or a kill did harm."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--phase", default="", help="only phases whose name matches this regular expression")
    asked.add_argument("--store", choices=["disk", "s3"], default="disk", help="where the lakes that are killed lie")
    options = asked.parse_args()
    found: list[Outcome] = []
    for seed in range(options.seed, options.seed + options.rounds):
        with tempfile.TemporaryDirectory(prefix="tidemark-chaos-") as folder, _store(options.store, Path(folder)) as proxy:
            this = begun(seed, Path(folder), proxy)
            for phase in PHASES:
                if re.search(options.phase, phase.name):
                    found.append(disturbed(this, phase))
                    print(json.dumps(asdict(found[-1])), file=sys.stderr)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps([asdict(each) for each in found], indent=1))
    Console().print(_table(found))
    return 0 if all(each.is_good for each in found) else 1


@contextmanager
def _store(kind: str, folder: Path) -> Iterator[Proxy | None]:
    if kind == "disk":
        yield None
        return
    (folder / "store").mkdir()
    with Store(folder / "store").running() as store, Proxy(folder / "store", store.endpoint).running() as proxy:
        yield proxy


def _table(found: Sequence[Outcome]) -> Table:
    table = Table("phase", "rounds", "hit", "kills", "as undisturbed", "seconds", title="kills, and what became of the plants")
    for name in dict.fromkeys(each.phase for each in found):
        of_phase = [each for each in found if each.phase == name]
        counts = [len(of_phase), sum(each.is_hit for each in of_phase), sum(len(each.kills) for each in of_phase)]
        good = sum(each.outcome == "as undisturbed" for each in of_phase)
        table.add_row(name, *map(str, (*counts, good, round(sum(each.seconds for each in of_phase)))))
    return table


if __name__ == "__main__":
    sys.exit(main())
