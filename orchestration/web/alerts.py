"""The view of alerts: what fires now, silences, changes and messages; and the actions of its forms."""

import secrets
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Any

from gold.alerts.messages import message_id
from gold.alerts.spec import Alert
from orchestration.alerts.changes import pinned_alerts
from orchestration.alerts.firing import firing, judged_ends, judged_up_to
from orchestration.alerts.notifications import NOTIFICATIONS, Notification, first_sent
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES, Acknowledgement, NotedSilence, silences
from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.storage.delta import literal
from orchestration.storage.snapshots import find_snapshot
from orchestration.utc import EPOCH, to_iso
from orchestration.web.pages import address
from orchestration.web.queries import ViewRequest
from orchestration.web.security import FormError, text_of

MOST, MOST_DECLARED, LONGEST_TEXT = 100, 200, 1_000
MARGIN, LONGEST_EPISODE = timedelta(minutes=30), timedelta(days=1)
"""How much the chart of an episode shows before and behind it, and of one that goes on."""
LENGTHS = {"30 min": timedelta(minutes=30), "2 h": timedelta(hours=2), "8 h": timedelta(hours=8), "1 d": timedelta(days=1)}
"""How long a silence lasts that is made here."""
MOST_SEVERE = ("critical", "warning")
"""Severities that come first, in this order; one of any other name comes after them."""
LATELY = timedelta(minutes=10)
"""The newest values are those that came so shortly before the newest snapshot."""
NEWEST = """
  select device_id, metric, arg_max(value, event_time) as value from silver.readings
  where ingested_at > {since} and device_id in {devices} group by all
"""
STATES = ("firing", "no data", "flapping", "recovering", "pending", "normal")
"""The worst first."""


@dataclass(frozen=True)
class DeclaredAlert:
    """`states`: how many entities are in each, the worst first. `last`: the newest change. `judged_until`: None as long as nothing came."""

    alert: Alert
    states: Mapping[str, int]
    last: Mapping[str, Any] | None
    judged_until: datetime | None


@dataclass(frozen=True)
class AlertFacts:
    """`judged_up_to`: None before the first. `declared`: the first MOST_DECLARED of `count`, those that fire first. `fires`: how many do.

    `firing`: what is not normal or pending, the latest first. `pending`: what is true, and not yet for long enough. `values`: by alert and
    entity the newest reading, where one came lately. `units`: by alert on readings the unit of its metric. Of changes, each with its
    `told_at`, and of messages the newest MOST.
    """

    at: datetime
    judged_up_to: datetime | None
    count: int
    declared: Sequence[DeclaredAlert]
    fires: int
    firing: Sequence[dict[str, Any]]
    pending: Sequence[dict[str, Any]]
    values: Mapping[tuple[str, str], float]
    units: Mapping[str, str | None]
    silences: Sequence[NotedSilence]
    changes: Sequence[dict[str, Any]]
    messages: Sequence[Notification]


def alerts(request: ViewRequest) -> AlertFacts:
    """Read what the view shows, from the newest snapshot and from the watch of fast alerts."""
    conf, pinned, now = request.conf, pinned_alerts(request.conf.lake), request.now
    newest = [row for row in (pinned.newest() if pinned else ()) if row["alert"] in conf.alerts]
    fires = firing_alerts(conf, now)
    pending = [row | {"chart": _address_of_chart(conf, row, now)} for row in newest if row["state"] == "pending"]
    changes = pinned.history(EPOCH, MOST) if pinned else []
    held = [noted for noted in silences(request.conf.lake) if noted.ends_at > now]
    messages = NOTIFICATIONS.newest(request.conf.lake, MOST)
    sent = first_sent(conf.lake, {row["alert"] for row in changes}, min((row["known_at"] for row in changes), default=now))
    changes = [row | {"told_at": sent.get(message_id(row["alert_id"], row["state"], row["changed_at"]))} for row in changes]
    declared, judged = _declared(conf, newest), judged_up_to(conf, now)
    fire, pend = fires[:MOST], pending[:MOST]
    values = _newest_values(request, [*fire, *pend, *(alert.last for alert in declared if alert.last)])
    units = {
        name: conf.metrics[alert.signal.metric].unit
        for name, alert in conf.alerts.items()
        if alert.signal.metric and alert.signal.kind == "reading"
    }
    return AlertFacts(now, judged, len(conf.alerts), declared, len(fires), fire, pend, values, units, held, changes, messages)


def _declared(conf: Conf, newest: Sequence[Mapping[str, Any]]) -> list[DeclaredAlert]:
    by_alert = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in newest:
        by_alert[row["alert"]].append(row)
    worst = {name: min((STATES.index(row["state"]) for row in rows), default=len(STATES)) for name, rows in by_alert.items()}
    shown = sorted(conf.alerts.values(), key=lambda alert: worst.get(alert.name, len(STATES)))[:MOST_DECLARED]
    ends, alerts = judged_ends(conf), []
    for alert in shown:
        counts = Counter(row["state"] for row in by_alert[alert.name])
        states = {state: counts[state] for state in STATES if counts[state]}
        last = max(by_alert[alert.name], key=itemgetter("changed_at"), default=None)
        _, until = ends[alert.name] or (None, None)
        alerts.append(DeclaredAlert(alert, states, last, until))
    return alerts


def _newest_values(request: ViewRequest, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    metrics = {name: alert.signal.metric for name, alert in request.conf.alerts.items() if alert.signal.kind == "reading"}
    devices = sorted({row["entity"] for row in rows if row["alert"] in metrics})
    snapshot = find_snapshot(request.conf.lake)
    if not devices or snapshot is None or "silver.readings" not in snapshot.versions:
        return {}
    read = request.rows(NEWEST.format(since=literal(snapshot.at - LATELY), devices=literal(devices)))
    newest = {(row["device_id"], row["metric"]): row["value"] for row in read}
    keys = [(row["alert"], row["entity"], metrics.get(row["alert"])) for row in rows]
    return {(alert, entity): newest[entity, metric] for alert, entity, metric in keys if (entity, metric) in newest}


def _address_of_chart(conf: Conf, row: Mapping[str, Any], now: datetime) -> str:
    """Return the address of the charts of an entity around its episode, where it has some."""
    signal, entity = conf.alerts[row["alert"]].signal, row["entity"]
    until = row["changed_at"] if row["state"] == "normal" else max(row["changed_at"], min(now, row["begun_at"] + LONGEST_EPISODE))
    span = {"from": to_iso(row["begun_at"] - MARGIN), "to": to_iso(until + MARGIN)}
    if signal.kind == "account":
        return "/quarantine"
    if entity in conf.groups:
        return address("/groups", {"group": entity}, **span)
    if signal.is_of_gold:
        return address("/groups", {"group": signal.group, "device": entity}, **span)
    return address("/devices", {"device": entity}, **span)


def acknowledge(request: ViewRequest, form: dict[str, str]) -> None:
    """Acknowledge the alert `alert_id` for `author`. ConfError if it does not fire any more."""
    row = next((row for row in firing_alerts(request.conf, request.now) if row["alert_id"] == form.get("alert_id")), None)
    if row is None:
        raise ConfError("this alert has ended meanwhile, or is of another lake; go back, and load the page again.")
    author, note = text_of(form, "author", LONGEST_TEXT), text_of(form, "note", LONGEST_TEXT, is_needed=False)
    ACKNOWLEDGEMENTS.append(request.conf.lake, [Acknowledgement(row["alert_id"], author, request.now, note)])


def silence(request: ViewRequest, form: dict[str, str]) -> None:
    """Silence `alert` and `entity`, names with wildcards, from now on for `length`. ConfError if these are not valid."""
    alert, entity, author, reason = (text_of(form, name, LONGEST_TEXT) for name in ("alert", "entity", "author", "reason"))
    if not any(fnmatchcase(name, alert) for name in request.conf.alerts):
        raise FormError("alert", f"no alert of alerts.yml has the name {alert}: * stands for any text, ? for one character.")
    if (length := LENGTHS.get(form.get("length", ""))) is None:
        raise FormError("length", f"a silence lasts one of {', '.join(LENGTHS)}; `tidemark alerts silence` makes others.")
    times = request.now, request.now + length
    made = NotedSilence(secrets.token_hex(4), alert, entity, *times, author=author, reason=reason, noted_at=request.now)
    SILENCES.append(request.conf.lake, [made])


def unsilence(request: ViewRequest, form: dict[str, str]) -> None:
    """End the silence `silence_id` now."""
    noted = next((noted for noted in silences(request.conf.lake) if noted.silence_id == form.get("silence_id")), None)
    if noted is None or noted.ends_at <= request.now:
        raise ConfError("this silence is over; go back, and load the page again.")
    SILENCES.append(
        request.conf.lake, [replace(noted, ends_at=request.now, author=text_of(form, "author", LONGEST_TEXT), noted_at=request.now)]
    )


def firing_alerts(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """List what fires, what nobody has seen first, then the most severe, then the latest; each with `chart`, an address of the page."""
    rows = [row | {"chart": _address_of_chart(conf, row, now)} for row in firing(conf, now)]
    return sorted(rows, key=_how_urgent)


def _how_urgent(row: Mapping[str, Any]) -> tuple[bool, bool, int, float, str]:
    severity = MOST_SEVERE.index(row["severity"]) if row["severity"] in MOST_SEVERE else len(MOST_SEVERE)
    return row["seen"] is not None, row["silenced_by"] is not None, severity, -row["changed_at"].timestamp(), row["entity"]
