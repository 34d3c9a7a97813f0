"""Messages that wait for their channel: a thread for each, which tries again until they are taken."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from gold.alerts.notices import Message
from orchestration.connectors.channels.channel import Channel, RefusedError
from orchestration.errors import without_secrets

MOST_WAITING = 10_000
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
END_SECONDS = 5.0  # for what waits when the watch ends


class Outbox:
    """The outbox of one channel. A full outbox drops its oldest messages and counts them; the job behind gold.alerts sends these too."""

    def __init__(self, name: str, channel: Channel, waiting: Sequence[Message], notify: Callable[[str], None]) -> None:
        self._name, self._channel, self._notify = name, channel, notify
        self._waiting, self._sent, self._is_ending, self.dropped = deque(waiting), list[Message](), False, 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"channel {name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> list[Message]:
        """Messages that are not sent yet, the oldest first."""
        with self._changed:
            return list(self._waiting)

    def take_sent(self) -> list[Message]:
        """Return the messages that were sent since the last call."""
        with self._changed:
            sent, self._sent = self._sent, []
        return sent

    def add(self, messages: Sequence[Message]) -> None:
        with self._changed:
            self._waiting.extend(messages)
            more = len(self._waiting) - MOST_WAITING
            for _ in range(more):
                self._waiting.popleft()
            if more > 0:
                if not self.dropped:
                    self._notify(f"channel {self._name} is too slow: its queue is full, and the oldest messages are dropped")
                self.dropped += more
            self._changed.notify()

    def end(self) -> None:
        """When all is taken, or cannot be taken for now."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(END_SECONDS)
        if self.dropped:
            self._notify(f"channel {self._name}: {self.dropped:,} messages were dropped")

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_ending)
                if not self._waiting or (self._is_ending and failures):
                    return
                several = [self._waiting[n] for n in range(min(self._channel.most, len(self._waiting)))]
            sent: list[Message] = []
            try:
                self._channel.send(several)
                sent, failures = several, 0
            except RefusedError as error:
                self._notify(f"channel {self._name} refuses a message about {several[0].alert}: {_said(error)}")
            except Exception as error:  # whatever a channel does, others and the watch go on
                if not failures:
                    self._notify(f"channel {self._name} is down: {_said(error)}; it is tried again")
                failures += 1
                with self._changed:
                    self._changed.wait_for(lambda: self._is_ending, RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])
                continue
            with self._changed:
                self._sent += sent
                for message in several:
                    if self._waiting and self._waiting[0] is message:  # else it was dropped meanwhile
                        self._waiting.popleft()


def _said(error: Exception) -> str:
    return without_secrets(error).rstrip(".")
