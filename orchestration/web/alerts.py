"""The view of alerts: what fires now, silences, changes and messages; and the actions of its forms."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from orchestration.alerts.changes import firing, pinned_alerts
from orchestration.alerts.notifications import NOTIFICATIONS, Notification
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES, Acknowledgement, NotedSilence, silences
from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.utc import EPOCH
from orchestration.web.queries import ViewRequest

MOST, LONGEST_TEXT = 100, 1_000
LENGTHS = {"30 min": timedelta(minutes=30), "2 h": timedelta(hours=2), "8 h": timedelta(hours=8), "1 d": timedelta(days=1)}
"""How long a silence lasts that is made here."""


@dataclass(frozen=True)
class AlertFacts:
    """`firing`: what is neither normal nor pending, the latest first; `fires`: how many. Of changes and messages the newest MOST."""

    at: datetime
    declared: int
    fires: int
    firing: Sequence[dict[str, Any]]
    silences: Sequence[NotedSilence]
    changes: Sequence[dict[str, Any]]
    messages: Sequence[Notification]


def alerts(request: ViewRequest) -> AlertFacts:
    """Read what the view shows from the newest snapshot."""
    pinned, now = pinned_alerts(request.conf.lake), request.now
    fires = _firing(request.conf, now)
    changes = pinned.history(EPOCH, MOST) if pinned else []
    held = [noted for noted in silences(request.conf.lake) if noted.ends_at > now]
    messages = NOTIFICATIONS.newest(request.conf.lake, MOST)
    return AlertFacts(now, len(request.conf.alerts), len(fires), fires[:MOST], held, changes, messages)


def acknowledge(request: ViewRequest, form: dict[str, str]) -> None:
    """Acknowledge the alert `alert_id` for `author`. ConfError if it does not fire any more."""
    row = next((row for row in _firing(request.conf, request.now) if row["alert_id"] == form.get("alert_id")), None)
    if row is None:
        raise ConfError("this alert has ended meanwhile, or is of another lake; go back, and load the page again.")
    author, note = _text(form, "author"), form.get("note", "").strip()[:LONGEST_TEXT]
    ACKNOWLEDGEMENTS.append(request.conf.lake, [Acknowledgement(row["alert_id"], author, request.now, note)])


def silence(request: ViewRequest, form: dict[str, str]) -> None:
    """Silence `alert` and `entity`, names with wildcards, from now on for `length`. ConfError if these are not valid."""
    alert, entity, author, reason = (_text(form, name) for name in ("alert", "entity", "author", "reason"))
    if not any(fnmatchcase(name, alert) for name in request.conf.alerts):
        raise ConfError(f"no alert of alerts.yml has the name {alert}: * stands for any text, ? for one character.")
    if (length := LENGTHS.get(form.get("length", ""))) is None:
        raise ConfError(f"a silence lasts one of {', '.join(LENGTHS)}; `tidemark alerts silence` makes others.")
    times = request.now, request.now + length
    made = NotedSilence(secrets.token_hex(4), alert, entity, *times, author=author, reason=reason, noted_at=request.now)
    SILENCES.append(request.conf.lake, [made])


def unsilence(request: ViewRequest, form: dict[str, str]) -> None:
    """End the silence `silence_id` now."""
    noted = next((noted for noted in silences(request.conf.lake) if noted.silence_id == form.get("silence_id")), None)
    if noted is None or noted.ends_at <= request.now:
        raise ConfError("this silence is over; go back, and load the page again.")
    SILENCES.append(request.conf.lake, [replace(noted, ends_at=request.now, author=_text(form, "author"), noted_at=request.now)])


def _firing(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    shown = firing(conf.lake, conf.alerts, now)
    return sorted(
        shown, key=lambda row: (row["seen"] is not None, row["silenced_by"] is not None, -row["changed_at"].timestamp(), row["entity"])
    )


def _text(form: dict[str, str], name: str) -> str:
    text = form.get(name, "").strip()
    if not text or len(text) > LONGEST_TEXT:
        raise ConfError(f"the form wants {name}, of at most {LONGEST_TEXT:,} characters.")
    return text
