"""Signals that tell a process to end."""

import _thread
import signal
from threading import Event


def end_by_signals(stop: Event) -> None:
    """Set an event at SIGTERM and Ctrl-C; only the main thread may call this.

    Another thread sets it: a handler runs in the middle of what the main thread does, and would wait for ever where that holds the lock of
    the event, in a wait for it or in a handler before. The kernel sends a part several SIGTERM when its `up` is killed.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _thread.start_new_thread(stop.set, ()))
