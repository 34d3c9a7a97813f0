"""A small lake with rows of gold.alerts, written as the job of a run does: appended with each snapshot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from gold.alerts.spec import NoticePolicy
from gold.schema import ALERTS
from orchestration.alerts.delivery import Told, tell
from orchestration.alerts.notifications import NOTIFICATIONS
from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.model import Conf, Device
from orchestration.connectors.channels.channel import Channel, Message
from orchestration.location import Location
from orchestration.storage import generations
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import version_of
from orchestration.storage.generations import Generation
from orchestration.storage.positions import ALERTS as TABLE
from orchestration.storage.registry import sync
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, all_snapshots
from tests.lakes import conf

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
FIRST = Generation()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def changed(seconds: float, state: str, entity: str = "oven", previous: str = "normal", **more: Any) -> dict[str, Any]:
    """Of the alert too_hot; one episode an entity."""
    times = dict.fromkeys(("changed_at", "since", "known_at"), at(seconds))
    facts = {"alert": "too_hot", "entity": entity, "state": state, "previous_state": previous, "severity": "warning"}
    return {**facts, **times, "value": 281.5, "summary": f"{entity} is {state}", "alert_id": f"episode-{entity}", **more}


def write_changes(lake: Location, number: int, *rows: dict[str, Any], generation: Generation = FIRST) -> None:
    path = _append(lake, generation, rows)
    SNAPSHOTS.append(lake, [Snapshot(number, at(number), generation.generation, number, {TABLE: version_of(path)}, {})])


def _append(lake: Location, generation: Generation, rows: Iterable[dict[str, Any]]) -> Location:
    path = generation.table(lake, TABLE)
    append_rows(path, pa.Table.from_pylist([*rows], ALERTS))
    return path


class AlertLake:
    """Alert `too_hot`; `oven` and `fridge` are in the kitchen. Each `write` is a snapshot."""

    def __init__(self, folder: Path, policy: NoticePolicy | None = None, channels: dict[str, dict[str, Any]] | None = None) -> None:
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        devices = {name: Device(name, ("kitchen",), "hall") for name in ("oven", "fridge")}
        settings = {name: ChannelSettings(**of) for name, of in (channels or {}).items()}
        policies = {"too_hot": policy or NoticePolicy()}
        made = conf(folder, devices=devices, channels=settings, notice_policies=policies)
        self.conf: Conf = replace(made, folder=folder / "conf")
        self.generation = Generation()
        sync(self.conf.lake, devices, START)

    def write(self, *rows: dict[str, Any]) -> "AlertLake":
        write_changes(self.conf.lake, len(all_snapshots(self.conf.lake)), *rows, generation=self.generation)
        return self

    def write_ahead(self, *rows: dict[str, Any]) -> "AlertLake":
        """No snapshot has them yet."""
        _append(self.conf.lake, self.generation, rows)
        return self

    def replayed(self) -> "AlertLake":
        """Another generation is active, and has no row yet."""
        self.generation = Generation(1, 2, START, "a test", 0, {"gold/alerts": 2})
        generations.GENERATIONS.append(self.conf.lake, [self.generation])
        return self

    def tell(self, channel: Channel, seconds: float, name: str = "pager") -> Told:
        """All that there is to send, or until the channel is down."""
        sums = Told(0, 0)
        while told := tell(self.conf, name, channel, at(seconds)):
            sums = Told(sums.sent + told.sent, sums.dead + told.dead, told.down)
            if told.down is not None:
                break
        return sums

    def noted(self, name: str = "pager") -> list[tuple[str, str, int, str | None]]:
        """Of ops.notifications: delivery, state of the alert, tries, reason."""
        rows = NOTIFICATIONS.rows(self.conf.lake, [("channel", "=", name)])
        return [(row.state, row.alert_state, row.tries, row.reason) for row in rows]


@dataclass
class Recorder(Channel):
    """It does as it is told: `errors` are raised, one by each of the next calls."""

    errors: list[Exception] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    most: int = 1

    def send(self, messages: Sequence[Message]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.messages += messages

    def states(self, messages: Iterable[Message] | None = None) -> list[str]:
        return [f"{of.state} {' '.join(of.entities)}" for of in (self.messages if messages is None else messages)]
