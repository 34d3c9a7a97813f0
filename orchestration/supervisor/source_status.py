"""How far each source is, from what the lake remembers: no source is asked, and no secret read."""

from datetime import UTC, datetime, timedelta
from typing import Any

from orchestration.conf.model import Conf, Source
from orchestration.connectors.outages import Outage, current_outage
from orchestration.connectors.sources.all import source_of
from orchestration.connectors.sources.spool import BYTE, SEGMENT
from orchestration.connectors.sources.spool_records import MARK_BYTES, waiting
from orchestration.storage.lake_layout import spool_folder
from orchestration.storage.source_offsets import SourceOffset, rows_since, source_offsets
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.ends import noted_ends

WAITING = ("waiting_messages", "waiting_bytes", "lag_seconds")
COLUMNS = ("source", "kind", "state", "down_since", "offset", "last_received_at", "rows_last_hour", *WAITING, "reason")


def status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """One row a source of conf (COLUMNS), in its order; instants in UTC, None where there is nothing to say.

    `state`: `paused`, `down` when it was asked last, `new` as long as bronze has read nothing of it, else `up`.
    """
    events = LakeStore(conf).table_path("bronze.events")
    offsets, rows = source_offsets(events), rows_since(events, now - timedelta(hours=1))
    return [_row(conf, declared, offsets.get(name), rows.get(name, 0), now) for name, declared in conf.sources.items()]


def _row(conf: Conf, declared: Source, stored: SourceOffset | None, rows: int, now: datetime) -> dict[str, Any]:
    name = declared.name
    outage = current_outage(conf.lake, "source", name) or current_outage(conf.lake, "collected", name)
    waiting_bytes, lag_seconds = _waiting(conf, name, stored, now)
    waiting_messages = source_of(conf, name).waiting(stored.offset if stored else {}, noted_ends(conf.lake, name))
    cells = (
        *(name, declared.transport.kind, _state(declared, stored, outage), outage and outage.since),
        *(stored and source_of(conf, name).describe(stored.offset), stored and stored.received_at, rows),
        *(waiting_messages, waiting_bytes, lag_seconds, outage and outage.reason),
    )
    return dict(zip(COLUMNS, cells, strict=True))


def _state(declared: Source, stored: SourceOffset | None, outage: Outage | None) -> str:
    if declared.is_paused:
        return "paused"
    return "down" if outage else "up" if stored else "new"


def _waiting(conf: Conf, name: str, stored: SourceOffset | None, now: datetime) -> tuple[int | None, float | None]:
    """Return the bytes of pushed events that bronze does not have, and for how many seconds the first of them has waited."""
    folder, offset = spool_folder(conf.lake, name), stored.offset if stored else {}
    if not folder.exists():
        return None, None
    waiting_bytes, since_us = waiting(folder.local, int(offset.get(SEGMENT, -1)), int(offset.get(BYTE, MARK_BYTES)))
    lag = 0.0 if since_us is None else (now - datetime.fromtimestamp(0, UTC)).total_seconds() - since_us / 1_000_000
    return waiting_bytes, round(max(lag, 0.0), 1)
