"""Which processes `tidemark up` runs, by what conf asks for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import PageSettings
from orchestration.conf.transport_settings import Collected

STREAMS, COLLECTOR, ALERTS, PROBLEMS, PAGE, SQL_SERVER = "streams", "collector", "alerts", "problems", "page", "sql-server"


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
    if any(alert.fast for alert in conf.alerts.values()) and conf.tailed_sources:
        yield Part(ALERTS, ("alerts", "watch"))
    if any(channel.tells_problems for channel in conf.channels.values()):
        yield Part(PROBLEMS, ("alerts", "problems"))
    yield Part(PAGE, ("serve",))
    if conf.sql_server is not None:
        yield Part(SQL_SERVER, ("sql-server",))


def concern_of(part: str, conf: Conf) -> object:
    """Return the settings that a part was started with; if they have changed, the part has to be started again."""
    if part == COLLECTOR:
        return conf.sources, conf.lake
    if part == SQL_SERVER:
        return conf.sql_server, conf.pipeline, conf.lake, conf.stream_of, conf.table_of_flow, conf.group_windows
    return conf if part in (PAGE, ALERTS, PROBLEMS) else replace(conf, schedules={}, page=PageSettings(), sql_server=None)
