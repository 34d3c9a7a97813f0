"""Signals that tell a process to end, one in the middle of another."""

import subprocess
import sys

NESTED = """
import os, signal, threading
from orchestration.end_signals import end_by_signals

class Stop(threading.Event):
    lock, times = threading.Lock(), 0

    def set(self):
        with self.lock:
            self.times += 1
            if self.times == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            super().set()

stop = Stop()
end_by_signals(stop)
os.kill(os.getpid(), signal.SIGTERM)
stop.wait()
print("ended")
"""


def test_a_signal_while_the_one_before_sets_the_event_stops_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "ended\n"
