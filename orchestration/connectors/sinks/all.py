"""Every sink of a lake, as conf declares it: the one list that a new kind of sink is added to."""

from collections.abc import Mapping

from orchestration.conf.model import Conf, SinkSettings
from orchestration.conf.place import absolute
from orchestration.connectors.sinks.files import FileSink
from orchestration.connectors.sinks.postgres import PostgresSink
from orchestration.connectors.sinks.python import PythonSink
from orchestration.connectors.sinks.sink import Sink
from orchestration.connectors.sinks.webhook import WebhookSink


def sinks(conf: Conf) -> Mapping[str, Sink]:
    """By name. Nothing is looked at, and no secret read, before the first call."""
    return {name: _sink(conf, name, settings) for name, settings in conf.sinks.items()}


def target_of(settings: SinkSettings) -> str:
    """Where rows go, without what may be a secret."""
    if settings.postgres:
        return f"postgres {settings.postgres.table}"
    if settings.files:
        return f"{settings.files.format} files {settings.files.path}"
    return "webhook" if settings.webhook else f"python {settings.python}"


def _sink(conf: Conf, name: str, settings: SinkSettings) -> Sink:
    if settings.postgres:
        return PostgresSink(f"{conf.pipeline}/{name}", conf.folder, settings.postgres)
    if settings.files:
        return FileSink(absolute(conf.folder, settings.files.path), settings.files.format)
    if settings.webhook:
        return WebhookSink(conf.folder, settings.webhook)
    return PythonSink(conf.folder, str(settings.python))
