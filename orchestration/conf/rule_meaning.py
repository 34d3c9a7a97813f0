"""Check rules.yml: each rule is a condition over a reading, and one that readings can keep."""

from collections.abc import Iterator, Mapping

from expectations.condition import Condition, condition
from expectations.terms import ConditionError
from expectations.wording import quoted
from orchestration.conf.plant_settings import RuleSettings
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from silver.rules import BUILT_IN, READING


def check_rules(rules: Mapping[str, RuleSettings], sources: Mapping[str, SourceSettings]) -> Iterator[Finding]:
    """Rules that no reading can be asked, and those that no reading of a source can keep."""
    for name, rule in rules.items():
        if name in BUILT_IN:
            yield Finding(("rules", name), f"{quoted(name)} is the name of a built-in rule; choose another")
        try:
            asked = condition(rule.holds, READING)
        except ConditionError as error:
            yield Finding.of(("rules", name, "holds"), str(error))
        else:
            if problem := _absent_attribute(asked, sources):
                yield Finding.of(("rules", name, "holds"), problem, is_warning=True)


def _absent_attribute(asked: Condition, sources: Mapping[str, SourceSettings]) -> str | None:
    """Which source lacks what the rule asks for; None where it says what is to become of readings without it, or of a source."""
    if asked.considers_null or "source" in asked.columns:
        return None
    pairs = ((name, attribute) for attribute in asked.attributes for name in sources)
    name, attribute = next(((name, attribute) for name, attribute in pairs if attribute not in sources[name].attributes), ("", ""))
    if not name:
        return None
    problem = f"uses attributes['{attribute}'], which source {name} does not have: all of its measurements would be quarantined"
    return f"{problem}; begin it with: source <> '{name}' or ..., or declare the attribute of the source"
