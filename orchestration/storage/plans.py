"""Plans: what of the conf a flow's checkpoint depends on. A checkpoint goes on under the plan that it began with, or not at all."""

from collections.abc import Iterator, Mapping, Sequence

from gold.aggregates import ON_DEMAND
from gold.spec import Group
from orchestration.conf.model import Conf
from silver.spec import Metric

Plan = Mapping[str, str]
"""What depends on it, in words, by what it is about."""


def plan_of(conf: Conf, flow: str) -> Plan:
    """Only what would lose or change rows in silence, or end the query: everything else may change at any time."""
    if flow.startswith("gold."):
        groups = [group for group in conf.groups.values() if group.stream == flow.removeprefix("gold.")]
        return dict(_of_gold(groups, conf.metrics))
    return {}


def differences(began_with: Plan, plan: Plan) -> list[str]:
    """One sentence each; what only one of the two knows is no difference."""
    return [
        f"{about} was {began_with[about]}, and is {plan[about]} now"
        for about in plan
        if about in began_with and began_with[about] != plan[about]
    ]


def _of_gold(groups: Sequence[Group], metrics: Mapping[str, Metric]) -> Iterator[tuple[str, str]]:
    """An open window knows its end only; state holds what the aggregation types ask for."""
    used = {name: metrics[name] for group in groups for name in group.metrics}
    for name, metric in sorted(used.items()):
        sliding = f" every {metric.slide_seconds} s" if metric.slide_seconds else ""
        yield f"the window of {name} in conf/metrics.yml", f"{metric.step_seconds} s{sliding}"
    kept = sorted({metric.aggregation.value for metric in used.values()} & set(ON_DEMAND))
    yield "what is aggregated beside count, min, max, sum and latest", ", ".join(kept) or "nothing"
