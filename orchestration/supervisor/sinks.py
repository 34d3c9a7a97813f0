"""Sinks and channels beside a run, each in a thread of its own, so that one that is slow or down keeps nothing else from going on."""

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

from orchestration.alerts.delivery import Topics, tell
from orchestration.conf.model import Conf
from orchestration.connectors.channels.all import channel_of
from orchestration.connectors.channels.channel import Channel
from orchestration.connectors.outages import Kind, Outages
from orchestration.connectors.sinks.all import sink_of
from orchestration.connectors.sinks.sink import Sink
from orchestration.connectors.sources.source import Notice
from orchestration.engine.progress import Progress
from orchestration.errors import DownError, TidemarkError, without_secrets
from orchestration.jobs.sinks import send

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 20.0
"""After a failure, and each time twice as long."""
SWITCH_SECONDS = 0.0005
"""After which a busy thread lets a sender go on, which waits for an answer to each message. Python's own is ten times as long."""
LOOK_SECONDS = 10.0
"""Marts are built by another process, which wakes nobody; and a silence ends by the clock."""


class _Failure(NamedTuple):
    """The reason, in a sentence, and for how many seconds the target wants no request."""

    reason: str
    retry_after: float


class Senders(ABC):
    """All of one kind, of one run. `run_to_end` for a run that ends, `start` for one that goes on."""

    look_seconds = LOOK_SECONDS

    def __init__(self, conf: Conf, progress: Progress, stop: threading.Event, kind: Kind, names: Collection[str]) -> None:
        """Nothing happens yet."""
        self._conf, self._progress, self._stop, self._kind, self._names = conf, progress, stop, kind, names
        self._outages = Outages(conf.lake, kind, progress.notice)
        self._wakes = {name: threading.Event() for name in names}
        self._threads = [threading.Thread(target=self._follow, args=[name], name=f"{kind} {name}", daemon=True) for name in names]

    @abstractmethod
    def _step(self, name: str) -> bool:
        """Send a part of what there is; whether there was something. Any error means that the target is down."""

    def run_to_end(self) -> None:
        """Until each has what the newest snapshot has; then a TidemarkError if one is down."""
        with ThreadPoolExecutor(max(len(self._names), 1), self._kind) as threads:
            down = [failure.reason for failure in threads.map(self._attempt, self._names) if failure is not None]
        if down:
            hint = "Everything else is done; the next run sends what is missing."
            raise TidemarkError("\n  ".join([*down, hint]))

    def start(self) -> None:
        """Until the run is told to stop."""
        sys.setswitchinterval(SWITCH_SECONDS)
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is a snapshot, or the run ends."""
        for event in self._wakes.values():
            event.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the batches that are being sent; after so many seconds leave those that hang: they are sent again, as after a kill."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(seconds)

    def _follow(self, name: str) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            self._wakes[name].clear()
            if (failure := self._attempt(name)) is None:
                pause = FIRST_PAUSE_SECONDS
                self._wakes[name].wait(self.look_seconds)
            else:
                self._stop.wait(max(pause, failure.retry_after))
                pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def _attempt(self, name: str) -> _Failure | None:
        """Send all that there is; None where that worked."""
        try:
            while not self._stop.is_set() and self._step(name):
                self._outages.answered(name)
            self._outages.answered(name)
        except Exception as error:
            reason = f"{self._kind} {name}: {without_secrets(error)}"
            self._outages.failed(name, reason)
            return _Failure(reason, getattr(error, "retry_after", 0.0))
        return None


class SinkSender(Senders):
    """Rows to sinks."""

    def __init__(self, conf: Conf, progress: Progress, stop: threading.Event, declared: Mapping[str, Sink] | None = None) -> None:
        """`declared`: instead of those of the conf."""
        self._sinks = dict(declared or {})
        super().__init__(conf, progress, stop, "sink", conf.sinks if declared is None else declared)

    def _step(self, name: str) -> bool:
        if name not in self._sinks:  # here, so that one that cannot be made is down, and no other
            self._sinks[name] = sink_of(self._conf, name)
        sent = send(self._conf, name, self._sinks[name], datetime.now(UTC))
        if sent and sent.rows:
            self._progress.sent(name, sent.snapshot_id, sent.rows, sent.seconds)
        if sent and sent.dead:
            warning = "rows are in ops.dead_rows; `tidemark sinks resend` sends them again"
            self._progress.notice(Notice(warning, {"sink": name, "rows": str(sent.dead)}))
        if sent and sent.lacking:
            self._progress.notice(Notice("the table has a new column", {"sink": name, "reason": sent.lacking}))
        return sent is not None


class ChannelSender(Senders):
    """Messages about alerts to channels."""

    kind: Kind = "channel"

    def __init__(
        self,
        conf: Conf,
        progress: Progress,
        stop: threading.Event,
        declared: Mapping[str, Channel] | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        """`declared`: instead of those of the conf. `names`: some of these."""
        self._channels = dict(declared or {})
        super().__init__(conf, progress, stop, self.kind, names if names is not None else conf.channels if declared is None else declared)

    def _step(self, name: str) -> bool:
        now = datetime.now(UTC)
        if name not in self._channels:
            self._channels[name] = channel_of(self._conf, name)
        sent = tell(self._conf, name, self._channels[name], now, self._topics(name, now))
        if sent and sent.dead:
            warning = "messages are in ops.dead_letters; `tidemark alerts resend` sends them again"
            self._progress.notice(Notice(warning, {"channel": name, "messages": str(sent.dead)}))
        if sent and sent.down is not None:
            raise DownError(sent.down, sent.retry_after)
        return sent is not None

    def _topics(self, name: str, now: datetime) -> Topics | None:
        """None: those of a run."""
