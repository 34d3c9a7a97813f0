"""What flows.yml means: references to metrics and groups, names that SQL can tell apart, and predicates that can be computed."""

from collections.abc import Iterator, Mapping

from gold.schema import FLOW_KINDS, KINDS
from orchestration.conf.diagnostic import hint, quoted
from orchestration.conf.document import Step
from orchestration.conf.flow_settings import FlowSettings, StateSettings
from orchestration.conf.names import Declared
from orchestration.conf.rule_meaning import problems_of_predicates
from orchestration.conf.structure import Finding

Path = tuple[Step, ...]


def check_flows(flows: Mapping[str, FlowSettings], declared: Declared) -> Iterator[Finding]:
    taken = {name.removeprefix("gold.") for name in declared.of_gold} | {*KINDS, *FLOW_KINDS, "alerts", "live"}
    predicates: list[tuple[Path, str]] = []
    for name, flow in flows.items():
        if name in taken or name.endswith("_history"):
            yield Finding(("flows", name), f"{quoted(name)} is, or may be, the name of another table of gold; choose another")
        if flow.group and declared.lacks("groups", flow.group):
            yield Finding.of(("flows", name, "group"), f"names {declared.unknown('groups', flow.group)}")
        (kind,) = flow.chosen
        at: Path = ("flows", name, kind)
        for key, setting in vars(getattr(flow, kind)).items():
            if key in {"metric", "left", "right", "latitude", "longitude"} and setting and declared.lacks("metrics", setting):
                yield Finding.of((*at, key), f"names {declared.unknown('metrics', setting)}")
            if key in {"when", "left_when", "right_when"} and setting:
                predicates.append(((*at, key), setting))
        if flow.join and flow.join.from_seconds > flow.join.until_seconds:
            backward = f"is {flow.join.from_seconds}, behind until_seconds ({flow.join.until_seconds}): no reading is in between; swap them"
            yield Finding.of((*at, "from_seconds"), backward)
        if flow.states:
            yield from _check_states(at, flow.states)
            ways = enumerate(flow.states.transitions)
            predicates += [((*at, "transitions", number, "when"), of.when) for number, of in ways if of.when]
    for (at, _), problem in zip(predicates, problems_of_predicates([predicate for _, predicate in predicates]), strict=True):
        if problem:
            yield Finding.of(at, problem)


def _check_states(at: Path, states: StateSettings) -> Iterator[Finding]:
    """A transition from a state that no device is ever in is a spelling mistake."""
    reached = {states.initial, *(of.target for of in states.transitions)}
    for number, of in enumerate(states.transitions):
        if of.source not in reached:
            remedy = hint(of.source, reached, "reached are " + ", ".join(sorted(reached)))
            yield Finding.of((*at, "transitions", number, "from"), f"is {quoted(of.source)}, a state that nothing leads to; {remedy}")
        if of.after_seconds and of.source == of.target:
            yield Finding.of((*at, "transitions", number, "to"), "is the state itself, which it would reach again and again; name another")
