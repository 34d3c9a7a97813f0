"""`tidemark doctor`: what is wrong with this machine, the conf, the lake and what they reach, and the command that fixes it."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import heap_bytes
from orchestration.conf.secrets import resolved
from orchestration.conf.sink_settings import SinkSettings
from orchestration.conf.transport_settings import (
    DeltaSettings,
    HttpSettings,
    KafkaSettings,
    KinesisSettings,
    LandingFolder,
    MqttSettings,
    S3Settings,
    TcpSettings,
    Transport,
)
from orchestration.connectors.collector.sockets import bind
from orchestration.engine.java import heap_of
from orchestration.errors import ConfError, TidemarkError
from orchestration.service.parts import COLLECTOR, PAGE, STREAMS
from orchestration.storage.lease import holder_of, is_held
from orchestration.supervisor.service_state import parts_of
from orchestration.utc import to_iso

PATIENCE_SECONDS = 3.0
BESIDE_THE_HEAP = 1024**3
"""Memory for Python and for what a JVM takes beside its heap."""
Address = tuple[str, int]
Parts = list[dict[str, Any]]
"""Parts of the `up` that runs, see service_state.parts_of."""


@dataclass(frozen=True)
class Finding:
    """`verdict`: good, warning or bad. `command`: fixes it, or shows more; empty where nothing has to be done."""

    what: str
    verdict: str
    finding: str
    command: str = ""


def examine(folder: Path) -> Iterator[Finding]:
    """One after the other, as soon as it is known. Nothing is written, no Spark is started, and each address is asked for 3 s at most."""
    yield _of_java()
    try:
        conf = load(folder)
    except ConfError as error:
        yield Finding("conf", "bad", str(error), "tidemark check")
        return
    yield Finding("conf", "warning" if conf.warnings else "good", "\n".join(conf.warnings) or "no mistakes", f"{conf.command} check")
    parts = parts_of(conf.lake)
    yield _of_memory(conf, parts)
    yield from _of_lake(conf)
    listed = [*_of_health(conf)]
    yield from listed
    yield from _of_ports(conf, parts)
    reached = [_reached(f"source {name}", partial(_of_transport, source.transport)) for name, source in conf.sources.items()]
    reached += [_reached(f"sink {name}", partial(_of_sink, sink)) for name, sink in conf.sinks.items()]
    reached += [_reached(f"channel {name}", partial(_of_channel, channel)) for name, channel in conf.channels.items()]
    yield from (finding for finding in reached if finding and finding.what not in {problem.what for problem in listed})


def _of_java() -> Finding:
    from orchestration.engine.jars import missing_jars
    from orchestration.engine.java import java_command, require_java

    try:
        require_java()
        missing = missing_jars()
    except TidemarkError as error:
        return Finding("java", "bad", str(error))
    if missing:
        return Finding("java", "warning", f"{len(missing)} jars are not there yet; the first run fetches them", "make install")
    return Finding("java", "good", java_command())


def _of_memory(conf: Conf, parts: Parts) -> Finding:
    heap = heap_of(conf.engine.driver_memory)
    free, needed = psutil.virtual_memory().available, heap_bytes(heap) + BESIDE_THE_HEAP
    runs = any(part["part"] == STREAMS and part["state"] == "running" for part in parts)
    text = f"{free / 1024**3:.1f} GiB are free; streams take up to {needed / 1024**3:.1f} GiB, with a heap of {heap}"
    return Finding("memory", "good" if runs or free >= needed else "warning", text, "" if free >= needed else "set engine.driver_memory")


def _of_lake(conf: Conf) -> Iterator[Finding]:
    from orchestration.storage.sealing import refuse_damage, refuse_older_tables
    from orchestration.storage.tables import LakeStore
    from orchestration.supervisor.status import flows

    if not conf.lake.exists():
        yield Finding("lake", "good", f"{conf.lake} is made by the first run")
        return
    if is_held(conf.lake):
        yield Finding("lease", "good", f"written by {holder_of(conf.lake) or 'another process'}")
    store = LakeStore(conf)
    try:
        refuse_damage(store, [name for name, *_ in flows(conf, store.generation)])
        refuse_older_tables(store)
    except TidemarkError as error:
        yield Finding("tables and checkpoints", "bad", str(error), f"{conf.command} replay")
    else:
        yield Finding("tables and checkpoints", "good", "logs and checkpoints are as they were written")


def _of_health(conf: Conf) -> Iterator[Finding]:
    """Yield the list of what is wrong, which the page and `status` show too."""
    from orchestration.supervisor.health import Severity, known_until, problems

    verdicts = {Severity.CRITICAL: "bad", Severity.WARNING: "warning", Severity.NOTICE: "good"}
    wrong = problems(conf, datetime.now(UTC))
    for problem in wrong:
        yield Finding(problem.subject, verdicts[problem.severity], problem.sentence, problem.command)
    if not wrong and (until := known_until(conf)):
        yield Finding("what comes", "good", f"nothing is wrong: known up to {to_iso(until)}")


def _of_ports(conf: Conf, parts: Parts) -> Iterator[Finding]:
    """Free, or taken by the part of `up` that listens there."""
    running = {part["part"] for part in parts}
    wanted = [("page", PAGE, conf.page.host, conf.page.port)]
    for name, source in conf.sources.items():
        if isinstance(source.transport, HttpSettings | TcpSettings):
            wanted.append((f"source {name}", COLLECTOR, source.transport.host, source.transport.port))
    for name, part, host, port in wanted:
        try:
            bind(host, port).close()
            yield Finding(f"port of {name}", "good", f"{host}:{port} is free")
        except OSError as error:
            is_own = part in running
            text = f"{host}:{port} is that of `tidemark up`" if is_own else f"{host}:{port} cannot be listened on: {error.strerror}"
            yield Finding(f"port of {name}", "good" if is_own else "bad", text, "" if is_own else "set another port in the conf")


def _reached(what: str, where: Callable[[], Address | Path | None]) -> Finding | None:
    try:
        address = where()
        if isinstance(address, Path):
            if not address.is_dir():
                return None  # health tells it of a folder that is gone, and of one that is not there yet
        elif address is not None:
            socket.create_connection(address, PATIENCE_SECONDS).close()
    except TidemarkError as error:
        return Finding(what, "bad", str(error))
    except OSError as error:
        assert not isinstance(address, Path) and address is not None
        return Finding(what, "bad", f"{address[0]}:{address[1]} cannot be reached: {error.strerror or error}", "tidemark status")
    name = address if address is None or isinstance(address, Path) else ":".join(map(str, address))
    return Finding(what, "good", "comes to us" if name is None else f"{name} answers")


def _of_transport(transport: Transport) -> Address | Path | None:
    """Return the address of a source; None if its events are pushed, or a library knows the address."""
    match transport:
        case LandingFolder():
            return transport.path
        case DeltaSettings():
            return transport.table
        case KafkaSettings():
            return _first_of(transport.servers)
        case MqttSettings():
            return transport.host, transport.port
        case S3Settings() | KinesisSettings():
            return _of_url(transport.endpoint) if transport.endpoint else None
    return None


def _of_channel(channel: ChannelSettings) -> Address | None:
    """None for what apprise knows."""
    if channel.kafka:
        return _first_of(channel.kafka.servers)
    settings = channel.webhook or channel.alertmanager
    return _of_url(resolved(settings.url, "alerts.yml")) if settings else None


def _of_sink(sink: SinkSettings) -> Address | Path | None:
    if sink.kafka:
        return _first_of(sink.kafka.servers)
    if sink.webhook:
        return _of_url(resolved(sink.webhook.url, "pipeline.yml"))
    if sink.postgres:
        from psycopg.conninfo import conninfo_to_dict

        parameters = conninfo_to_dict(resolved(sink.postgres.dsn, "pipeline.yml"))
        host = str(parameters.get("host") or "")
        return (host, int(parameters.get("port") or 5432)) if host and not host.startswith("/") else None
    return None


def _first_of(servers: str) -> Address:
    host, _, port = servers.split(",", maxsplit=1)[0].strip().rpartition(":")
    return host.strip("[]"), int(port)


def _of_url(url: str) -> Address:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
