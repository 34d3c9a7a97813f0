"""The view of batches: how long each query's batches took over a span of time, and the steps of the newest ones, slowest first."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.supervisor.history import history
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, span_of

BARS, MOST_WARNINGS = 120, 50
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
    """Seconds of a batch: `percentiles`, and the `longest`. `bars`: the longest in each part of the span; 0 where there was none.

    `steps`: those of the newest batch, each with its seconds and its percents of the longest one; empty where the run notes none.
    """

    flow: str
    batches: int
    rows: int
    percentiles: Mapping[int, float]
    longest: float
    bars: Sequence[float]
    steps: Sequence[tuple[str, float, float]]


@dataclass(frozen=True)
class Batches:
    """Batches that ended in the span. `warnings`: what runs have warned of, the newest first."""

    at: datetime
    span: Span
    flows: Sequence[FlowBatches]
    warnings: Sequence[Mapping[str, Any]]


def batches(request: ViewRequest) -> Batches:
    """`span`, or `from` and `to`."""
    span = span_of(request.params, request.now)
    by_flow: dict[str, list[dict[str, Any]]] = defaultdict(list)
    warnings = []
    for entry in history(request.conf.lake, span.start, span.end):
        if "warning" in entry:
            warnings.append(entry)
        elif "seconds" in entry and (name := entry.get("flow") or entry.get("job")):
            by_flow[name].append(entry)
    flows = sorted((_of_flow(name, entries, span) for name, entries in by_flow.items()), key=lambda flow: -flow.longest)
    return Batches(request.now, span, flows, warnings[: -MOST_WARNINGS - 1 : -1])


def _of_flow(flow: str, batches: Sequence[Mapping[str, Any]], span: Span) -> FlowBatches:
    seconds = sorted(float(batch["seconds"]) for batch in batches)
    percentiles = {percent: seconds[math.ceil(len(seconds) * percent / 100) - 1] for percent in PERCENTS}
    newest = batches[-1]
    steps = {name: milliseconds / 1000 for name, milliseconds in newest.get("steps", {}).items() if name != "triggerExecution"}
    longest_step = max(steps.values(), default=0.0) or 1.0
    slowest = [
        (STEPS.get(name, name), took, 100 * took / longest_step) for name, took in sorted(steps.items(), key=lambda step: -step[1]) if took
    ]
    rows = sum(int(batch["rows"]) for batch in batches)
    return FlowBatches(flow, len(batches), rows, percentiles, seconds[-1], _bars(batches, span), slowest)


def _bars(batches: Sequence[Mapping[str, Any]], span: Span) -> list[float]:
    part, longest = (span.end - span.start) / BARS, [0.0] * BARS
    for batch in batches:
        bar = min(int((from_iso(batch["at"]) - span.start) / part), BARS - 1)
        longest[bar] = max(longest[bar], float(batch["seconds"]))
    return longest
