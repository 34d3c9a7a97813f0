"""How well alarms tell labelled faults: which are found and how soon, false alarms, and the volume under precision and recall. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gold.anomalies.model import WEEK
from gold.anomalies.tail import Floats

BUFFER = 20
"""The widest buffer around faults, in vectors, half of it on each side: see `volume`."""


@dataclass(frozen=True)
class Fault:
    """A labelled time of one entity, in microseconds since 1970. `metric`: where it is, if the label says so."""

    entity: str
    begins_at: int
    ends_at: int
    kind: str
    metric: str = ""


@dataclass(frozen=True)
class Raised:
    """The alarms of one entity, by row, and a score a row. `first_features`: by row the one with the largest share, where that is known."""

    alarms: Sequence[int]
    scores: Floats
    first_features: Sequence[str] = ()


@dataclass(frozen=True)
class Found:
    """A fault as alarms tell it. `delay`: microseconds from its begin to the end of the first vector with an alarm; None: none in it.

    `is_named`: whether that alarm puts the metric of the fault first; None where that is not known.
    """

    kind: str
    delay: int | None
    is_named: bool | None = None


@dataclass(frozen=True)
class Tally:
    """Results of one entity, or of several. `weeks`: judged time of all entities. `volumes`: of each entity that has faults."""

    faults: tuple[Found, ...] = ()
    alarms: int = 0
    false: int = 0
    weeks: float = 0.0
    volumes: tuple[float, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        sums = self.alarms + other.alarms, self.false + other.false, self.weeks + other.weeks
        return Tally(self.faults + other.faults, *sums, self.volumes + other.volumes)


def rows_of(ends: npt.NDArray[np.int64], begins_at: int, ends_at: int) -> tuple[int, int]:
    """Return the first and the last row whose window has a part of this time; the next row where no window has, which may not be there."""
    first, last = int(np.searchsorted(ends, begins_at, "right")), int(np.searchsorted(ends, ends_at))
    return first, max(first, min(last, len(ends) - 1))


def tally(ends: npt.NDArray[np.int64], begin: int, faults: Sequence[Fault], raised: Raised) -> Tally:
    """Count what alarms from row `begin` on tell. A fault that begins before is not counted, and alarms in it are not false."""
    alarms = [row for row in raised.alarms if row >= begin]
    spans = [rows_of(ends, fault.begins_at, fault.ends_at) for fault in faults]
    false = sum(all(not first <= row <= last for first, last in spans) for row in alarms)
    counted, is_fault = list[Found](), np.zeros(len(ends), bool)
    for fault, (first, last) in zip(faults, spans, strict=True):
        if begin <= first < len(ends):
            is_fault[first : last + 1] = True
            counted.append(_found(fault, ends, next((row for row in alarms if first <= row <= last), None), raised))
    volumes = (volume(raised.scores[begin:], is_fault[begin:]),) if counted else ()
    weeks = (len(ends) - begin) * float(np.median(np.diff(ends))) / WEEK
    return Tally(tuple(counted), len(alarms), false, weeks, volumes)


def _found(fault: Fault, ends: npt.NDArray[np.int64], row: int | None, raised: Raised) -> Found:
    if row is None:
        return Found(fault.kind, None)
    name = raised.first_features[row] if fault.metric and raised.first_features else None
    is_named = None if name is None else name == fault.metric or name.endswith(f".{fault.metric}")
    return Found(fault.kind, int(ends[row]) - fault.begins_at, is_named)


def volume(scores: Floats, is_fault: npt.NDArray[np.bool_], buffer: int = BUFFER) -> float:
    """Return the volume under precision and recall over all thresholds, and over buffers of 0 to `buffer` rows around faults.

    VUS-PR: J. Paparrizos et al., Volume Under the Surface (2022). Rows near a fault count in part, so a score that rises a little early or
    late is not punished. Recall is multiplied by the share of faults in which some row is above the threshold.
    """
    edges = np.flatnonzero(np.diff(is_fault.astype(np.int8), prepend=0, append=0))
    starts, lasts = edges[::2], edges[1::2] - 1
    order = np.argsort(-scores, kind="stable")
    is_threshold = np.append(np.diff(scores[order]) != 0, True)
    areas = []
    for width in range(buffer + 1):
        labels = _buffered(is_fault, starts, lasts, width)
        hits = np.cumsum(labels[order])
        positives = is_fault.sum() + np.cumsum(np.where(is_fault, 0.0, labels)[order]) / 2
        peaks = _peaks(scores, starts, lasts, width // 2)
        recall = np.minimum(hits / positives, 1.0) * (peaks[:, None] >= scores[order]).mean(axis=0)
        precision = hits / np.arange(1, len(scores) + 1)
        areas.append(np.diff(recall[is_threshold], prepend=0.0) @ precision[is_threshold])
    return float(np.mean(areas))


def _buffered(is_fault: npt.NDArray[np.bool_], starts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64], width: int) -> Floats:
    labels = is_fault.astype(float)
    for away in range(1, width // 2 + 1):
        rows = np.concatenate([starts - away, lasts + away])
        np.add.at(labels, rows[(rows >= 0) & (rows < len(labels))], np.sqrt(1 - away / width))
    return np.asarray(np.minimum(labels, 1.0))


def _peaks(scores: Floats, starts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64], half: int) -> Floats:
    """Return the highest score of each fault with its buffer; faults whose buffers overlap are one."""
    is_apart = lasts[:-1] + half < starts[1:] - half
    spans = zip(starts[np.append(True, is_apart)], lasts[np.append(is_apart, True)], strict=True)
    return np.array([scores[max(start - half, 0) : last + half + 1].max() for start, last in spans])
