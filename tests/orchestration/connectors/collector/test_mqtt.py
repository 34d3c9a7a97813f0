"""MQTT: what a broker gives the collector comes to the spool, whoever is killed in between, and is acknowledged only then."""

import asyncio
import re
import resource
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import MqttSettings
from orchestration.connectors.collector import mqtt
from orchestration.connectors.collector.kind import OutageReport, Pushed
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.supervisor.status import source_status
from tests.collectors import collecting, spooled, tls_files, write_conf
from tests.conftest import PATH
from tests.mosquitto import SAVING, Mosquitto, mosquitto
from tests.orchestration.connectors.collector.test_loss import brought
from tests.taking import opened, take
from tests.waiting import until

pytestmark = pytest.mark.mosquitto
BOTH = pytest.mark.parametrize("version", ["v5", "v3.1.1"])
UP, DOWN = "messages come from mqtt", "is down since"
SECRET = "canary-4711"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "broker") as running:
        yield running


def source(broker: Mosquitto, more: str = "", topics: str = "plant/+/+") -> str:
    return f"mqtt: {{broker: '{broker.address}', topics: ['{topics}']{more and ', ' + more}}}"


def numbered(count: int, first: int = 0) -> list[tuple[str, bytes]]:
    return [(f"plant/oven-{n % 7}/temperature", b'{"n": %d}' % n) for n in range(first, first + count)]


def payloads(folder: Path, name: str = "hall") -> Counter[bytes]:
    return Counter(payload for _, payload in spooled(folder, name))


def held(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "lake/spool/hall").glob("*.spool"))


def all_of(messages: list[tuple[str, bytes]]) -> set[bytes]:
    return {payload for _, payload in messages}


@BOTH
def test_messages_come_once_with_their_topic_also_those_that_came_while_nobody_collected(
    version: str, broker: Mosquitto, tmp_path: Path
) -> None:
    conf = write_conf(tmp_path, hall=source(broker, f"version: {version}"))
    sent = numbered(2500)
    with collecting(conf) as collector:
        collector.says(UP)
        broker.publish(sent[:1000])
        until(lambda: len(payloads(tmp_path)) == 1000)
    broker.publish([*sent[1000:], ("yard/gate/open", b"{}")])
    with collecting(conf) as collector:
        collector.says(UP)
        until(lambda: len(payloads(tmp_path)) >= 2500)
    found = spooled(tmp_path, "hall")
    assert [(position.rsplit("/", 2)[0], payload) for position, payload in found] == sent
    assert len({position for position, _ in found}) == 2500


def states(folder: Path) -> dict[str, str]:
    """Of the sources, as `tidemark status` has them."""
    return {row["source"]: row["state"] for row in source_status(load(folder / "conf"), datetime.now(UTC))}


def test_a_broker_that_is_killed_is_told_once_and_nothing_is_lost_while_other_sources_go_on(tmp_path: Path) -> None:
    sent = numbered(100)
    with (
        mosquitto(tmp_path / "broker", *SAVING) as broker,
        collecting(write_conf(tmp_path, hall=source(broker), web="http: {port: 0}")) as collector,
    ):
        collector.says(UP)
        broker.publish(sent[:50])
        broker.kill()
        assert "the connection ended" in collector.says(DOWN)
        assert "Connection refused" in collector.says(DOWN)
        assert collector.ask(b"{}", source="web")[0] == 202
        assert states(tmp_path) == {"hall": "down", "web": "new"}
        broker.start()
        collector.says(UP)
        assert states(tmp_path) == {"hall": "new", "web": "new"}
        broker.publish(sent[50:])
        until(lambda: payloads(tmp_path).keys() >= all_of(sent))
    assert sum(DOWN in line for line in collector.log) == 2  # how it began, and what it is since


def test_a_broker_that_is_down_at_the_start_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    broker = Mosquitto(tmp_path / "broker")
    with collecting(write_conf(tmp_path, hall=source(broker))) as collector:
        assert "Connection refused" in collector.says(DOWN)
        broker.start()
        collector.says(UP)
    broker.kill()


@BOTH
def test_a_collector_killed_between_the_disk_and_the_acknowledgement_loses_nothing(version: str, broker: Mosquitto, tmp_path: Path) -> None:
    conf, sent = write_conf(tmp_path, hall=source(broker, f"version: {version}")), numbered(300)
    with collecting(conf, TIDEMARK_CRASH_AT="events-spooled:2") as collector:
        collector.says(UP)
        broker.publish(sent)
        assert collector.wait() == -signal.SIGKILL
    before = sum(payloads(tmp_path).values())
    assert before > 0
    with collecting(conf) as collector:
        collector.says(UP)
        until(lambda: payloads(tmp_path).keys() == all_of(sent))
    assert sum(payloads(tmp_path).values()) > len(sent)  # what was on the disk when it died came again


def test_two_collectors_of_a_group_share_its_messages(broker: Mosquitto, tmp_path: Path) -> None:
    sent = numbered(400)
    confs = [write_conf(tmp_path / one, hall=source(broker, f"shared_group: halls, client_id: {one}")) for one in ("a", "b")]
    with collecting(confs[0]) as first, collecting(confs[1]) as second:
        first.says(UP)
        second.says(UP)
        broker.publish(sent)
        until(lambda: sum((payloads(tmp_path / "a") + payloads(tmp_path / "b")).values()) >= len(sent))
    found = [payloads(tmp_path / one) for one in ("a", "b")]
    assert found[0] + found[1] == Counter(all_of(sent))
    assert all(found)


def test_a_wrong_password_is_told_without_it_and_a_right_one_collects(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    subprocess.run(
        [str(shutil.which("mosquitto_passwd", path=PATH)), "-b", "-c", str(file), "plant", SECRET], check=True, capture_output=True
    )
    with mosquitto(tmp_path / "broker", f"password_file {file}") as broker:
        conf = write_conf(tmp_path, hall=source(broker, "username: plant, password: '${env:OF_A_TEST}'"), web="http: {port: 0}")
        with collecting(conf, OF_A_TEST=SECRET + "x") as collector:
            assert "the broker refuses the connection (Not authorized)" in collector.says(DOWN)
            assert collector.ask(b"{}", source="web")[0] == 202
        assert not any(SECRET in line for line in collector.log)
        with collecting(conf, OF_A_TEST=SECRET) as collector:
            collector.says(UP)


def test_tls_needs_the_authority_that_conf_names_and_the_broker_the_client_s_certificate(tmp_path: Path) -> None:
    tls_files(tmp_path)
    server, key = tmp_path / "server.crt", tmp_path / "server.key"
    secured = (f"cafile {server}", f"certfile {server}", f"keyfile {key}", "require_certificate true")
    trusted = f"ca: {server}, certificate: {server}, key: {key}"
    with mosquitto(tmp_path / "broker", *secured) as broker:
        with collecting(write_conf(tmp_path, hall=source(broker, "tls: {}"))) as collector:
            assert "CERTIFICATE_VERIFY_FAILED" in collector.says(DOWN)
        with collecting(write_conf(tmp_path, hall=source(broker, f"tls: {{ca: {server}}}"))) as collector:
            collector.says(DOWN)
        with collecting(write_conf(tmp_path, hall=source(broker, f"tls: {{{trusted}}}"))) as collector:
            assert "mqtts://" in collector.says(UP)


def test_a_full_spool_leaves_messages_at_the_broker_until_a_run_has_read_it(broker: Mosquitto, tmp_path: Path) -> None:
    lake = opened(load(write_conf(tmp_path, hall=source(broker, "max_spool_bytes: 1048576, receive_maximum: 10"))))
    sent = [(topic, payload + b" " * 10_000) for topic, payload in numbered(300)]
    with collecting(tmp_path / "conf") as collector:
        collector.says(UP)
        broker.publish(sent)
        collector.says("its spool is full")
        until(lambda: held(tmp_path) > 1_000_000)
        assert held(tmp_path) < 1_500_000

        def is_all_there() -> bool:
            take(lake)
            return brought(lake).keys() == all_of(sent)

        until(is_all_there)
    assert sum(brought(lake).values()) == len(sent)


def test_a_disk_that_takes_no_more_acknowledges_nothing_and_messages_come_again(broker: Mosquitto, tmp_path: Path) -> None:
    """RLIMIT_FSIZE of the collector stands for the disk."""
    sent = [(topic, payload + b" " * 1_000) for topic, payload in numbered(100)]
    with collecting(write_conf(tmp_path, hall=source(broker))) as collector:
        collector.says(UP)
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        for message in sent:
            broker.publish([message])
        collector.says("the disk takes no more")
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: payloads(tmp_path).keys() == all_of(sent))


@pytest.mark.parametrize(
    "rubbish",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x20\x03\x00\x00\x00\x30\x03\x00\xff\x00",
        b"\x20\xff\xff\xff\xff\x01",
        b"\x00" * 99,
        b"\x20\x02\x00",
    ],
)
def test_what_is_no_mqtt_is_told_and_tried_again(rubbish: bytes, tmp_path: Path) -> None:
    async def serve() -> list[str]:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(rubbish)
            writer.close()

        said: list[str] = []
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            conf = load(write_conf(tmp_path, hall=f"mqtt: {{broker: '127.0.0.1:{port}', topics: [a]}}"))
            spool = SpoolWriter(tmp_path / "lake" / "spool" / "hall", 1 << 30)
            endpoint = conf.sources["hall"].transport
            assert isinstance(endpoint, MqttSettings)
            outage = OutageReport(conf.lake, "hall", said.append)
            served = await mqtt.serve(Pushed(conf.sources["hall"], endpoint, spool, outage, said.append))
            while len(said) < 1:
                await asyncio.sleep(0.01)
            assert not served.task.done()
            await served.stop()
            spool.close()
        return said

    line, *others = asyncio.run(serve())
    assert others == []
    assert re.match(r"source hall is down since \S+Z: (it sent what is no MQTT|the connection ended) \(.+\); it is tried again", line)


def test_a_topic_that_leaves_conf_is_unsubscribed_and_one_that_comes_is_subscribed(broker: Mosquitto, tmp_path: Path) -> None:
    for topics, found in (("plant/#", {b"1"}), ("yard/#", {b"1", b"2"})):
        with collecting(write_conf(tmp_path, hall=source(broker, topics=topics))) as collector:
            collector.says(UP)
            broker.publish([("plant/a/b", b"1" if topics == "plant/#" else b"3"), ("yard/a/b", b"2")])
            until(lambda expected=found: payloads(tmp_path).keys() == expected)  # type: ignore[misc]


def test_a_broker_that_has_forgotten_the_session_is_told_and_subscribed_to_again(broker: Mosquitto, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, hall=source(broker))
    with collecting(conf) as collector:
        collector.says(UP)
    broker.kill()
    broker.start()
    with collecting(conf) as collector:
        assert "what it took for it meanwhile is lost" in collector.says("has forgotten the session of tidemark-test-hall")
        collector.says(UP)
        broker.publish(numbered(1))
        until(lambda: len(payloads(tmp_path)) == 1)
