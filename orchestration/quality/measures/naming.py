"""What a change of values looks like: another unit, a power of ten, or another metric of the same device."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from silver.spec import Metric

POWERS = (1000.0, 100.0, 10.0, 60.0, 3600.0)
CLOSE = 0.1
"""A median within a tenth of the change that a unit explains counts as explained."""


@dataclass(frozen=True)
class Moved:
    """Median and standard deviation of a series before, and its median now: a change that began within the last day shows in it whole."""

    before: float
    deviation: float
    now: float

    @property
    def has_moved(self) -> bool:
        """Far enough to be mistaken for nothing else."""
        return abs(self.now - self.before) > 2 * self.deviation


def describe_change(device_id: str, metric: str, moved: Mapping[tuple[str, str], Moved], metrics: Mapping[str, Metric]) -> str:
    """In words; empty if the change matches none of these."""
    this = moved[device_id, metric]
    for (other_device, other), that in moved.items():
        if other_device == device_id and other != metric and _is_swapped(this, that):
            return f"it looks swapped with {other}"
    return next((text for text, expected in _units(metric, this, metrics) if _is_close(this, expected)), "")


def _is_swapped(this: Moved, that: Moved) -> bool:
    """Each is now what the other was, and neither what it was."""
    there, back = abs(this.now - that.before), abs(that.now - this.before)
    return this.has_moved and that.has_moved and there <= 2 * that.deviation and back <= 2 * this.deviation


def _units(metric: str, this: Moved, metrics: Mapping[str, Metric]) -> Iterator[tuple[str, float]]:
    declared = metrics.get(metric)
    for unit, conversion in (declared.conversions if declared else {}).items():
        yield f"its unit looks changed, to {unit} without being converted", (this.before - conversion.add) / conversion.multiply
        yield f"its unit looks changed, converted from {unit} once too often", this.before * conversion.multiply + conversion.add
    for power in POWERS:
        yield f"its unit looks changed, values are {power:g} times as large", this.before * power
        yield f"its unit looks changed, values are {power:g} times as small", this.before / power


def _is_close(this: Moved, expected: float) -> bool:
    """Nearer to what the unit explains than a tenth of the way."""
    return abs(this.now - expected) <= CLOSE * abs(expected - this.before)
