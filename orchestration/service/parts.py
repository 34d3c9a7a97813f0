"""Which processes `tidemark up` runs, by what conf asks for."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import Collected

STREAMS, COLLECTOR, PAGE = "streams", "collector", "page"


@dataclass(frozen=True)
class Part:
    """A process. `arguments`: a command line of `tidemark`, without its conf."""

    name: str
    arguments: tuple[str, ...]


def parts_of(conf: Conf) -> Iterator[Part]:
    """In the order in which they start; they end the other way round, so that what is taken in is on the disk before streams end."""
    yield Part(STREAMS, ("run",))
    if any(isinstance(source.transport, Collected) for source in conf.sources.values()):
        yield Part(COLLECTOR, ("collect",))
    yield Part(PAGE, ("serve",))
