"""Waiting for what a test has begun. The bound only ends a wait without hope: no machine that works at all is so slow."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 600.0


def until(holds: Callable[[], bool], tell: Callable[[], object] = lambda: "it never became true", pause_seconds: float = 0.05) -> None:
    """Returns once it holds; `tell` says what was there instead."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, tell()
        time.sleep(pause_seconds)
