"""Check the files of a conf together: names, references, and settings that contradict each other.

Objects that are wrong by themselves are not checked. Yet their names count as declared, so that one mistake does not make others.
"""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from expectations.condition import Condition, condition
from expectations.rule import Kind, Rule
from expectations.settings import Step
from expectations.terms import ConditionError
from expectations.wording import hint, quoted
from gold.alerts.signals import FAST_FIELDS, OF_ANOMALY, anomaly_fields, fields
from gold.alerts.spec import AlertSettings, Signal
from gold.flows.spec import FlowSpec
from gold.schema import FLOW_KINDS, KINDS
from gold.windows.spec import Group
from orchestration.conf.group_meaning import check_groups
from orchestration.conf.names import Declared, check_objects
from orchestration.conf.pipeline_settings import GateMode, Quality, ScheduleSettings
from orchestration.conf.place import absolute
from orchestration.conf.reference_tables import ReferenceSettings
from orchestration.conf.sink_settings import MART, SinkSettings
from orchestration.conf.source_meaning import check_sources
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from silver.policy import UNASSIGNED_GROUP, Policy, Unknown
from silver.rules import BUILT_IN, READING

UNREADABLE = re.compile(r"[\[\]^|\\\x00-\x1f]|%[0-9A-Fa-f]{2}")
"""Characters of a path below which delta-rs finds no table: it takes paths for URLs."""
OF_EVENTS = ("silver.readings", "silver.quarantine", "silver.late", "silver.duplicates")
HOLDABLE = "silver.readings"
"""The one table of which something is handed over."""
Path_ = tuple[Step, ...]


def check_meaning(folder: Path, sound: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    """`sound`: what the files set at their top, without what is wrong."""
    sources, groups, alerts = sound.get("sources", {}), sound.get("groups") or {}, sound.get("alerts") or {}
    yield from check_objects(sound, declared)
    yield from check_sources(sources, declared)
    yield from check_groups(groups, sound.get("devices") or {}, declared)
    if policy := sound.get("policy"):
        yield from _check_policy(policy, declared)
    if quality := sound.get("quality"):
        yield from _check_gates(quality, declared)
    yield from _check_references(sound.get("references", {}))
    yield from _check_sinks(sound.get("sinks", {}), declared)
    yield from _check_rules(sound.get("rules") or {}, sources)
    attributes = {name for entry in (*sources.values(), *sound.get("references", {}).values()) for name in entry.attributes}
    yield from _check_flows(sound.get("flows") or {}, declared, attributes)
    yield from _check_alerts(alerts, groups)
    yield from _check_training(sound.get("schedules") or {}, groups)
    yield from _check_inhibitions(alerts)
    yield from _check_paths(folder, sound)


def _check_policy(policy: Policy, declared: Declared) -> Iterator[Finding]:
    for key in ("unknown_device", "unknown_metric"):
        if getattr(policy, key) == Unknown.UNASSIGNED and declared.lacks("groups", UNASSIGNED_GROUP):
            problem = f"is '{Unknown.UNASSIGNED}', but groups.yml declares no group of that name; declare it or choose 'quarantine'"
            yield Finding.of(("policy", key), problem)


def _check_gates(quality: Quality, declared: Declared) -> Iterator[Finding]:
    names = ["bronze.events", *OF_EVENTS, *declared.of_gold]
    for table, mode in quality.gates.items():
        if table not in names and (declared.entries["groups"] is not None or not table.startswith("gold.")):
            problem = f"names {quoted(table)}, which is no table; {hint(table, names, 'they are ' + ', '.join(names))}"
            yield Finding.of(("quality", "gates"), problem, table)
        elif mode == GateMode.HOLD and table != HOLDABLE:
            problem = f"is 'hold', but only {HOLDABLE} can be held; choose 'warn'"
            yield Finding.of(("quality", "gates", table), problem)


def _check_references(references: Mapping[str, ReferenceSettings]) -> Iterator[Finding]:
    """No two say the same of a reading."""
    taken: dict[str, str] = {}
    for name, reference in references.items():
        for attribute in reference.attributes:
            if other := taken.get(attribute):
                problem = f"names {quoted(attribute)}, which reference {other} gives too; write {{OTHER_NAME: column}} for one of them"
                yield Finding.of(("references", name, "attributes"), problem)
            taken[attribute] = name


def _check_sinks(sinks: Mapping[str, SinkSettings], declared: Declared) -> Iterator[Finding]:
    names = [*OF_EVENTS, *declared.of_gold, *declared.of_flows]
    is_readable = None not in (declared.entries["groups"], declared.entries["flows"])
    for name, sink in sinks.items():
        if sink.table not in names and not MART.fullmatch(sink.table) and (is_readable or not sink.table.startswith("gold.")):
            remedy = hint(sink.table, names, "name a table of silver, gold or marts, such as silver.readings")
            yield Finding.of(("sinks", name, "table"), f"is {quoted(sink.table)}, which cannot be sent; {remedy}")


def _check_rules(rules: Mapping[str, Rule], sources: Mapping[str, SourceSettings]) -> Iterator[Finding]:
    """Rules that no reading can be asked, and those that no reading of a source can keep."""
    for name, rule in rules.items():
        if name in BUILT_IN:
            yield Finding(("rules", name), f"{quoted(name)} is the name of a built-in rule; choose another")
        path = ("rules", name, "holds")
        try:
            problem = _absent_attribute(condition(rule.holds, READING), sources)
        except ConditionError as error:
            yield Finding.of(path, str(error))
        else:
            if problem:
                yield Finding.of(path, problem, is_warning=True)


def _absent_attribute(asked: Condition, sources: Mapping[str, SourceSettings]) -> str | None:
    """Which source lacks what the rule asks for; None where it says what is to become of readings without it, or of a source."""
    if asked.considers_null or "source" in asked.columns:
        return None
    for attribute in asked.attributes:
        for name, source in sources.items():
            if attribute not in source.attributes:
                problem = f"uses attributes['{attribute}'], which source {name} does not have: all of its measurements would be quarantined"
                return f"{problem}; begin it with: source <> '{name}' or ..., or declare the attribute of the source"
    return None


def _check_flows(flows: Mapping[str, FlowSpec], declared: Declared, attributes: Set[str]) -> Iterator[Finding]:
    """Names that SQL can tell apart, conditions over a reading, and keys that readings have."""
    taken = {name.removeprefix("gold.") for name in declared.of_gold} | {*KINDS, *FLOW_KINDS, "alerts", "live", "models"}
    for name, flow in flows.items():
        is_of_visits = name.removesuffix("_visits") in flows and name.endswith("_visits")
        if name in taken or name.endswith("_history") or is_of_visits:
            yield Finding(("flows", name), f"{quoted(name)} is, or may be, the name of another table of gold; choose another")
        path = ("flows", name, flow.chosen[0])
        if flow.join and flow.join.key and flow.join.key not in attributes:
            remedy = hint(flow.join.key, attributes, "declare it in `attributes` of a source or reference")
            yield Finding.of((*path, "key"), f"is {quoted(flow.join.key)}, an attribute that no source and no reference has; {remedy}")
        for key in ("when", "left_when", "right_when"):
            yield from _check_condition((*path, key), getattr(flow.kind, key, None), READING)
        for number, transition in enumerate(flow.states.transitions if flow.states else ()):
            yield from _check_condition((*path, "transitions", number, "when"), transition.when, READING)


def _check_alerts(alerts: Mapping[str, AlertSettings], groups: Mapping[str, Group]) -> Iterator[Finding]:
    """`groups` are without mistakes. A group without devices is none: they may come by `tidemark devices load`."""
    features = {name: group.vector.features for name, group in groups.items() if group.vector}
    for name, alert in alerts.items():
        if alert.vector and (group := groups.get(alert.vector)) and group.vector is None:
            problem = f"names {quoted(alert.vector)}, which has no vector; declare one in groups.yml"
            yield Finding.of(("alerts", name, "vector"), problem)
        elif not alert.vector or alert.vector in groups:
            signal = alert.signal_of(features)
            columns = FAST_FIELDS if alert.fast and alert.reading else (OF_ANOMALY if alert.vector else {}) | fields(signal)
            for key in ("when", "recover_when"):
                yield from _check_condition(("alerts", name, key), getattr(alert, key), columns)
            if alert.vector:
                yield from _check_anomalies(name, alert, signal, groups[alert.vector])


def _check_anomalies(name: str, alert: AlertSettings, signal: Signal, group: Group) -> Iterator[Finding]:
    """Conditions name fields of gold.anomalies where the group is judged, and no feature has such a name."""
    taken = [feature for feature in signal.features if feature.lower() in OF_ANOMALY]
    for key in ("when", "recover_when"):
        with suppress(ConditionError):  # it is in the list already
            for field in anomaly_fields(getattr(alert, key) or "true", signal)[:1]:
                if group.anomalies and taken:
                    problem = f"uses {quoted(field)}, and {quoted(taken[0])} is a feature of {alert.vector} too; name its metric otherwise"
                    yield Finding.of(("alerts", name, key), problem)
                elif not group.anomalies and not taken:
                    problem = f"uses {quoted(field)}, and {alert.vector} has no anomalies; add `anomalies: {{}}` to it in groups.yml"
                    yield Finding.of(("alerts", name, key), problem)


def _check_training(schedules: Mapping[str, ScheduleSettings], groups: Mapping[str, Group]) -> Iterator[Finding]:
    """Models are those of groups that are judged."""
    for name, schedule in schedules.items():
        if (group := groups.get(schedule.train or "")) and not group.anomalies:
            problem = f"names {quoted(schedule.train)}, which has no anomalies; add `anomalies: {{}}` to it in groups.yml"
            yield Finding.of(("schedules", name, "train"), problem)


def _check_condition(path: Path_, text: str | None, columns: Mapping[str, Kind]) -> Iterator[Finding]:
    try:
        if text:
            condition(text, columns)
    except ConditionError as error:
        yield Finding.of(path, str(error))


def _check_inhibitions(alerts: Mapping[str, AlertSettings]) -> Iterator[Finding]:
    """No alerts silence each other."""
    try:
        TopologicalSorter({name: alert.inhibited_by for name, alert in alerts.items()}).prepare()
    except CycleError as error:
        first, *others = error.args[1]
        problem = f"forms a cycle with {' and '.join(others[:-1]) or 'itself'}, so none of them would be sent; remove one"
        yield Finding.of(("alerts", first, "inhibited_by"), problem)


def _check_paths(folder: Path, sound: Mapping[str, Any]) -> Iterator[Finding]:
    """`sound`: what the files set at their top. The lake's own files would be read as events, or one file for two sources."""
    settings: list[tuple[Path_, str, Path]] = [(("lake",), "the lake", sound["lake"])] if "lake" in sound else []
    sources: Mapping[str, SourceSettings] = sound.get("sources", {})
    settings += [(("sources", name, "path"), f"source {name}", source.path) for name, source in sources.items() if source.path]
    settings += [
        (("sources", name, "delta", "table"), f"source {name}", source.delta.table) for name, source in sources.items() if source.delta
    ]
    exports = {name: sink.files.path for name, sink in sound.get("sinks", {}).items() if sink.files}
    settings += [(("sinks", name, "files", "path"), f"sink {name}", absolute(folder, path)) for name, path in exports.items()]
    seen: dict[str, Path] = {}
    for at, label, path in settings:
        if at[-1] in ("lake", "table") and (odd := UNREADABLE.search(str(path))):
            yield Finding.of(at, f"has {odd[0]!r} in its path, below which no table can be read; choose another folder")
        for other, taken in seen.items():
            if path == taken or path in taken.parents or taken in path.parents:
                relation = "is" if path == taken else "lies inside" if taken in path.parents else "holds"
                yield Finding.of(at, f"{relation} the folder of {other}; give each a folder of its own")
        seen[label] = path
