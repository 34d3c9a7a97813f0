"""`tidemark alerts watch`: fast alerts are judged where events arrive, and people are notified at once; one process a lake.

Positions of the tails, states and messages that wait are kept in a file as they were at one instant, once a second. A process that is
killed goes on from there, and sends what it sent since then a second time, with the same message ids.
"""

import gc
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
import pyarrow as pa

from bronze.events import identified
from expectations.wording import counted
from gold.alerts.fast import FastAlerts, Watched
from orchestration.alerts.fast_delivery import FastDelivery, KeptDelivery
from orchestration.alerts.firing import fast_file
from orchestration.alerts.notifications import leave_sent
from orchestration.alerts.tails import AT_ONCE, Arrived, Position, beginning, tail
from orchestration.conf.model import Conf, Source
from orchestration.errors import ConfError, describe
from orchestration.storage.delta import python_rows
from orchestration.storage.lake_layout import fast_alerts_folder
from orchestration.storage.lease import sole_writer
from orchestration.storage.registry import versions, with_declared
from orchestration.storage.silver_inputs import silver_config
from orchestration.storage.state_file import StateFile

Notify = Callable[[str], None]
STATE = "state.json"
WAIT_SECONDS, KEEP_SECONDS, REGISTRY_SECONDS, RETRY_SECONDS = 0.2, 1.0, 10.0, 1.0
SWITCH_SECONDS = 0.0005  # after which a channel that is sending lets events be judged; Python's own is ten times as long
CATCH_UP_SECONDS = 5.0  # for what came while nobody watched; until then nobody is said to be silent


@dataclass(frozen=True)
class Known:
    """The content of the state file. `of`: the declaration of each alert; a changed one begins anew."""

    places: dict[str, Position] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)
    watched: dict[str, Watched] = field(default_factory=dict)
    delivery: KeptDelivery = field(default_factory=KeptDelivery)


class Watch:
    """The watch over one lake."""

    def __init__(self, conf: Conf, notify: Notify) -> None:
        """ConfError where conf has no fast alert, or no source that can be watched."""
        self._conf, self._notify = conf, notify
        self._alerts = {name: alert for name, alert in conf.alerts.items() if alert.fast}
        self._sources = conf.tailed_sources
        if not self._alerts or not self._sources:
            lacking = "source that is pushed or of Kafka" if self._alerts else "alert with `fast: true`"
            raise ConfError(f"there is nothing to watch: conf has no {lacking}")
        self.stop = threading.Event()
        self._file = StateFile(fast_alerts_folder(conf.lake) / STATE, Known, "Remove it: fast alerts then begin anew.")
        self._arrived: queue.Queue[Arrived] = queue.Queue(8)
        self._writer = ThreadPoolExecutor(1, "state of alerts")
        self._behind = {source.name for source in self._sources}

    def run(self) -> None:
        """Until `stop` is set; HeldError where another process watches this lake."""
        sys.setswitchinterval(SWITCH_SECONDS)
        with sole_writer(fast_alerts_folder(self._conf.lake), doing="watches alerts of this lake"):
            kept = self._file.read() or Known()
            self._positions = {source.name: kept.places.get(source.name) or beginning(self._conf, source) for source in self._sources}
            same = {name: watched for name, watched in kept.watched.items() if kept.of.get(name) == repr(self._alerts.get(name))}
            self._fast = FastAlerts(self._alerts.values(), silver_config(self._conf), self._devices(), same)
            self._delivery = FastDelivery(self._conf, kept.delivery, self._fast.devices, self._notify)
            for source in self._sources:
                threading.Thread(target=self._follow, args=(source,), name=f"tail {source.name}", daemon=True).start()
            self._notify(f"watching {counted(len(self._alerts), 'alert')} in {', '.join(source.name for source in self._sources)}")
            gc.freeze()  # or a full collection walks over all that was imported, and messages wait for it
            try:
                self._loop()
            finally:
                self._delivery.end()
                self._keep().result()

    def _loop(self) -> None:
        start = kept = looked = registry_at = time.monotonic()
        keeping = self._keep()
        while not self.stop.is_set():
            self._take(self._waiting_events())
            now = time.monotonic()
            if now > looked + WAIT_SECONDS and (not self._behind or now > start + CATCH_UP_SECONDS):
                looked = now
                self._tell(self._fast.silences(datetime.now(UTC)))
            if now > registry_at + REGISTRY_SECONDS:
                registry_at = now
                self._look_again()
            if now > kept + KEEP_SECONDS and keeping.done():
                keeping.result()
                keeping, kept = self._keep(), now

    def _look_again(self) -> None:
        """At what other processes have said of devices and silences; where that fails, what was known holds."""
        try:
            self._fast.devices = self._devices()
            self._delivery.look_again(self._fast.devices)
        except Exception as error:
            self._notify(f"devices and silences cannot be read: {describe(error)}; they are looked at again")

    def _waiting_events(self) -> list[Arrived]:
        """Take the events of all sources that have arrived; after a while without any, nothing."""
        several: list[Arrived] = []
        with suppress(queue.Empty):
            several.append(self._arrived.get(timeout=WAIT_SECONDS))
            while sum(len(one.events or ()) for one in several) < AT_ONCE:
                several.append(self._arrived.get_nowait())
        return several

    def _take(self, several: list[Arrived]) -> None:
        """Whatever they hold, the watch goes on; gold.alerts has what it passes over."""
        try:
            if events := [one.events for one in several if one.events is not None]:
                self._tell(self._fast.take(identified(pa.concat_tables(events), datetime.now(UTC), 0, 0)))
        except Exception as error:
            self._notify(f"events of {', '.join(sorted({one.source for one in several}))} are passed over: {describe(error)}")
        for one in several:
            self._positions[one.source] = one.position
            if one.events is None:
                self._behind.discard(one.source)

    def _tell(self, changes: Iterable[pa.Table]) -> None:
        self._delivery.take((row for table in changes for row in python_rows(table)), may_be_sent=bool(self._behind))

    def _keep(self) -> "Future[None]":
        """Save what fires and the state. A thread writes it, and then the outcomes of messages, which the run does not send again."""
        delivery, done, newest = self._delivery.keep()
        declared = {name: repr(alert) for name, alert in self._alerts.items()}
        content = msgspec.json.encode(Known(self._positions, declared, self._fast.watched, delivery))

        def write() -> None:
            if newest is not None:  # first: after a kill the same events are judged again
                fast_file(self._conf.lake).write(newest)
            self._file.write(msgspec.Raw(content))
            for name, outcomes in done.items():
                if outcomes:
                    leave_sent(self._conf.lake, name, outcomes)

        return self._writer.submit(write)

    def _follow(self, source: Source) -> None:
        """In a thread: a source that is down delays no other."""
        position, is_said = self._positions[source.name], False
        while True:
            try:
                for arrived in tail(self._conf, source, position):
                    position, is_said = arrived.position, False
                    self._arrived.put(arrived)
            except Exception as error:
                if not is_said:
                    self._notify(f"{describe(error)}" if source.name in str(error) else f"source {source.name}: {describe(error)}")
                is_said = True
                time.sleep(RETRY_SECONDS)

    def _devices(self) -> pa.Table:
        """The registry, and what conf declares beside it."""
        registered = versions(self._conf.lake)
        added = set(self._conf.devices).difference(version["device_id"] for version in registered)
        return with_declared(registered, (self._conf.devices[device_id] for device_id in added))
