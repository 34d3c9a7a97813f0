"""`tidemark doctor`: what is wrong with this machine, the conf, the lake and what they reach, and the command that fixes it."""

import socket
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from orchestration.conf.channel_settings import AddressSettings, BrokerSettings
from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import heap_bytes
from orchestration.conf.sink_settings import PostgresSettings
from orchestration.conf.transport_settings import HttpSettings, KafkaSettings, KinesisSettings, MqttSettings, S3Settings, TcpSettings
from orchestration.connectors.collector.sockets import bind
from orchestration.engine.java import heap_of
from orchestration.errors import TidemarkError
from orchestration.secrets import resolved
from orchestration.service.finding import Finding, unless_it_breaks
from orchestration.service.lake_findings import of_data_files, of_disks, of_lake, of_logs, of_models, of_seals, of_state_files
from orchestration.service.parts import COLLECTOR, PAGE, STREAMS
from orchestration.storage.confs import conf_or_last
from orchestration.stores.object_store import ObjectStore
from orchestration.supervisor.service_state import parts_of
from orchestration.utc import to_iso

PATIENCE_SECONDS = 3.0
BESIDE_THE_HEAP = 1024**3
"""Memory for Python and for what a JVM takes beside its heap."""
Address = tuple[str, int]
"""Host and port."""


def examine(folder: Path) -> Iterator[Finding]:
    """One after the other, as soon as it is known. Nothing is written, no Spark is started, and each address is asked for 3 s at most."""
    yield from unless_it_breaks("java", _of_java)
    try:
        conf, mistakes = conf_or_last(folder)
    except Exception as error:
        yield Finding("conf", "bad", str(error), "tidemark check")
        return
    warnings = "\n".join(conf.warnings)
    verdict = "bad" if mistakes else "warning" if warnings else "good"
    yield Finding("conf", verdict, mistakes or warnings or "no mistakes", f"{conf.command} check")
    for what, look in LOOKS.items():
        yield from unless_it_breaks(what, partial(look, conf))
    listed = [*unless_it_breaks("what is wrong", partial(_of_health, conf))]
    yield from listed
    yield from unless_it_breaks("ports", partial(_of_ports, conf))
    yield from unless_it_breaks("servers", partial(_of_servers, conf, {finding.what for finding in listed}))


def _of_java() -> Iterator[Finding]:
    from orchestration.engine.jars import missing_jars
    from orchestration.engine.java import java_command, require_java

    try:
        require_java()
        missing = missing_jars()
    except TidemarkError as error:
        yield Finding("java", "bad", str(error))
        return
    if missing:
        yield Finding("java", "warning", f"{len(missing)} jars are not there yet; the first run fetches them", "make install")
    else:
        yield Finding("java", "good", java_command())


def _of_store(conf: Conf) -> Iterator[Finding]:
    """Say whether the first run has jars to fetch for an object store."""
    from orchestration.engine.jars import OF_S3, missing_jars

    if not conf.lake.store.is_disk and (missing := missing_jars(OF_S3)):
        yield Finding("jars of the store", "warning", f"{len(missing)} are not there yet; the first run fetches them")


def _of_memory(conf: Conf) -> Iterator[Finding]:
    heap = heap_of(conf.engine.driver_memory)
    free, needed = psutil.virtual_memory().available, heap_bytes(heap) + BESIDE_THE_HEAP
    runs = any(part["part"] == STREAMS and part["state"] == "running" for part in parts_of(conf.lake))
    text = f"{free / 1024**3:.1f} GiB are free; streams take up to {needed / 1024**3:.1f} GiB, with a heap of {heap}"
    yield Finding("memory", "good" if runs or free >= needed else "warning", text, "" if free >= needed else "set engine.driver_memory")


def _of_health(conf: Conf) -> Iterator[Finding]:
    """Yield the list of what is wrong, which the page and `status` show too."""
    from orchestration.supervisor.health import Severity, known_until, problems

    verdicts = {Severity.CRITICAL: "bad", Severity.WARNING: "warning", Severity.NOTICE: "good"}
    wrong = problems(conf, datetime.now(UTC))
    for problem in wrong:
        yield Finding(problem.subject, verdicts[problem.severity], problem.sentence, problem.command)
    if not wrong and (until := known_until(conf)):
        yield Finding("what comes", "good", f"nothing is wrong: known up to {to_iso(until)}")


def _of_ports(conf: Conf) -> Iterator[Finding]:
    """Free, or taken by the part of `up` that listens there."""
    running = {part["part"] for part in parts_of(conf.lake)}
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
    targets += [("store of the lake", conf.lake.store, "pipeline.yml")]
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
        case S3Settings(endpoint=str(endpoint)) | KinesisSettings(endpoint=str(endpoint)) | ObjectStore(endpoint=str(endpoint)):
            url = endpoint
        case _:
            return None
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


LOOKS: dict[str, Callable[[Conf], Iterator[Finding]]] = {
    "memory": _of_memory,
    "jars of the store": _of_store,
    "disks": of_disks,
    "lake": of_lake,
    "tables and checkpoints": of_logs,
    "seals": of_seals,
    "state files": of_state_files,
    "data files": of_data_files,
    "models": of_models,
}
