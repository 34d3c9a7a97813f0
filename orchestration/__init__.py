"""The only place that reads, writes, starts, stops and schedules; the layers are pure functions that it wires together.

From Python: `from orchestration import Lake; lake = Lake.open("conf"); lake.sql("select ...")`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.engine.lake import Lake as Lake


def __getattr__(name: str) -> object:
    """`Lake`, imported when it is first asked for: `tidemark check` and `--help` must not wait for Spark."""
    if name == "Lake":
        from orchestration.engine.lake import Lake

        return Lake
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
