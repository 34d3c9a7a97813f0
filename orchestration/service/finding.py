"""A line of `tidemark doctor`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestration.errors import TidemarkError, first_line


@dataclass(frozen=True)
class Finding:
    """`verdict`: good, warning or bad. `command`: fixes it, or shows more; empty where nothing has to be done."""

    what: str
    verdict: str
    finding: str
    command: str = ""


def unless_it_breaks(what: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield what is found; where looking fails, that is a finding too, and the others go on."""
    try:
        yield from look()
    except TidemarkError as error:
        yield Finding(what, "bad", str(error))
    except Exception as error:
        yield Finding(what, "bad", f"cannot be looked at: {type(error).__name__}: {first_line(str(error))}")
