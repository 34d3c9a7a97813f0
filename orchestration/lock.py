"""One process writes a lake: two that append to one Delta table on a local disk lose acknowledged commits."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestration.errors import HeldError


@contextmanager
def sole_writer(lake: Path) -> Iterator[None]:
    """Hold the lake; HeldError if another process does. The kernel lets go of it when the holder ends, however it ends."""
    lake.mkdir(parents=True, exist_ok=True)
    with (lake / "writer.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise HeldError(f"process {holder} writes the lake at {lake}; stop it first, or wait for its end.") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_held(lake: Path) -> bool:
    """Whether some process writes the lake now."""
    if not (lake / "writer.lock").exists():
        return False
    with (lake / "writer.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
