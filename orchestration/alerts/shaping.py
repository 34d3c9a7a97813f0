"""Words about alerts for people: messages say what happened by themselves where a summary of alerts.yml does not."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from gold.alerts.messages import Change
from gold.alerts.signals import shown
from gold.alerts.spec import DEFAULT_SUMMARY, Alert
from gold.alerts.states import NO_DATA, NORMAL
from orchestration.alerts.changes import COLUMNS
from orchestration.conf.model import Conf

ANY_HOST = {"0.0.0.0", "::"}


def change_of(conf: Conf, row: Mapping[str, Any]) -> Change:
    """Return the change of a row of ALERTS. A summary that names nothing of the change is completed."""
    change: dict[str, Any] = {column: row.get(column) for column in COLUMNS}
    if (alert := conf.alerts.get(row["alert"])) and not _is_own(alert):
        change["summary"] = _completed(conf, alert, row)
    return Change(**change)


def page_of(conf: Conf) -> str | None:
    """Return the address of the view of alerts; None where conf does not say it."""
    page = conf.page
    if page.names:
        return f"http://{page.names[0]}/alerts"
    return None if page.port == 0 or page.host in ANY_HOST else f"http://{page.host}:{page.port}/alerts"


def _is_own(alert: Alert) -> bool:
    """Whether a summary is made by whoever wrote alerts.yml: it names something, and is not the default."""
    return alert.summary != DEFAULT_SUMMARY and any(name is not None for _, name, *_ in Formatter().parse(alert.summary))


def _completed(conf: Conf, alert: Alert, row: Mapping[str, Any]) -> str:
    """Say entity, state, value with unit, condition, since when, and where more is to be seen."""
    summary = row["summary"] if alert.summary == DEFAULT_SUMMARY else f"{row['summary']}: {row['entity']} is {row['state']}"
    name = "score" if alert.signal.kind == "anomaly" and shown(alert) == "score" else ""
    value = None if row["value"] is None else f"{name} {row['value']:.6g} {_unit(conf, alert)}".strip()
    facts = [
        f"the last value is {value}" if value and row["state"] == NO_DATA else value,
        _condition(alert, row["state"]),
        f"since {row['changed_at']:%Y-%m-%d %H:%M:%S} UTC",
        page_of(conf),
    ]
    return f"{summary}: {', '.join(fact for fact in facts if fact)}"


def _condition(alert: Alert, state: str) -> str | None:
    """Return the condition that led to a state; None where none did."""
    if state == NORMAL:
        return alert.recover_when or f"not ({alert.when})"
    return None if state == NO_DATA else alert.when


def _unit(conf: Conf, alert: Alert) -> str:
    metric = conf.metrics.get(alert.signal.metric or "") if alert.signal.kind in {"reading", "window"} else None
    return (metric.unit if metric else None) or ""
