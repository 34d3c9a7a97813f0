"""What is said where Spark ran out of memory: it then ends in many ways, and most of them name something else."""

from collections.abc import Iterator
from contextlib import contextmanager

from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError

SIGN = b"java.lang.OutOfMemoryError"


@contextmanager
def heap_is_named(lake: Lake) -> Iterator[None]:
    """An error in here is told as one of memory if the session's log has come to say so."""
    log = lake.log
    before = log.stat().st_size if log.exists() else 0
    try:
        yield
    except TidemarkError:
        raise
    except Exception as error:
        if log.exists() and SIGN in log.read_bytes()[before:]:
            raise TidemarkError(
                f"Spark ran out of memory: it has {lake.conf.engine.driver_memory}, and {log} says where it was.\n"
                "  Raise driver_memory under `engine` in conf/pipeline.yml, and run again: nothing is lost, it goes on where it ended."
            ) from error
        raise
