"""A Kafka broker for tests: the real one, a single node with a port and a folder of its own, which can be killed and started again."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from orchestration.connectors import kafka_client
from orchestration.connectors.sinks import kafka_producer
from orchestration.engine.jars import fetched
from orchestration.engine.java import java_command
from orchestration.errors import TidemarkError
from tests.certificates import self_signed
from tests.server_process import ServerProcess, free_ports
from tests.waiting import PATIENCE_SECONDS, until

LOCK = Path(__file__).parent / "kafka.lock"
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CLUSTER = "4L6g3nShT-eMCtK--X86sw"
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}{more}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,BOTH:SASL_SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_plant="{password}";
listener.name.both.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_plant="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.dedupe.buffer.size=2097152
log.initial.task.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.message.timestamp.after.max.ms=9223372036854775807
"""
OF_TLS = """
ssl.keystore.type=PEM
ssl.keystore.location={folder}/keystore.pem
"""
PASSWORD = "canary-4711"


class Broker(ServerProcess):
    """In a folder; `servers` is its address, whether it runs or not. At `secure_servers` the user `plant` needs PASSWORD.

    `tls_servers` and `secure_tls_servers` are the same with TLS, where there is openssl; `certificate` signs itself.
    """

    def __init__(self, folder: Path) -> None:
        names = ("port", "secure", "controller", "tls", "both")
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        self.servers, self.secure_servers, self._folder = addresses["port"], addresses["secure"], folder
        self.tls_servers, self.secure_tls_servers = addresses["tls"], addresses["both"]
        settings, more = SETTINGS, ""
        if shutil.which("openssl"):
            self.certificate, key = self_signed(folder)
            (folder / "keystore.pem").write_text(key.read_text() + self.certificate.read_text())
            settings, more = SETTINGS + OF_TLS, f",TLS://{self.tls_servers},BOTH://{self.secure_tls_servers}"
        (folder / "server.properties").write_text(settings.format(**ports, more=more, folder=folder, password=PASSWORD))
        format_it = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(folder / "server.properties"))
        subprocess.run(_java(*format_it), check=True, capture_output=True)

    def start(self) -> None:
        self.launch(_java("kafka.Kafka", str(self._folder / "server.properties")), self._folder / "log")
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0, "reconnect.backoff.max.ms": 200})
        self.admin.list_topics(timeout=PATIENCE_SECONDS)

    def create(self, topic: str, partitions: int = 1) -> None:
        """An empty topic, whose partitions answer. A broker that a test before left dead is started again."""
        if self.is_killed:
            self.start()

        def is_made() -> bool:
            with suppress(KafkaException):  # a broker that was slow to say that it lives takes no topics for a moment
                self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
            return topic in self.admin.list_topics(timeout=PATIENCE_SECONDS).topics

        until(is_made)
        for partition in range(partitions):
            self._end(topic, IsolationLevel.READ_COMMITTED, partition)

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()
        until(lambda: topic not in self.admin.list_topics(timeout=PATIENCE_SECONDS).topics)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """What retention does: all messages of a partition before an offset are gone."""
        for done in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            done.result()

    def send(self, topic: str, values: Sequence[bytes | None], partition: int = 0, **more: Any) -> None:
        """Messages that the broker has when this returns."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0, "linger.ms": 5})
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=_refuse, **more)
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def transact(self, topic: str, values: Sequence[bytes], *, commit: bool) -> None:
        """Messages of one transaction; behind them stands its marker, in an offset of its own."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0, "transactional.id": topic})
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(PATIENCE_SECONDS)
        if commit:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)
        self.settle(topic)

    def settle(self, topic: str, partitions: int = 1) -> None:
        """Until no transaction is open: the broker writes markers after it has answered."""
        for n in range(partitions):
            until(lambda n=n: self._end(topic, IsolationLevel.READ_COMMITTED, n) == self._end(topic, IsolationLevel.READ_UNCOMMITTED, n))  # type: ignore[misc]

    def _end(self, topic: str, level: IsolationLevel, partition: int = 0) -> int:
        """A partition has no leader for a while."""
        found: list[int] = []

        def is_answered() -> bool:
            with suppress(KafkaException):
                asked = {TopicPartition(topic, partition): OffsetSpec.latest()}
                (answer,) = self.admin.list_offsets(asked, isolation_level=level).values()
                found.append(int(answer.result().offset))
            return bool(found)

        until(is_answered, lambda: f"{topic}/{partition} has no leader")
        return found[0]


@contextmanager
def impatient(seconds: float = 1.0) -> Iterator[None]:
    """As clients of a broker are that does not answer: while it runs, `patient` makes them wait as long as a slow machine takes."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (kafka_client, kafka_producer):
            patched.setattr(module, "PATIENCE_SECONDS", seconds)
        yield


def refusal(work: Callable[[], object], said: str) -> pytest.ExceptionInfo[TidemarkError]:
    """The error of work that waits for a broker which refuses it: with ever more patience, until it has heard why."""
    for seconds in (1.0, 10.0, 100.0):
        with impatient(seconds), pytest.raises(TidemarkError) as error:
            work()
        if said in str(error.value):
            break
    return error


def _java(*arguments: str) -> list[str]:
    path = ":".join(map(str, fetched(LOCK)))
    return [java_command(), *JVM, "-cp", path, *arguments]


def _refuse(error: Any, _: Any) -> None:
    if error is not None:
        raise KafkaException(error)
