"""The time of a connection: turns, limits, and the signals that end a query or the process."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable

from orchestration.serving.postgres.activity import Activity
from orchestration.serving.postgres.wire import PostgresError, Wire

SECONDS, LOGIN_SECONDS = 300.0, 10.0
GRACE_SECONDS = 2.0
"""How long DuckDB may take to end a query; then the process ends. Some functions never look whether they should."""
POLL_SECONDS, TURN_SECONDS, INTERRUPT_SECONDS = 0.25, 0.02, 0.05
CANCEL, END = signal.SIGUSR1, signal.SIGTERM
TIMED_OUT, CANCELLED = "canceling statement due to statement timeout", "canceling statement due to user request"


class Watch:
    """A thread that ends a statement whose time is over or which is cancelled. The signals CANCEL and END have to be blocked."""

    interrupt: Callable[[], object] = staticmethod(lambda: None)
    """Asks DuckDB to end the query."""

    def __init__(self, wire: Wire, activity: Activity) -> None:
        """The first limit is that of the login."""
        self._wire, self._activity = wire, activity
        self._turn: int | None = None
        self._number, self._is_cancelled = 0, False
        self._deadline = time.monotonic() + LOGIN_SECONDS
        threading.Thread(target=self._watch, daemon=True).start()

    def begins(self, statement_timeout: str = "0") -> None:
        """Wait for a turn; from then on time counts. PostgresError if the statement is cancelled while it waits."""
        self._is_cancelled = False
        while (turn := self._activity.take_turn()) is None:
            if self._is_cancelled:
                raise PostgresError("57014", CANCELLED)
            time.sleep(TURN_SECONDS)
        self._turn, self._number = turn, self._number + 1
        self._deadline = time.monotonic() + min(SECONDS, seconds_of(statement_timeout))

    def ends(self) -> None:
        """Give the turn to others, where there was one."""
        self._deadline = float("inf")
        if self._turn is not None:
            self._activity.end_turn(self._turn)
            self._turn = None

    def _watch(self) -> None:
        while True:
            caught = signal.sigtimedwait({CANCEL, END}, POLL_SECONDS)
            if caught and caught.si_signo == END:
                self._leave(PostgresError("57P01", "terminating connection due to administrator command"))
            elif caught:
                self._end(CANCELLED)
            elif time.monotonic() > self._deadline and not self._number:
                self._leave(PostgresError("57014", "canceling authentication due to timeout"))
            elif time.monotonic() > self._deadline:
                self._end(TIMED_OUT)

    def _end(self, why: str) -> None:
        """End the statement that runs now, and none that comes after it."""
        self._is_cancelled = True
        number, end = self._number, time.monotonic() + GRACE_SECONDS
        while self._deadline != float("inf") and self._number == number:
            self.interrupt()
            if time.monotonic() > end:
                self._leave(PostgresError("57014", f"{why}; the connection ends with it"))
            time.sleep(INTERRUPT_SECONDS)

    def _leave(self, problem: PostgresError) -> None:
        try:
            self._wire.last_word(problem)
        finally:
            os._exit(1)


def seconds_of(setting: str) -> float:
    """Seconds of a statement_timeout: milliseconds, or a number with its unit. Infinite for 0 and for what is no time."""
    match = re.fullmatch(r"(\d+)\s*(ms|s|min)?", setting.strip())
    return int(match[1]) * {"s": 1.0, "min": 60.0}.get(match[2], 0.001) if match and int(match[1]) else float("inf")
