"""Check conditions of alerts.yml over the fields of their signals."""

from collections.abc import Iterator, Mapping

from expectations.condition import condition
from expectations.settings import Step
from expectations.terms import ConditionError
from expectations.wording import quoted
from gold.alerts.signals import FAST_FIELDS, fields
from gold.alerts.spec import AlertSettings
from gold.windows.spec import Group
from orchestration.conf.structure import Finding

Path = tuple[Step, ...]
Groups = Mapping[str, Group]


def check_alerts(alerts: Mapping[str, AlertSettings], groups: Groups) -> Iterator[Finding]:
    """`groups` are without mistakes. A group without devices is none: they may come by `tidemark devices load`."""
    for name, alert in alerts.items():
        path: Path = ("alerts", name)
        if alert.vector and (group := groups.get(alert.vector)) and group.vector is None:
            yield Finding.of((*path, "vector"), f"names {quoted(alert.vector)}, which has no vector; declare one in groups.yml")
        elif not alert.vector or alert.vector in groups:
            yield from _check_conditions(path, alert, groups)


def _check_conditions(path: Path, alert: AlertSettings, groups: Groups) -> Iterator[Finding]:
    features = {name: group.vector.features for name, group in groups.items() if group.vector}
    of_signal = FAST_FIELDS if alert.fast and alert.reading else fields(alert.signal_of(features))
    for key, text in (("when", alert.when), ("recover_when", alert.recover_when)):
        try:
            if text:
                condition(text, of_signal)
        except ConditionError as error:
            yield Finding.of((*path, key), str(error))
