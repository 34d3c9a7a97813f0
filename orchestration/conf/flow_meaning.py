"""Check flows.yml: names that SQL can tell apart, and predicates that can be computed."""

from collections.abc import Iterator, Mapping

from expectations.settings import Step
from expectations.wording import quoted
from gold.flow_spec import FlowSpec
from gold.schema import FLOW_KINDS, KINDS
from orchestration.conf.names import Declared
from orchestration.conf.rule_meaning import problems_of_predicates
from orchestration.conf.structure import Finding

Path = tuple[Step, ...]


def check_flows(flows: Mapping[str, FlowSpec], declared: Declared) -> Iterator[Finding]:
    taken = {name.removeprefix("gold.") for name in declared.of_gold} | {*KINDS, *FLOW_KINDS, "alerts", "live"}
    for name in flows:
        if name in taken or name.endswith("_history"):
            yield Finding(("flows", name), f"{quoted(name)} is, or may be, the name of another table of gold; choose another")
    predicates = [predicate for name, flow in flows.items() for predicate in _predicates(("flows", name), flow)]
    for (path, _), problem in zip(predicates, problems_of_predicates([predicate for _, predicate in predicates]), strict=True):
        if problem:
            yield Finding.of(path, problem)


def _predicates(path: Path, flow: FlowSpec) -> Iterator[tuple[Path, str]]:
    kind = flow.chosen[0]
    for key, setting in vars(flow.kind).items():
        if key in {"when", "left_when", "right_when"} and setting:
            yield (*path, kind, key), setting
    for number, transition in enumerate(flow.states.transitions if flow.states else ()):
        if transition.when:
            yield (*path, kind, "transitions", number, "when"), transition.when
