"""Steps of samples for tests of alerts, and runs that judge them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from gold.alerts.spec import Alert, Escalation, Flapping, Hours, NoData, Signal
from gold.alerts.states import Judged, State, judge
from gold.instants import to_micros
from gold.schema import SAMPLES

START = datetime(2026, 1, 5, tzinfo=UTC)
ALERT = Alert("hot", Signal("reading", "temperature"), "value > 280")
UNDERWAY = 5
"""Seconds from a sample to its ingestion, where a test says nothing of it."""
Sample = tuple[float, bool | None]


class Step(NamedTuple):
    """A bronze batch, or a tick where there are no samples. `wall`: its clock in seconds; samples are of entity, seconds and verdict."""

    wall: float
    samples: Sequence[tuple[str, float, bool | None]] = ()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def table(steps: Sequence[Step]) -> pa.Table:
    """Samples of steps; the value is the seconds, and what is true has them as its reason."""
    samples = [
        {"entity": entity, "at": at(s), "verdict": verdict, "value": float(s), "ingested_at": at(step.wall), "step": number}
        | {"bronze_batch": 7, "bronze_row": row, "reason": f"{s} s" if verdict else None}
        for number, step in enumerate(steps)
        for row, (entity, s, verdict) in enumerate(sorted(step.samples, key=lambda sample: sample[:2]))
    ]
    return pa.Table.from_pylist(samples, SAMPLES)


def judged(alert: Alert, states: dict[str, State], steps: Sequence[Step]) -> Judged:
    return judge(alert, states, table(steps), [to_micros(at(step.wall)) for step in steps])


def lived(alert: Alert, steps: Iterable[Step], until: float, states: dict[str, State] | None = None) -> list[dict[str, Any]]:
    """Rows of a run that is there from step to step, and ticks when time alone would change something."""
    states, rows, rings_at = states or {}, list[dict[str, Any]](), None
    for step in [*steps, Step(until + UNDERWAY)]:
        while True:
            tick = None if rings_at is None or rings_at >= to_micros(at(step.wall)) else Step((rings_at - to_micros(START)) / 1e6)
            changes, states, rings_at = judged(alert, states, [tick or step])
            rows += changes.to_pylist()
            if tick is None:
                break
    return rows


def rows_of(alert: Alert, samples: Sequence[Sample], until: float) -> list[dict[str, Any]]:
    """Rows where each sample is ingested by itself."""
    return lived(alert, [Step(second + UNDERWAY, [("oven", second, verdict)]) for second, verdict in samples], until)


def changes(alert: Alert, samples: Sequence[Sample], until: float = 100_000) -> list[tuple[float, str]]:
    """Seconds and the state that one entity changes to."""
    return seen(rows_of(alert, samples, until))


def seen(rows: Iterable[dict[str, Any]]) -> list[tuple[float, str]]:
    return [((row["changed_at"] - START).total_seconds(), row["state"]) for row in rows]


def optional(setting: st.SearchStrategy[Any], absent: Any = None) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(absent), setting)


ALERTS = st.builds(
    lambda wait, **others: replace(ALERT, **wait, **others),
    wait=st.sampled_from([{}, {"for_seconds": 7}, {"for_times": 3}]),
    keep_firing_seconds=st.sampled_from([0, 5, 20]),
    no_data=optional(st.builds(NoData, st.integers(1, 15), st.sampled_from(["keep", "fire", "resolve"]), st.integers(1, 3))),
    escalate=st.sampled_from([(), (Escalation(4, "high"), Escalation(11, "critical"))]),
    hours=optional(st.just(Hours("Europe/Berlin", (0, 1), 60, 62))),  # 00:00 to 00:02 in UTC, on the day of START
    flapping=optional(st.builds(Flapping, st.sampled_from([0.3, 0.5]), st.integers(2, 6))),
)
OF_STEP = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 180), st.sampled_from([True, False, None])), max_size=6)


@st.composite
def steps_of_a_run(draw: st.DrawFn) -> list[Step]:
    """Batches with samples in any order, and ticks; each instant of an entity once."""
    taken, steps, wall = set[tuple[str, int]](), list[Step](), 0
    for samples in draw(st.lists(OF_STEP, min_size=1, max_size=12)):
        wall += draw(st.integers(0, 40))
        new = {sample[:2]: sample for sample in samples if sample[:2] not in taken}
        taken |= new.keys()
        steps.append(Step(wall, [*new.values()]))
    return steps


STEPS = steps_of_a_run()
