"""How far each sink has come, from what the lake remembers: no sink is asked, and no secret read."""

from datetime import datetime
from typing import Any

from orchestration.conf.model import Conf
from orchestration.connectors.outages import current_outage
from orchestration.connectors.sinks.sink_states import SinkState, read_state
from orchestration.jobs.sinks import newest_table
from orchestration.storage.snapshots import all_snapshots

COLUMNS = ("sink", "table", "target", "snapshot", "sent_at", "snapshots_behind", "rows_behind", "lag_seconds", "down_since", "reason")


def status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """One row a sink (COLUMNS), without asking the target; None where there is nothing to say yet.

    `rows_behind`: rows that the newest snapshot has and the target has not. `lag_seconds`: the age of the oldest snapshot that it lacks.
    """
    return [_row(conf, name, read_state(conf, name), now) for name in conf.sinks]


def describe_down(conf: Conf) -> list[str]:
    """A sentence for each sink that is down."""
    outages = [current_outage(conf.lake, "sink", name) for name in conf.sinks]
    return [f"down since {outage.since}: {outage.reason}" for outage in outages if outage]


def _row(conf: Conf, name: str, state: SinkState, now: datetime) -> dict[str, Any]:
    sent, behind, rows, lag = state.sent, None, None, None
    pinned = newest_table(conf, name)
    if pinned is not None:
        missing = [snapshot for snapshot in all_snapshots(conf.lake) if sent is None or snapshot.snapshot_id > sent.snapshot_id]
        missing = [snapshot for snapshot in missing if snapshot.snapshot_id <= pinned.position.snapshot_id]
        behind, lag = len(missing), round(max((now - missing[0].at).total_seconds(), 0.0), 1) if missing else 0.0
        rows = 0 if sent == pinned.position else pinned.count(None if pinned.is_replaced_since(sent) else sent)
    settings, outage = conf.sinks[name], current_outage(conf.lake, "sink", name)
    cells = name, settings.table, settings.target, sent and sent.snapshot_id, state.sent_at, behind, rows, lag
    return dict(zip(COLUMNS, (*cells, outage and outage.since, outage and outage.reason), strict=True))
