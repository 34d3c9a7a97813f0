"""Send what waits for a channel. The run sends what its state file has (delivery.py); the watch has an `Outbox`, a thread for each channel.

A message is sent until the channel takes it, refuses it for good, or has failed MOST_TRIES times. It says when it was handed over.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from expectations.wording import counted
from gold.alerts.states import NORMAL
from orchestration.alerts.grouping import Waiting, send
from orchestration.alerts.notifications import DEAD, FAILED, SENT, Outcome, tried
from orchestration.connectors.channels.channel import Channel, RefusedError
from orchestration.errors import without_secrets

MOST_TRIES = 300
"""With the pauses of supervisor.sinks an hour and a half."""
MOST_WAITING = 10_000
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
END_SECONDS = 5.0  # for what waits when the watch ends


def attempt(channel: Channel, waiting: Sequence[Waiting], clock: Callable[[], datetime]) -> Iterator[Outcome]:
    """Send until the channel is down; what is behind that is not tried."""
    for begin in range(0, len(waiting), channel.most):
        together = waiting[begin : begin + channel.most]
        try:
            at = clock()
            channel.send([replace(entry.message, told_at=at) for entry in together])
        except RefusedError as error:
            if len(together) > 1:  # one of them may be at fault
                for entry in together:
                    (outcome,) = attempt(channel, [entry], clock)
                    yield outcome
                    if outcome.state == FAILED:
                        return
            else:
                yield Outcome(together[0], DEAD, str(error), at)
        except Exception as error:
            reason, retry_after = without_secrets(error), getattr(error, "retry_after", 0.0)
            for entry in together:
                yield Outcome(entry, DEAD if entry.tries + 1 >= MOST_TRIES else FAILED, reason, at, retry_after)
            return
        else:
            yield from (Outcome(entry, SENT, None, at) for entry in together)


class Outbox:
    """Messages of the watch for one channel. A full outbox drops its oldest messages and counts them; the run sends these too."""

    def __init__(self, name: str, channel: Channel, waiting: Sequence[Waiting], notify: Callable[[str], None]) -> None:
        self._name, self._channel, self._notify = name, channel, notify
        # An earlier process may have sent these, so that an end does not take their place.
        self._waiting, self._done = deque(replace(entry, opens=False) for entry in waiting), list[Outcome]()
        self._sending, self._is_ending, self.dropped = list[Waiting](), False, 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"channel {name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> list[Waiting]:
        """Messages that are not sent yet, the oldest first."""
        with self._changed:
            return [*self._sending, *self._waiting]

    def take_done(self) -> list[Outcome]:
        """Return the outcomes of messages that do not wait any more, since the last call."""
        with self._changed:
            done, self._done = self._done, []
        return done

    def add(self, messages: Sequence[Waiting]) -> None:
        with self._changed:
            if any(entry.message.state == NORMAL for entry in messages):
                self._waiting = deque(send([*self._waiting], messages))
            else:
                self._waiting.extend(messages)
            more = len(self._waiting) - MOST_WAITING
            for _ in range(more):
                self._waiting.popleft()
            if more > 0:
                if not self.dropped:
                    self._notify(f"channel {self._name} takes less than there is to tell: messages are dropped")
                self.dropped += more
            self._changed.notify()

    def end(self) -> None:
        """When all is taken, or cannot be taken for now."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(END_SECONDS)
        if self.dropped:
            self._notify(f"channel {self._name}: {counted(self.dropped, 'message')} dropped")

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_ending)
                if not self._waiting or (self._is_ending and failures):
                    return
                self._sending = [self._waiting.popleft() for _ in range(min(self._channel.most, len(self._waiting)))]
            outcomes = [*attempt(self._channel, self._sending, lambda: datetime.now(UTC))]
            failed = [outcome for outcome in outcomes if outcome.state == FAILED]
            for outcome in outcomes:
                if outcome.state == DEAD:
                    self._notify(f"channel {self._name} refuses a message about {outcome.waiting.message.alert}: {_reason(outcome)}")
            if failed and not failures:
                self._notify(f"channel {self._name} is down: {_reason(failed[0])}; it is tried again")
            failures = failures + 1 if failed else 0
            with self._changed:
                self._done += [outcome for outcome in outcomes if outcome.state != FAILED]
                untried = self._sending[len(outcomes) :]
                self._waiting.extendleft(reversed([*map(tried, failed), *untried]))
                self._sending = []
                if failed:
                    pause = max(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1], failed[0].retry_after)
                    self._changed.wait_for(lambda: self._is_ending, pause)


def _reason(outcome: Outcome) -> str:
    return (outcome.reason or "").rstrip(".")
