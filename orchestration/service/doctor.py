"""`tidemark doctor`: what is wrong with this machine, the conf, the lake and what they reach, and the command that fixes it."""

import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from orchestration.conf.channel_settings import AddressSettings, BrokerSettings
from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import heap_bytes
from orchestration.conf.secrets import resolved
from orchestration.conf.sink_settings import PostgresSettings
from orchestration.conf.transport_settings import HttpSettings, KafkaSettings, KinesisSettings, MqttSettings, S3Settings, TcpSettings
from orchestration.connectors.collector.sockets import bind
from orchestration.engine.java import heap_of
from orchestration.errors import ConfError, TidemarkError
from orchestration.service.parts import COLLECTOR, PAGE, STREAMS
from orchestration.storage.confs import conf_or_last
from orchestration.storage.lease import holder_of, is_held
from orchestration.supervisor.service_state import parts_of
from orchestration.utc import to_iso

PATIENCE_SECONDS = 3.0
BESIDE_THE_HEAP = 1024**3
"""Memory for Python and for what a JVM takes beside its heap."""
Address = tuple[str, int]
"""Host and port."""
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
        conf, mistakes = conf_or_last(folder)
    except ConfError as error:
        yield Finding("conf", "bad", str(error), "tidemark check")
        return
    warnings = "\n".join(conf.warnings)
    verdict = "bad" if mistakes else "warning" if warnings else "good"
    yield Finding("conf", verdict, mistakes or warnings or "no mistakes", f"{conf.command} check")
    parts = parts_of(conf.lake)
    yield _of_memory(conf, parts)
    yield from _of_lake(conf)
    listed = [*_of_health(conf)]
    yield from listed
    yield from _of_ports(conf, parts)
    yield from _of_servers(conf, {finding.what for finding in listed})


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


def _of_servers(conf: Conf, listed: Collection[str]) -> Iterator[Finding]:
    """Ask whether they listen; not those that are in the list of what is wrong: a run has asked more of them than that."""
    targets: list[tuple[str, object, str]] = [(f"source {name}", source.transport, "sources.yml") for name, source in conf.sources.items()]
    targets += [(f"sink {name}", getattr(sink, sink.chosen[0]), "pipeline.yml") for name, sink in conf.sinks.items()]
    targets += [(f"channel {name}", getattr(channel, channel.chosen[0]), "alerts.yml") for name, channel in conf.channels.items()]
    for what, settings, file in targets:
        if what in listed:
            continue
        try:
            address = _address_of(settings, file)
        except TidemarkError as error:
            yield Finding(what, "bad", str(error))
            continue
        if address is not None:
            yield _of_server(what, *address)


def _of_server(what: str, host: str, port: int) -> Finding:
    try:
        socket.create_connection((host, port), PATIENCE_SECONDS).close()
    except OSError as error:
        return Finding(what, "bad", f"{host}:{port} cannot be reached: {error.strerror or error}", "tidemark status")
    return Finding(what, "good", f"{host}:{port} answers")


def _address_of(settings: object, file: str) -> Address | None:
    """Return where a server listens; None for folders, for what is pushed to us, and where a library knows the address."""
    match settings:
        case MqttSettings():
            return settings.host, settings.port
        case PostgresSettings():
            from psycopg.conninfo import conninfo_to_dict

            parameters = conninfo_to_dict(resolved(settings.dsn, file))
            host = str(parameters.get("host") or "")
            return (host, int(parameters.get("port") or 5432)) if host and not host.startswith("/") else None
        case KafkaSettings() | BrokerSettings():
            url = f"//{settings.servers.split(',', maxsplit=1)[0].strip()}"
        case AddressSettings():
            url = resolved(settings.url, file)
        case S3Settings(endpoint=str(endpoint)) | KinesisSettings(endpoint=str(endpoint)):
            url = endpoint
        case _:
            return None
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
