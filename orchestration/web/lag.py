"""What the view of batches shows: how long each flow's batches took over a span of time, and of the newest the steps, slowest first."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.storage.history import history
from orchestration.utc import from_iso
from orchestration.web.queries import Look
from orchestration.web.spans import SPANS

BARS, LEAST_HEIGHT = 120, 3.0
"""Of a chart; and percents below which a bar would not be seen."""
PERCENTS = (50, 99)


@dataclass(frozen=True)
class FlowBatches:
    """Seconds of a batch: `percentiles`, and the `longest`. `bars`: see _bars.

    `steps`: of the newest batch, each with its seconds and its percents of the longest one; empty where nobody tells.
    """

    flow: str
    batches: int
    rows: int
    percentiles: Mapping[int, float]
    longest: float
    bars: Sequence[tuple[int, float]]
    steps: Sequence[tuple[str, float, float]]


@dataclass(frozen=True)
class Lag:
    """`warnings`: what runs have warned of, the newest first."""

    at: datetime
    span: str
    flows: Sequence[FlowBatches]
    warnings: Sequence[Mapping[str, Any]]


def lag(look: Look) -> Lag:
    """`span`: one of SPANS; any other is an hour."""
    span, now = look.asked.get("span", ""), look.now
    span = span if span in SPANS else "hour"
    since = now - SPANS[span]
    by_flow: dict[str, list[dict[str, Any]]] = defaultdict(list)
    warnings = []
    for told in history(look.conf.lake, since):
        if "warning" in told:
            warnings.append(told)
        elif "seconds" in told and (name := told.get("flow") or told.get("job")):
            by_flow[name].append(told)
    flows = sorted((_of_flow(name, batches, since, now) for name, batches in by_flow.items()), key=lambda of: -of.longest)
    return Lag(now, span, flows, warnings[:-51:-1])


def _of_flow(flow: str, batches: Sequence[Mapping[str, Any]], since: datetime, now: datetime) -> FlowBatches:
    seconds = sorted(float(batch["seconds"]) for batch in batches)
    percentiles = {percent: seconds[math.ceil(len(seconds) * percent / 100) - 1] for percent in PERCENTS}
    newest = batches[-1]
    steps = {name: milliseconds / 1000 for name, milliseconds in newest.get("steps", {}).items() if name != "triggerExecution"}
    longest_step = max(steps.values(), default=0.0) or 1.0
    slowest = [(name, took, 100 * took / longest_step) for name, took in sorted(steps.items(), key=lambda step: -step[1]) if took]
    rows = sum(int(batch["rows"]) for batch in batches)
    bars = [*_bars(batches, since, now, seconds[-1])]
    return FlowBatches(flow, len(batches), rows, percentiles, seconds[-1], bars, slowest)


def _bars(batches: Sequence[Mapping[str, Any]], since: datetime, now: datetime, longest: float) -> Iterator[tuple[int, float]]:
    """Place and height, in percent, of the longest batch in each part of the span that has one."""
    step, tallest = (now - since) / BARS, dict[int, float]()
    for batch in batches:
        place = min(int((from_iso(batch["at"]) - since) / step), BARS - 1)
        tallest[place] = max(tallest.get(place, 0.0), float(batch["seconds"]))
    for place, seconds in sorted(tallest.items()):
        yield place, max(100 * seconds / (longest or 1.0), LEAST_HEIGHT)
