"""The view of batches: how long each query's batches took over a span of time, and the steps of the newest ones, slowest first."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.supervisor.history import history
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import SPANS

BARS, LEAST_HEIGHT = 120, 3.0
"""Bars of a chart; and the least percent at which a bar can be seen."""
PERCENTS = (50, 99)
STEPS = {
    "addBatch": "compute and write",
    "queryPlanning": "plan",
    "latestOffset": "look for what is new",
    "getBatch": "list the input",
    "walCommit": "note what is about to be read",
    "commitOffsets": "note what is done",
}
"""Steps of a batch by their names in Spark."""


@dataclass(frozen=True)
class FlowBatches:
    """Seconds of a batch: `percentiles`, and the `longest`. `bars`: see _bars.

    `steps`: those of the newest batch, each with its seconds and its percents of the longest one; empty where the run notes none.
    """

    flow: str
    batches: int
    rows: int
    percentiles: Mapping[int, float]
    longest: float
    bars: Sequence[tuple[int, float]]
    steps: Sequence[tuple[str, float, float]]


@dataclass(frozen=True)
class Batches:
    """Batches since `since`. `warnings`: what runs have warned of, the newest first."""

    at: datetime
    since: datetime
    span: str
    flows: Sequence[FlowBatches]
    warnings: Sequence[Mapping[str, Any]]


def batches(request: ViewRequest) -> Batches:
    """`span`: one of SPANS; any other is an hour."""
    span, now = request.params.get("span", ""), request.now
    span = span if span in SPANS else "hour"
    since = now - SPANS[span]
    by_flow: dict[str, list[dict[str, Any]]] = defaultdict(list)
    warnings = []
    for entry in history(request.conf.lake, since):
        if "warning" in entry:
            warnings.append(entry)
        elif "seconds" in entry and (name := entry.get("flow") or entry.get("job")):
            by_flow[name].append(entry)
    flows = sorted((_of_flow(name, entries, since, now) for name, entries in by_flow.items()), key=lambda flow: -flow.longest)
    return Batches(now, since, span, flows, warnings[:-51:-1])


def _of_flow(flow: str, batches: Sequence[Mapping[str, Any]], since: datetime, now: datetime) -> FlowBatches:
    seconds = sorted(float(batch["seconds"]) for batch in batches)
    percentiles = {percent: seconds[math.ceil(len(seconds) * percent / 100) - 1] for percent in PERCENTS}
    newest = batches[-1]
    steps = {name: milliseconds / 1000 for name, milliseconds in newest.get("steps", {}).items() if name != "triggerExecution"}
    longest_step = max(steps.values(), default=0.0) or 1.0
    slowest = [
        (STEPS.get(name, name), took, 100 * took / longest_step) for name, took in sorted(steps.items(), key=lambda step: -step[1]) if took
    ]
    rows = sum(int(batch["rows"]) for batch in batches)
    bars = [*_bars(batches, since, now, seconds[-1])]
    return FlowBatches(flow, len(batches), rows, percentiles, seconds[-1], bars, slowest)


def _bars(batches: Sequence[Mapping[str, Any]], since: datetime, now: datetime, longest: float) -> Iterator[tuple[int, float]]:
    """Place and height, in percent, of the longest batch in each part of the span that has one."""
    step, tallest = (now - since) / BARS, dict[int, float]()
    for batch in batches:
        bar = min(int((from_iso(batch["at"]) - since) / step), BARS - 1)
        tallest[bar] = max(tallest.get(bar, 0.0), float(batch["seconds"]))
    for bar, seconds in sorted(tallest.items()):
        yield bar, max(100 * seconds / (longest or 1.0), LEAST_HEIGHT)
