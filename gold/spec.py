"""What a user declares about device groups: frozen, free of Spark, made by orchestration.conf from YAML."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Vector:
    """Features of one entity at one window, in declared order.

    `entity` is "device" (features are metrics) or "group" (features are `device.metric`).
    A feature without a fresh window is carried forward from one that ended at most `max_fill_seconds` earlier.
    """

    entity: str
    features: tuple[str, ...]
    max_fill_seconds: int = 0


class Late(StrEnum):
    """What becomes of rows that come when their window is closed."""

    AMEND = "amend"
    """They are folded in: the window comes again with a higher revision."""
    KEEP_ASIDE = "keep_aside"
    """They stay in silver.late and gold.late, and windows stay as they were emitted."""


@dataclass(frozen=True)
class Group:
    """A named set of devices. Groups with the same `stream` share a query, whose lateness is the largest of theirs.

    `idle_close_seconds` None: the last windows stay open until newer readings come.
    """

    name: str
    metrics: tuple[str, ...]
    lateness_seconds: int
    stream: str
    vector: Vector | None = None
    idle_close_seconds: int | None = None
    label: str | None = None
    devices: tuple[str, ...] = ()
    late: Late = Late.AMEND
