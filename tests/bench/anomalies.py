"""How many planted faults are found, at how many false alarms: `make bench NAME=anomalies`.

Devices of made-up plants have vectors every ten minutes: two weeks without a fault to learn, then two weeks with two faults, or none in
each fifth device. Seeds up to 10 served to choose the rules; the table is of seeds that did not. Beside the detector with its defaults are
a moving z-score, an alarm clock that knows nothing, and a detector that never alarms.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from resource import RUSAGE_SELF, getrusage
from time import process_time

import numpy as np
import numpy.typing as npt
from rich.console import Console

from gold.anomalies.alarms import Rule, alarms, with_threshold
from gold.anomalies.alone import Z
from gold.anomalies.judging import Judged, judge
from gold.anomalies.model import Series, train
from gold.anomalies.rows import Chain, Judges, judged, nothing
from gold.anomalies.tail import Floats
from gold.anomalies.vectors import Vectors
from orchestration.connectors.simulator.faults import FAULTS, Fault, drawn
from tests.bench.script import narrow_table, parser_for, script, write_report

DAY, FEATURES, LEARNED = 144, 8, 14 * 144
STEP = 86_400_000_000 // DAY
WEEK = 7 * DAY
GRACE = DAY // 4
"""Vectors after the end of a fault in which an alarm still counts."""


@dataclass(frozen=True)
class Device:
    """`values`: of both parts, with the faults in the second."""

    values: Floats
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Measured:
    """Shares of faults that are found, all and by kind, and of those found that are named; false alarms a device and week."""

    recall: float
    false: float
    by_kind: dict[str, float]
    named: dict[str, float]


Alarm = tuple[int, int]
"""A vector, and the series that is named first; -1 for none."""
Detector = Callable[[list[Device]], list[list[Alarm]]]


def plant_of(seed: int, devices: int) -> Iterator[Device]:
    rng, kinds = np.random.default_rng(seed), [*FAULTS]
    for number in range(devices):
        values, faults = _values(rng, 2 * LEARNED), []
        if number < devices * 4 // 5:
            for early, late in ((300, 500), (1100, 1400)):
                begin, series = LEARNED + int(rng.integers(early, late)), np.roll(np.arange(FEATURES), -rng.integers(FEATURES)).tolist()
                kind = kinds[number % len(kinds)]
                faults.append(drawn(kind, rng, begin, series, window=1, day=DAY, deviation=1.0, longest=np.inf))
                values = _with(faults[-1], values)
        yield Device(values, tuple(faults))


def _with(planted: Fault, values: Floats) -> Floats:
    """Return the values of a device with the fault."""
    middle, spread = values.mean(axis=0), values.std(axis=0)
    normal = (values - middle) / spread
    levels = normal.copy()
    planted.change(levels, np.arange(len(values)), lambda ticks, series: normal[ticks, series])
    with_fault: Floats = levels * spread + middle
    return with_fault


def _values(rng: np.random.Generator, count: int) -> Floats:
    """Two or three hidden causes with a day and a week, seen by sensors of any unit; some are heavy-tailed, some machines go on and off."""
    ticks = np.arange(count)
    causes = [_cause(rng, ticks) for _ in range(rng.integers(2, 4))]
    if rng.random() < 0.6:
        causes[0] += 1.5 * ((ticks % DAY > rng.integers(30, 60)) & (ticks % DAY < rng.integers(90, 130)))
    values = np.stack(causes, axis=1) @ rng.normal(size=(len(causes), FEATURES))
    values += rng.normal(size=values.shape) * rng.uniform(0.05, 0.4, FEATURES)
    if rng.random() < 0.5:
        values[:, -1] = np.exp(0.7 * values[:, -1])
    return values * rng.uniform(0.1, 50, FEATURES) + rng.uniform(-100, 100, FEATURES)


def _cause(rng: np.random.Generator, ticks: npt.NDArray[np.int64]) -> Floats:
    white, level = rng.normal(size=len(ticks)) * 0.15, np.empty(len(ticks))
    last = 0.0
    for tick in range(len(ticks)):
        last = level[tick] = 0.9 * last + white[tick]
    for days, least, most in ((1, 0.3, 1.5), (0.5, 0, 0.4), (7, 0, 0.3)):
        level += rng.uniform(least, most) * np.sin(2 * np.pi * ticks / DAY / days + rng.uniform(0, 2 * np.pi))
    return level


def of_model(devices: list[Device]) -> list[list[Alarm]]:
    ends = (np.arange(2 * LEARNED) + 1) * STEP
    history = [(str(number), Series(ends[:LEARNED], device.values[:LEARNED])) for number, device in enumerate(devices)]
    model = train([f"f{number}" for number in range(devices[0].values.shape[1])], STEP, history)
    judged = (
        judge(model, name, Series(ends[LEARNED:], device.values[LEARNED:]), device.values[:LEARNED][-20:], None)
        for (name, _), device in zip(history, devices, strict=True)
    )
    return [[(int(at), first_named(of_device, int(at))) for at in np.flatnonzero(of_device.is_alarm)] for of_device in judged]


def first_named(judged: Judged, at: int) -> int:
    return int(np.nan_to_num(judged.shares[at]).argmax())


def moving_z(devices: list[Device]) -> list[list[Alarm]]:
    """Each feature against the mean and the deviation of its last day, with the alarm rule at one alarm a week of the training."""
    scores = []
    for device in devices:
        days = np.lib.stride_tricks.sliding_window_view(device.values, DAY, axis=0)[:-1]
        z = np.abs(device.values[DAY:] - days.mean(axis=2)) / (days.std(axis=2) + 1e-9)
        scores.append(z.max(axis=1))
    learned = [score[: LEARNED - DAY] for score in scores]
    rule = with_threshold(Rule(0.0, DAY, 6 * LEARNED), Z.tolist(), learned, len(scores) * (LEARNED - DAY) / WEEK)
    return [[(int(at), -1) for at in np.flatnonzero(alarms(rule, score[LEARNED - DAY :]).is_alarm)] for score in scores]


def alarm_clock(devices: list[Device]) -> list[list[Alarm]]:
    return [[(at, -1) for at in range(WEEK // 2, LEARNED, WEEK)] for _ in devices]


def always_quiet(devices: list[Device]) -> list[list[Alarm]]:
    return [[] for _ in devices]


DETECTORS: dict[str, Detector] = {"residual": of_model, "moving z": moving_z, "alarm clock": alarm_clock, "always quiet": always_quiet}


def found(devices: list[Device], raised: list[list[Alarm]]) -> Iterator[tuple[str, bool, bool]]:
    """Yield for each fault its kind, whether an alarm told it, and whether that named a series of it."""
    for device, of_device in zip(devices, raised, strict=True):
        for fault in device.faults:
            hits = [(at, series) for at, series in of_device if fault.begin <= at + LEARNED < fault.end + GRACE]
            right = fault.series[: 2 if fault.kind == "swapped sensors" else 1]
            yield fault.kind, bool(hits), bool(hits) and hits[0][1] in right


def single(device: Device) -> Device:
    """The series of the first fault alone, with the faults that are in it."""
    series = device.faults[0].series[0] if device.faults else 0
    return Device(device.values[:, [series]], tuple(fault for fault in device.faults if fault.series[0] == series))


def measure(detector: Detector, seeds: range, devices: int, of: Callable[[Device], Device] = lambda device: device) -> Measured:
    """Return by kind of fault the share that is found and named, and false alarms of a device without a fault and week."""
    rows, false, weeks = list[tuple[str, bool, bool]](), 0, 0.0
    for seed in seeds:
        of_seed = [of(device) for device in plant_of(seed, devices)]
        raised = detector(of_seed)
        rows += found(of_seed, raised)
        clean = [of_device for device, of_device in zip(of_seed, raised, strict=True) if not device.faults]
        false, weeks = false + sum(map(len, clean)), weeks + len(clean) * LEARNED / WEEK
    by_kind = {kind: [row[1:] for row in rows if row[0] == kind] for kind in FAULTS}
    recall = {kind: share(hit for hit, _ in of_kind) for kind, of_kind in by_kind.items()}
    named = {kind: share(name for hit, name in of_kind if hit) for kind, of_kind in by_kind.items()}
    return Measured(share(hit for _, hit, _ in rows), false / weeks, recall, named)


def speed(vectors: int, entities: int = 100) -> dict[str, float]:
    """Measure seconds of a training and of judging so many vectors of 8 features, of this process; and of one vector an entity."""
    values = np.random.default_rng(0).normal(size=(vectors // entities, FEATURES))
    ends = (np.arange(len(values)) + 1) * STEP
    names, features = [str(number) for number in range(entities)], tuple(f"f{number}" for number in range(FEATURES))
    before = process_time()
    model = train(features, STEP, ((name, Series(ends, values)) for name in names))
    trained, peak = process_time(), getrusage(RUSAGE_SELF).ru_maxrss / 1024**2
    for name in names:
        judge(model, name, Series(ends, values), values[:0], None)
    scored = process_time()
    judges = Judges("plant", features, STEP, Chain([0], [("plant-1", model)]))
    for name in names:
        judged(judges, name, Vectors(ends - STEP, ends, values), nothing(judges))
    whole = process_time()
    for name in names:
        judged(judges, name, Vectors(ends[:1] - STEP, ends[:1], values[:1]), nothing(judges))
    single_ms = (process_time() - whole) / entities * 1e3
    each = (scored - trained) / vectors * 1e6, (whole - scored) / vectors * 1e6
    return {"training_s": trained - before, "peak_gib": peak, "score_us": each[0], "row_us": each[1], "one_vector_an_entity_ms": single_ms}


def share(holds: Iterable[bool]) -> float:
    """Return the share of those that hold; 0 where there are none."""
    values = [*holds]
    return sum(values) / max(len(values), 1)


def main() -> int:
    parser = parser_for(__doc__, "bench-anomalies", seeds=5, devices=40, first=101, vectors=1_000_000)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    measured = {name: measure(detector, seeds, options.devices) for name, detector in DETECTORS.items()}
    measured["residual, one feature"] = measure(of_model, seeds, options.devices, single)
    table = narrow_table("planted faults", "found", "false a week", *FAULTS)
    for name, result in measured.items():
        table.add_row(name, *(f"{part:.2f}" for part in (result.recall, result.false, *result.by_kind.values())))
    table.add_row("first feature right", "", "", *(f"{part:.2f}" for part in measured["residual"].named.values()))
    speeds = speed(options.vectors)
    Console(width=160).print(table, f"{options.vectors:,} vectors: " + ", ".join(f"{name} {value:.2f}" for name, value in speeds.items()))
    write_report(options, {name: asdict(result) for name, result in measured.items()} | {"speed": speeds})
    return 0


if __name__ == "__main__":
    script(main)
