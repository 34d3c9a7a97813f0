"""Rollback: an earlier generation serves again."""

import time
from dataclasses import replace
from datetime import UTC, datetime

from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location
from orchestration.storage import generations, snapshots
from orchestration.storage.generations import Generation
from orchestration.storage.lease import sole_writer

POLL_SECONDS = 0.5


def roll_back(lake: Location, number: int | None) -> Generation:
    """To that generation, or to the one that served before; waits for a running process to take it up."""
    wanted = _wanted(lake, number)
    generations.request_switch(lake, wanted)
    while generations.requested_switch(lake) is not None:
        try:
            with sole_writer(lake):
                generations.switch(lake, datetime.now(UTC))
                snapshots.pin_again(lake, wanted.generation, datetime.now(UTC))
        except HeldError:
            time.sleep(POLL_SECONDS)
    return wanted


def _wanted(lake: Location, number: int | None) -> Generation:
    known = generations.switches(lake)
    serving = known[-1]
    others = {each.generation: each for each in known if each.generation != serving.generation}
    if not others:
        raise TidemarkError(f"generation {serving.generation} is the only one of the lake at {lake}: there is nothing to roll back to.")
    if number is None:
        number = list(others)[-1]
    if number not in others:
        raise TidemarkError(f"there is no other generation {number} to roll back to; there is {', '.join(map(str, sorted(others)))}.")
    return replace(others[number], swap=serving.swap + 1, cause=f"rollback from {serving.generation}", bronze_batch=None)
