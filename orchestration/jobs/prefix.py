"""The prefix of bronze at which all of gold is: what jobs behind it build on, and what a snapshot pins."""

from collections.abc import Mapping

from orchestration.engine.lake import Lake
from orchestration.engine.writing import is_half_done
from orchestration.jobs import retry
from orchestration.jobs.amendments import is_amended
from orchestration.storage.positions import GoldPosition, gold_position


def gold_positions(lake: Lake) -> dict[str, GoldPosition] | None:
    """Return the position of every stream; None if one has not begun."""
    positions = {stream: gold_position(lake, stream) for stream in lake.conf.streams}
    known_positions = {stream: position for stream, position in positions.items() if position is not None}
    return known_positions if len(known_positions) == len(positions) else None


def consistent_prefix(lake: Lake, positions: Mapping[str, GoldPosition] | None) -> int | None:
    """The bronze batch at which everything is; None while something is behind or half done, and before the first."""
    # Versions would pin what a kill left: of gold a part of a batch, of silver rows that are in quarantine as well.
    if positions is None or retry.pending(lake) is not None or any(is_half_done(lake, stream) for stream in positions):
        return None
    if not all(is_amended(lake, stream, reached) for stream, reached in positions.items()):
        return None
    prefixes = {reached.bronze_batch for reached in positions.values()} | {reached.accounted_for for reached in positions.values()}
    return prefixes.pop() if len(prefixes) == 1 and min(prefixes) >= 0 else None
