"""What alerts.yml means: references to metrics and groups, settings that exclude each other, and conditions that DuckDB can compute."""

import re
from collections.abc import Iterator, Mapping
from string import Formatter

import duckdb

from expectations.settings import Step
from expectations.wording import hint, quoted
from gold.alert_spec import SUMMARY_NAMES
from gold.signals import FAST_FIELDS, fields
from orchestration.conf.alert_settings import AlertSettings
from orchestration.conf.build import signal_of
from orchestration.conf.names import Declared
from orchestration.conf.plant_settings import GroupSettings
from orchestration.conf.source_meaning import check_zone
from orchestration.conf.structure import Finding

Path = tuple[Step, ...]
Groups = Mapping[str, GroupSettings]
UNKNOWN = re.compile(r'does not contain column "(.+)" referenced')
CALLED = re.compile(r"\b(\w+)\s*\(|\b(current_\w+)")
ORDERED = ("for_seconds", "keep_firing_seconds", "escalate", "flapping", "group_by", "inhibited_by", "max_per_hour")
"""Settings that a fast alert does not have."""
UNSTEADY = "select function_name from duckdb_functions() where function_type in ('scalar', 'macro') and stability <> 'CONSISTENT'"
"""Functions that say something else each time, such as now() and random()."""


def check_alerts(alerts: Mapping[str, AlertSettings], groups: Groups, declared: Declared) -> Iterator[Finding]:
    """`groups` are without mistakes. A group without devices is none: they may come by `tidemark devices load`."""
    for name, alert in alerts.items():
        path: Path = ("alerts", name)
        unknown = [*_check_references(path, alert, declared)]
        yield from unknown
        yield from _check_settings(path, alert)
        if alert.fast:
            yield from _check_fast(path, alert)
        if alert.vector and (group := groups.get(alert.vector)) and group.vector is None:
            yield Finding.of((*path, "vector"), f"names {quoted(alert.vector)}, which has no vector; declare one in groups.yml")
        elif not unknown and (not alert.vector or alert.vector in groups):
            yield from _check_conditions(path, alert, groups)


def _check_references(path: Path, alert: AlertSettings, declared: Declared) -> Iterator[Finding]:
    of_count = alert.count.metric if alert.count else None
    for key, noun, name in (
        ("reading", "metrics", alert.reading),
        ("window", "metrics", alert.window),
        ("count.metric", "metrics", of_count),
        ("vector", "groups", alert.vector),
        ("group", "groups", alert.group),
    ):
        if name and declared.lacks(noun, name):
            yield Finding.of((*path, *key.split(".")), f"names {declared.unknown(noun, name)}")


def _check_settings(path: Path, alert: AlertSettings) -> Iterator[Finding]:
    if alert.window and not alert.group:
        yield Finding.of((*path, "group"), "is missing: windows are those of a group; add it")
    if alert.group and (alert.vector or alert.account):
        yield Finding.of((*path, "group"), "is for reading, window and count; remove it")
    if alert.for_seconds and alert.for_times:
        yield Finding.of((*path, "for_times"), "is set beside for_seconds; keep one of them")
    after = [step.after_seconds for step in alert.escalate]
    if after != sorted(set(after)):
        yield Finding.of((*path, "escalate"), "does not have its steps in order of after_seconds; sort them")
    if alert.hours:
        yield from check_zone((*path, "hours", "zone"), alert.hours.zone)
    try:
        for _, name, form, conversion in Formatter().parse(alert.summary):
            if name is not None and (name not in SUMMARY_NAMES or conversion):
                remedy = hint(name, SUMMARY_NAMES, "it may name " + ", ".join(SUMMARY_NAMES))
                yield Finding.of((*path, "summary"), f"names {quoted(name)}, which an alert does not have; {remedy}")
            elif form:
                format(0.5 if name == "value" else "", form)
    except ValueError as error:
        yield Finding.of((*path, "summary"), f"cannot be filled in ({error}); write for example {{value:.1f}}, and {{{{ for a bracket")


def _check_fast(path: Path, alert: AlertSettings) -> Iterator[Finding]:
    if not alert.reading:
        yield Finding.of((*path, "fast"), f"is for reading, and this looks at {alert.chosen[0]}; remove it")
    if ordered := [name for name in ORDERED if getattr(alert, name, None)]:
        yield Finding.of((*path, ordered[0]), "needs all readings in order of time, and a fast alert judges each as it comes; remove fast")
    if alert.no_data and alert.no_data.then != "fire":
        yield Finding.of((*path, "no_data", "then"), f"is {quoted(alert.no_data.then)}, and a fast alert has only 'fire'; remove fast")


def _check_conditions(path: Path, alert: AlertSettings, groups: Groups) -> Iterator[Finding]:
    features = {name: group.vector.features or group.metrics for name, group in groups.items() if group.vector}
    of_signal = FAST_FIELDS if alert.fast and alert.reading else fields(signal_of(alert, features))
    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as store:
        unsteady = {name for (name,) in store.execute(UNSTEADY).fetchall()}
        for key, condition in (("when", alert.when), ("recover_when", alert.recover_when)):
            if condition and (problem := _problem(condition, of_signal, unsteady, store)):
                yield Finding.of((*path, key), problem)


def _problem(condition: str, of_signal: Mapping[str, str], unsteady: set[str], store: duckdb.DuckDBPyConnection) -> str | None:
    """A CHECK constraint may ask for the fields of one row and for nothing else: no subquery, aggregate or window."""
    called = [function for match in CALLED.finditer(condition.lower()) for function in match.groups() if function in unsteady]
    if called:
        return f"calls {called[0]}, which says something else each time; ask for fields of the sample alone"
    columns = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in of_signal.items())
    try:
        store.execute(f"create or replace temp table sample ({columns}, check (\n{condition}\n))")
        kind = store.execute(f"describe select (\n{condition}\n) from sample").fetchall()[0][1].lower()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
        if unknown := UNKNOWN.search(reason):
            return f"asks for {quoted(unknown[1])}, which is not there; {hint(unknown[1], of_signal, 'it has ' + ', '.join(of_signal))}"
        return f"cannot be computed ({reason}); write a condition over {', '.join(of_signal)}"
    return None if kind == "boolean" else f"is neither true nor false, but {kind}; compare it, for example value > 280"
