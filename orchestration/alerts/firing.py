"""Show what fires now to the page and the command, by gold.alerts and sooner by the watch; and up to when alerts are judged."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from gold.flows.slices import THE_BEGINNING
from orchestration.alerts.changes import LastChange, pinned_alerts
from orchestration.alerts.notifications import first_sent
from orchestration.alerts.records import ACKNOWLEDGEMENTS, silences
from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.delta import max_in_log
from orchestration.storage.lake_layout import fast_alerts_folder
from orchestration.storage.positions import FlowStep, step_file
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_micros

QUIET = {"normal", "pending"}
CAUGHT_UP = timedelta(minutes=10)
"""So long behind it the exact path has judged what the watch saw; what it has no row of was no alarm."""


def fast_file(lake: Location) -> StateFile[dict[str, LastChange]]:
    """Return the file that the watch keeps its last changes in, by alert/entity."""
    return StateFile(fast_alerts_folder(lake) / "firing.json", dict[str, LastChange], "Remove it: the watch writes it again.")


def firing(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """Return the last change of each entity that is neither normal nor pending under a declared alert.

    `begun_at`: when it left normal. `told_at`: when a channel had the first message about it. `seen`: its newest acknowledgement.
    `silenced_by`: the id of a silence that holds now. `is_fast`: only the watch has seen it yet. None for none.
    """
    rows = [row for row in _newest(conf) if row["state"] not in QUIET]
    if not rows:
        return []
    seen = ACKNOWLEDGEMENTS.last_of_each(conf.lake, "alert_id", [("alert_id", "in", [row["alert_id"] for row in rows])])
    sent = first_sent(conf.lake, {row["alert"] for row in rows}, min(row["begun_known_at"] for row in rows))
    noted = silences(conf.lake)
    return [
        row
        | {
            "told_at": sent.get(row["alert_id"]),
            "seen": seen.get(row["alert_id"]),
            "silenced_by": next((one.silence_id for one in noted if one.covers(row["alert"], row["entity"], now)), None),
        }
        for row in rows
    ]


def judged_up_to(conf: Conf, now: datetime) -> datetime | None:
    """Return the instant up to which all alerts are judged: now where bronze has nothing newer; None where one was never judged."""
    ends = [*judged_ends(conf).values()]
    newest = max_in_log(LakeStore(conf).table_path("bronze.events"), "bronze_batch")
    if newest is None or not all(ends):
        return None
    return min((until for batch, until in filter(None, ends) if batch < newest), default=now)


def _newest(conf: Conf) -> Iterator[dict[str, Any]]:
    """Yield the last change of each entity; of fast alerts the one that is newer, by event time."""
    pinned = pinned_alerts(conf.lake)
    exact = {(row["alert"], row["entity"]): row for row in (pinned.newest() if pinned else ()) if row["alert"] in conf.alerts}
    fast = {(row["alert"], row["entity"]): row for row in (fast_file(conf.lake).read() or {}).values()}
    ends = judged_ends(conf) if fast else {}
    for key, row in exact.items():
        if key not in fast or fast[key]["changed_at"] <= row["changed_at"]:
            yield row | {"is_fast": False}
    for key, row in fast.items():
        alert = conf.alerts.get(row["alert"])
        is_newer = key not in exact or exact[key]["changed_at"] < row["changed_at"]
        if alert and alert.fast and is_newer:
            if (end := ends[row["alert"]]) is None or end[1] - row["known_at"] < CAUGHT_UP:
                yield row | {"is_fast": True}
            elif key in exact:
                yield exact[key] | {"is_fast": False}


def judged_ends(conf: Conf) -> dict[str, tuple[int, datetime] | None]:
    """Return the bronze batch and the wall clock that each alert is judged up to; None before its first step has ended."""
    lake = LakeStore(conf)
    ends = {name: (step_file(lake, f"alerts/{name}").read() or FlowStep()).after for name in conf.alerts}
    return {name: (end.bronze_batch, from_micros(end.until)) if end.until > THE_BEGINNING else None for name, end in ends.items()}
