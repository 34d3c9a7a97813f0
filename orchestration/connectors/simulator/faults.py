"""Labelled faults of devices: each changes values of one device from one instant on, and says which and for how long."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orchestration.connectors.simulator.messages import Floats


@dataclass(frozen=True)
class Fault:
    """Rows from `begin` to before `end` of a device are changed. `series`: that it is seen in first."""

    kind: str
    begin: int
    end: int
    series: int


@dataclass(frozen=True)
class Site:
    """A device in which a fault is planted: its values, a row a tick, a column a series; ticks of a day; random numbers."""

    values: Floats
    day: int
    rng: np.random.Generator
    begin: int
    series: int

    @property
    def deviation(self) -> float:
        return float(self.values[:, self.series].std())

    def rows(self, days: float) -> slice:
        """Return rows from the begin on, at least one."""
        return slice(self.begin, self.begin + max(1, round(days * self.day)))

    def add(self, rows: slice, change: Floats | float) -> slice:
        self.values[rows, self.series] += change
        return rows

    def sign(self) -> float:
        return float(self.rng.choice([-1, 1]))


def _spike(site: Site) -> slice:
    jitter = float(np.diff(site.values[:, site.series]).std()) / 1.4
    return site.add(site.rows(1.5 / site.day), site.sign() * (2.5 * site.deviation + 4 * jitter))


def _drift(site: Site) -> slice:
    rows = site.rows(1)
    return site.add(rows, site.sign() * np.linspace(0, 3, rows.stop - rows.start) * site.deviation)


def _stuck(site: Site) -> slice:
    rows = site.rows(1 / 3)
    site.values[rows, site.series] = site.values[site.begin, site.series]
    return rows


def _dropout(site: Site) -> slice:
    rows, values = site.rows(site.rng.uniform(0.04, 0.14)), site.values[:, site.series]
    values[rows] = 0 if abs(values.mean()) > 3 * site.deviation else values.min() - 2 * site.deviation
    return rows


def _shifted(site: Site) -> slice:
    """The day of the device comes a third later."""
    rows, by = site.rows(1), round(0.3 * site.day)
    site.values[rows] = site.values[rows.start - by : rows.stop - by].copy()
    return rows


def _swapped(site: Site) -> slice:
    """Two sensors are connected crosswise; each is calibrated as the other."""
    rows, other = site.rows(0.5), (site.series + 1) % site.values.shape[1]
    pair = [site.series, other]
    middle, spread = site.values[:, pair].mean(axis=0), site.values[:, pair].std(axis=0)
    scaled = (site.values[rows][:, pair] - middle) / spread
    site.values[rows, pair[0]], site.values[rows, pair[1]] = (scaled[:, [1, 0]] * spread + middle).T
    return rows


def _correlation(site: Site) -> slice:
    """A sensor shows plausible values that have nothing to do with the others."""
    rows = site.rows(0.5)
    site.values[rows, site.series] = site.values[rows.start - 3 * site.day : rows.stop - 3 * site.day, site.series][::-1].copy()
    return rows


def _leak(site: Site) -> slice:
    rows = site.rows(3)
    return site.add(rows, -np.linspace(0, 2, rows.stop - rows.start) * site.deviation)


FAULTS: dict[str, Callable[[Site], slice]] = {
    "spike": _spike,
    "drift": _drift,
    "stuck": _stuck,
    "dropout": _dropout,
    "shifted cycle": _shifted,
    "swapped sensors": _swapped,
    "changed correlation": _correlation,
    "slow leak": _leak,
}
"""Each changes the values of a site; returns the rows that it has changed."""


def plant(kind: str, site: Site) -> Fault:
    """Plant a fault in the values of a site, three days after their first at the earliest."""
    rows = FAULTS[kind](site)
    return Fault(kind, rows.start, rows.stop, site.series)
