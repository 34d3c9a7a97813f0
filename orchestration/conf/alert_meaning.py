"""What alerts.yml means: references to metrics and groups, settings that exclude each other, and conditions over a signal."""

from collections.abc import Iterator, Mapping
from string import Formatter

from expectations.condition import condition
from expectations.settings import Step
from expectations.terms import ConditionError
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
ORDERED = ("for_seconds", "keep_firing_seconds", "escalate", "flapping", "group_by", "inhibited_by", "max_per_hour")
"""Settings that a fast alert does not have."""


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
    for key, text in (("when", alert.when), ("recover_when", alert.recover_when)):
        try:
            if text:
                condition(text, of_signal)
        except ConditionError as error:
            yield Finding.of((*path, key), str(error))
