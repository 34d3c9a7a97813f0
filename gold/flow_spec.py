"""What a user declares about flows beside windows: frozen, free of Spark, made by orchestration.conf from YAML.

Durations are in seconds. Predicates are SQL over a reading; who reads rows evaluates them, and hands them to the layer as columns.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Sessions:
    """Activity of a device: readings that follow each other within less than the gap. `metric` None: readings of any."""

    gap_seconds: int
    metric: str | None = None


class Join(StrEnum):
    """Which rows without a partner are kept."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"


class By(StrEnum):
    """What two readings of a pair have in common."""

    DEVICE = "device"
    ZONE = "zone"


@dataclass(frozen=True)
class Pairs:
    """A reading of `left` and each of `right` that is from `from_seconds` to `until_seconds` after it, both included.

    `left_when`, `right_when`: predicates that readings of each side have to meet; None for all.
    """

    left: str
    right: str
    until_seconds: int
    from_seconds: int = 0
    by: By = By.DEVICE
    join: Join = Join.INNER
    left_when: str | None = None
    right_when: str | None = None


@dataclass(frozen=True)
class Transition:
    """From one state to another: at a reading that meets `when`, or when `after_seconds` have passed in the state; one of them is set."""

    source: str
    target: str
    when: str | None = None
    after_seconds: int | None = None


@dataclass(frozen=True)
class StateMachine:
    """The state of a device, which is `initial` until a transition fits a reading of the metric. Of several the first that fits."""

    metric: str
    initial: str
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Silence:
    """A device is silent when no reading came for longer than `after_seconds`, and heard at its next one. `metric` None: of any."""

    after_seconds: int
    metric: str | None = None


@dataclass(frozen=True)
class Distance:
    """Metres that a device moved, by windows. Positions are readings of two metrics, in degrees, at the same instant."""

    latitude: str
    longitude: str
    every_seconds: int


@dataclass(frozen=True)
class DutyCycle:
    """Share of the known time in which `when` was true, by windows. A reading holds until the next one, and at most `hold_seconds`."""

    metric: str
    when: str
    every_seconds: int
    hold_seconds: int


@dataclass(frozen=True)
class Counter:
    """What a counter rose by, by windows. `wraps_at`: behind it the counter begins at 0 again; None where it never does."""

    metric: str
    every_seconds: int
    wraps_at: float | None = None


Kind = Sessions | Pairs | StateMachine | Silence | Distance | DutyCycle | Counter
TABLES: dict[str, tuple[type[Kind], str]] = {
    "sessions": (Sessions, "sessions"),
    "join": (Pairs, "pairs"),
    "states": (StateMachine, "states"),
    "silence": (Silence, "states"),
    "distance": (Distance, "measures"),
    "duty_cycle": (DutyCycle, "measures"),
    "counter": (Counter, "measures"),
}
"""By their keys in flows.yml: kinds, and the table of FLOW_KINDS that each writes."""


@dataclass(frozen=True)
class FlowSpec:
    """`group` None: all devices."""

    name: str
    of: Kind
    group: str | None = None

    @property
    def table(self) -> str:
        """The name of FLOW_KINDS."""
        return next(table for kind, table in TABLES.values() if isinstance(self.of, kind))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those whose readings it takes; empty for all."""
        match self.of:
            case Pairs(left=left, right=right):
                return tuple(dict.fromkeys((left, right)))
            case Distance(latitude=latitude, longitude=longitude):
                return latitude, longitude
            case _:
                return () if self.of.metric is None else (self.of.metric,)

    @property
    def predicates(self) -> tuple[str, ...]:
        """SQL over a reading, in the order of the columns `fits_0`, `fits_1` and so on; true where a side of a pair has none."""
        match self.of:
            case Pairs(left_when=left, right_when=right):
                return left or "true", right or "true"
            case StateMachine(transitions=transitions):
                return tuple(of.when or "false" for of in transitions)
            case DutyCycle(when=when):
                return (when,)
            case _:
                return ()
