"""Every sink of a lake, as conf declares it: the one list that a new kind of sink is added to."""

from collections.abc import Mapping

from orchestration.conf.model import Conf
from orchestration.conf.place import absolute
from orchestration.connectors.sinks.sink import Sink


def sinks(conf: Conf) -> Mapping[str, Sink]:
    """Make the sinks of conf, by name. Nothing is connected, and no secret read, before the first call."""
    return {name: sink_of(conf, name) for name in conf.sinks}


def sink_of(conf: Conf, name: str) -> Sink:
    """One of them. Its module is imported here: together they take half a second, and most lakes have none."""
    settings = conf.sinks[name]
    if settings.postgres:
        from orchestration.connectors.sinks.postgres import PostgresSink

        return PostgresSink(f"{conf.pipeline}/{name}", settings.postgres)
    if settings.kafka:
        from orchestration.connectors.sinks.kafka import KafkaSink

        return KafkaSink(f"{conf.pipeline}/{name}", settings.kafka)
    if settings.files:
        from orchestration.connectors.sinks.files import FileSink

        return FileSink(absolute(conf.folder, settings.files.path), settings.files)
    if settings.webhook:
        from orchestration.connectors.sinks.webhook import WebhookSink

        return WebhookSink(settings.webhook)
    from orchestration.connectors.sinks.python import PythonSink

    return PythonSink(conf.folder, str(settings.python))
