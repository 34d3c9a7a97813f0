"""Make an earlier generation active again. `await_switch`, which replay.py uses too, waits until a requested switch is made."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location
from orchestration.storage import generations, snapshots
from orchestration.storage.generations import Generation
from orchestration.storage.lease import sole_writer

POLL_SECONDS = 0.5


def roll_back(lake: Location, number: int | None) -> Generation:
    """To that generation, or to the one that was active before; waits for a running process to take it up."""
    wanted = _wanted(lake, number)

    def switch() -> None:
        generations.switch(lake, datetime.now(UTC))
        snapshots.pin_again(lake, wanted.generation, datetime.now(UTC))

    generations.request_switch(lake, wanted)
    await_switch(lake, switch)
    return wanted


def await_switch(lake: Location, make: Callable[[], None]) -> None:
    """Wait until the requested switch is made: by `make` if no other process writes the lake, or by the one that does, at its next step."""
    while generations.requested_switch(lake) is not None:
        try:
            with sole_writer(lake):
                make()
        except HeldError:
            time.sleep(POLL_SECONDS)


def _wanted(lake: Location, number: int | None) -> Generation:
    switches = generations.switches(lake)
    active = switches[-1]
    others = {generation.generation: generation for generation in switches if generation.generation != active.generation}
    if not others:
        raise TidemarkError(f"generation {active.generation} is the only one of the lake at {lake}: there is nothing to roll back to.")
    if number is None:
        number = list(others)[-1]
    if number not in others:
        raise TidemarkError(f"there is no other generation {number} to roll back to; there is {', '.join(map(str, sorted(others)))}.")
    return replace(others[number], swap=active.swap + 1, cause=f"rollback from {active.generation}", bronze_batch=None)
