"""Check flows.yml: names that SQL can tell apart, and conditions over a reading."""

from collections.abc import Iterator, Mapping

from expectations.condition import condition
from expectations.settings import Step
from expectations.terms import ConditionError
from expectations.wording import quoted
from gold.flows.spec import FlowSpec
from gold.schema import FLOW_KINDS, KINDS
from orchestration.conf.names import Declared
from orchestration.conf.structure import Finding
from silver.rules import READING

Path = tuple[Step, ...]


def check_flows(flows: Mapping[str, FlowSpec], declared: Declared) -> Iterator[Finding]:
    taken = {name.removeprefix("gold.") for name in declared.of_gold} | {*KINDS, *FLOW_KINDS, "alerts", "live"}
    for name in flows:
        if name in taken or name.endswith("_history"):
            yield Finding(("flows", name), f"{quoted(name)} is, or may be, the name of another table of gold; choose another")
    for name, flow in flows.items():
        for path, text in _predicates(("flows", name), flow):
            try:
                condition(text, READING)
            except ConditionError as error:
                yield Finding.of(path, str(error))


def _predicates(path: Path, flow: FlowSpec) -> Iterator[tuple[Path, str]]:
    kind = flow.chosen[0]
    for key, setting in vars(flow.kind).items():
        if key in {"when", "left_when", "right_when"} and setting:
            yield (*path, kind, key), setting
    for number, transition in enumerate(flow.states.transitions if flow.states else ()):
        if transition.when:
            yield (*path, kind, "transitions", number, "when"), transition.when
