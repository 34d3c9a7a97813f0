"""Check how events of sources.yml come: settings that belong to their way, and no two sources in each other's way."""

from collections.abc import Collection, Iterator, Mapping

from expectations.wording import quoted
from orchestration.conf.kafka_options import OF_SOURCE, check_options
from orchestration.conf.names import Declared
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from orchestration.conf.transport_settings import MqttSettings

WITH_TOPICS = ("kafka", "mqtt")
ONLY_OF_FILES = ("files", "settle_seconds", "header")
SHARED, MAX_PORT = "$share/", 65_535
Base = tuple[str, str]


def check_transports(sources: Mapping[str, SourceSettings], declared: Declared) -> Iterator[Finding]:
    """Check each source; and that no two listen on one port, or are one client of a broker."""
    listening: dict[tuple[str, int], str] = {}
    clients: dict[tuple[str, str], str] = {}
    for name, source in sources.items():
        base = ("sources", name)
        yield from _check_origins(base, source, source.chosen[0])
        if not source.path:
            yield from _check_not_landed(base, source, declared.written(name), source.chosen[0])
        if source.kafka:
            yield from check_options((*base, "kafka", "options"), source.kafka.options, OF_SOURCE)
        yield from _check_clients(base, source, clients)
        for key, endpoint in (("http", source.http), ("tcp", source.tcp)):
            if endpoint and endpoint.port:
                if other := listening.get((endpoint.host, endpoint.port)):
                    yield Finding.of((*base, key, "port"), f"is {endpoint.port}, on which {other} listens too; choose another")
                listening[endpoint.host, endpoint.port] = name


def _check_clients(base: Base, source: SourceSettings, clients: dict[tuple[str, str], str]) -> Iterator[Finding]:
    """Check a source that connects to a server. `clients`: who is which client of which broker."""
    if source.mqtt:
        yield from _check_mqtt((*base, "mqtt"), source.mqtt)
        if client := source.mqtt.client_id:
            if other := clients.get((source.mqtt.broker, client)):
                problem = f"is {quoted(client)}, which {other} has at this broker too; choose another"
                yield Finding.of((*base, "mqtt", "client_id"), problem)
            clients[source.mqtt.broker, client] = base[1]
    for key, of_aws in (("s3", source.s3), ("kinesis", source.kinesis)):
        if of_aws and bool(of_aws.access_key) != bool(of_aws.secret_key):
            yield Finding.of((*base, key), "sets one of access_key and secret_key; set both, or none")


def _check_not_landed(base: Base, source: SourceSettings, written: Collection[str], way: str) -> Iterator[Finding]:
    for key in ONLY_OF_FILES:
        if key in written and (key != "header" or (source.header and way != "s3")):
            remedy = f"name the columns in {base[1]}.columns" if key == "header" else "remove it"
            yield Finding.of((*base, key), f"is for files, but events come by {way}; {remedy}")
    if source.format == "parquet" and way != "s3":
        yield Finding.of((*base, "format"), f"is parquet, which is for files and objects, but events come by {way}; choose another")
    if way == "delta" and source.format == "csv":
        yield Finding.of((*base, "format"), "is csv, but rows of a table are read as JSON; write json")


def _check_origins(base: Base, source: SourceSettings, way: str) -> Iterator[Finding]:
    most = 1 if way == "kafka" else _levels_of(source.mqtt) if source.mqtt else None
    for key, origin in source.origins:
        if origin.file_name and way not in ("path", "s3"):
            yield Finding.of((*base, key, "file_name"), f"is for files, but events come by {way}; take a field or a constant")
        if origin.topic and way not in WITH_TOPICS:
            yield Finding.of((*base, key, "topic"), f"is for MQTT and Kafka, but events come by {way}; take a field or a constant")
        elif origin.topic and most is not None and origin.topic > most:
            whose = "a topic of Kafka has one level" if way == "kafka" else f"no topic of {base[1]}.mqtt.topics has more than {most}"
            yield Finding.of((*base, key, "topic"), f"is {origin.topic}, but {whose}; write {' to '.join(dict.fromkeys(('1', str(most))))}")


def _check_mqtt(path: tuple[str, ...], mqtt: MqttSettings) -> Iterator[Finding]:
    """`path` leads to it."""
    for n, topic in enumerate(mqtt.topics):
        if problem := _problem_of_filter(topic):
            yield Finding.of((*path, "topics"), f"names {quoted(topic)}; {problem}", n)
    if mqtt.port > MAX_PORT:
        yield Finding.of((*path, "broker"), f"is {quoted(mqtt.broker)}; a port is at most {MAX_PORT}")
    if mqtt.password and not mqtt.username:
        yield Finding.of((*path, "password"), "is set without a username; name the user")
    if mqtt.shared_group and set(mqtt.shared_group) & set("/+#"):
        yield Finding.of((*path, "shared_group"), f"is {quoted(mqtt.shared_group)}; write a name without /, + and #")
    if mqtt.shared_group and not mqtt.client_id:
        yield Finding.of((*path, "shared_group"), "is set without a client_id; give each collector of the group one of its own")
    if mqtt.tls and bool(mqtt.tls.certificate) != bool(mqtt.tls.key):
        yield Finding.of((*path, "tls"), "has one of certificate and key; set both")


def _levels_of(mqtt: MqttSettings) -> int | None:
    """How many levels the longest topic has; None where no filter bounds it."""
    if any(topic.endswith("#") for topic in mqtt.topics):
        return None
    return max(topic.count("/") + 1 for topic in mqtt.topics)


def _problem_of_filter(topic: str) -> str | None:
    *levels, last = topic.split("/")
    if topic.startswith(SHARED):
        return "write the filter alone, and the name of the group as shared_group"
    if (last != "#" and "#" in last) or any("#" in level for level in levels):
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in (*levels, last)):
        return "+ stands alone, as a whole level"
    return None
