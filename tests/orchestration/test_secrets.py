"""A canary secret is given to sources, sinks and the collector, in good moments and bad ones, and is nowhere afterwards."""

import base64
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.engine.progress import Progress
from orchestration.jobs.backfill import kafka_source
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.sinks import SinkSender
from tests import broker, canary
from tests.broker import Broker, impatient
from tests.collectors import PROGRAM, ROOT, collecting, write_conf
from tests.lakes import event
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.connectors.sinks.small_lake import START, SmallLake, reading
from tests.waiting import PATIENCE_SECONDS, until

SECRET = "canary-4711"
"""Every secret of this test has it inside."""
SASL = "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: plant, sasl.password: '${env:OF_KAFKA}'"
SINKS = """
sinks:
  warehouse: {{table: silver.readings, postgres: {{dsn: "${{env:PG_DSN}}", table: r}}}}
  topic: {{table: silver.readings, kafka: {{servers: "{servers}", topic: "{topic}-out", options: {{{sasl}}}}}}}
  avro:
    table: silver.readings
    kafka:
      {{servers: "{servers}", topic: "{topic}-out", format: avro, options: {{{sasl}}}, registry: {{url: "${{env:URL}}",
        password: "${{env:TOKEN}}"}}}}
  alarm: {{table: silver.readings, webhook: {{url: "${{env:URL}}", token: "${{file:./secret}}"}}}}
"""
NOBODY = "127.0.0.1:1"
pytestmark = [pytest.mark.postgres]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer().running() as made:
        yield made


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a server that answers each request with what it was sent; 500 where its path ends in `wrong`."""

    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(500 if self.path.endswith("wrong") else 200)
            self.end_headers()
            self.wfile.write(f"{self.path} {self.headers}".encode() + body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as made:
        threading.Thread(target=made.serve_forever).start()
        yield f"http://127.0.0.1:{made.server_address[1]}/{SECRET}"
        made.shutdown()


@pytest.fixture
def conf(tmp_path: Path, running: Broker, topic: str, server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: PLR0917
    """Of a topic, a collector and all kinds of sinks that have secrets, in a good moment."""
    monkeypatch.chdir(tmp_path)
    running.create(f"{topic}-out")
    secrets = {"OF_KAFKA": broker.PASSWORD, "PG_DSN": server.dsn, "URL": url, "TOKEN": f"{SECRET}-token", "OF_KEY": f"{SECRET}-key"}
    assert [name for name, value in secrets.items() if SECRET not in value] == []
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "secret").write_text(f"{SECRET}-file\n")
    kafka = f"kafka: {{servers: '{running.secure_servers}', subscribe: [{topic}], options: {{{SASL}}}}}"
    conf = write_conf(tmp_path, fleet=kafka, site="http: {port: 0, token: '${file:./secret}'}", gate="tcp: {port: 0, key: '${env:OF_KEY}'}")
    with (conf / "pipeline.yml").open("a") as file:
        file.write(SINKS.format(servers=running.secure_servers, topic=topic, sasl=SASL))
    return conf


def bad_moments(server: PostgresServer, url: str) -> list[dict[str, str]]:
    """Variables that are wrong, each with a secret inside."""
    port = server.dsn.partition("port=")[2].partition(" ")[0]
    return [
        {"OF_KAFKA": f"{SECRET}-wrong", "PG_DSN": server.dsn.replace(SECRET, f"{SECRET}-wrong"), "URL": f"{url}-wrong"},
        {"PG_DSN": f"postgresql://u:{SECRET}@127.0.0.1:{SECRET}/db", "URL": f"http://127.0.0.1:{SECRET}/x"},
        {"PG_DSN": f"password={SECRET} host='", "URL": f"http://u:{SECRET}@127.0.0.1:1/{SECRET}", "OF_KAFKA": f"{SECRET}é"},
        {"PG_DSN": f"host=127.0.0.1 port={port} user={SECRET} password={SECRET}", "URL": f"ftp://{SECRET}/", "OF_KAFKA": ""},
    ]


def readings(count: int) -> list[bytes]:
    return [event("oven", "temperature", n, START + timedelta(minutes=n)).encode() for n in range(count)]


def push(conf: Path) -> str:
    """Events over HTTP and TCP, with the right secret and with wrong ones; what the collector said."""
    with collecting(conf) as collector:
        for token in (f"{SECRET}-file", f"{SECRET}-wrong", f"{SECRET}é"):
            headers = {"Authorization": f"Bearer {token}".encode("latin-1").decode("latin-1")}
            with suppress(HTTPError):
                urlopen(Request(f"http://127.0.0.1:{collector.ports['site']}/events", readings(1)[0], headers)).close()
        for key in (f"{SECRET}-key", f"{SECRET}-wrong"):
            with socket.create_connection(("127.0.0.1", collector.ports["gate"]), PATIENCE_SECONDS) as connection:
                connection.sendall(f"{key}\n".encode() + readings(1)[0] + b"\n")
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1000):
                    pass
    return "".join(collector.log)


@pytest.fixture
def send(running: Broker, topic: str) -> Callable[[list[bytes]], None]:
    """To the topic that is read."""
    return partial(running.send, topic)


def told(conf: Path, *commands: str) -> None:
    """What commands say, on stdout and stderr."""
    for command in commands:
        exit_code(["--debug", "--conf", str(conf), *command.split()])


def test_a_secret_is_found_wherever_it_is_planted(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"Authorization: Basic " + base64.b64encode(f"plant:{SECRET}-x".encode()))
    pq.write_table(pa.table({"a": [f"x{SECRET}"] * 1000}), tmp_path / "a.parquet", compression="zstd")
    pq.write_table(pa.table({"a": [b"\x00\xff" + SECRET.encode()] * 9}), tmp_path / "b.parquet", compression="snappy", use_dictionary=False)
    (tmp_path / "clean").write_text(SECRET[:-1])
    assert canary.files_with(SECRET, tmp_path) == ["a.parquet", "b.parquet", "log"]
    with canary.command_lines() as seen:
        process = subprocess.Popen([sys.executable, "-c", "input()", SECRET], stdin=subprocess.PIPE)
        until(lambda: bool(canary.texts_with(SECRET, [*seen])))
        process.communicate(b"\n")
    assert len(canary.texts_with(SECRET, seen)) == 1


def traced(work: Callable[[], object]) -> str:
    """What `--debug` shows where it fails."""
    try:
        work()
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return ""


def deliver(conf: Path) -> None:
    """To all sinks, as a run does at its end."""
    with Progress([]) as progress:
        SinkSender(load(conf), progress, threading.Event()).run_to_end()


def take(conf: Path) -> None:
    """What the topic has, as a run does."""
    lake = LakeStore(load(conf))
    if ready := poll(lake, kafka_source(lake, "fleet")):
        commit_batch(lake, [ready], nullcontext())


def test_a_secret_is_nowhere_after_good_moments_and_bad_ones(
    conf: Path, send: Callable[[list[bytes]], None], server: PostgresServer, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lake, taken, delivered = SmallLake(conf.parent, {}), list[str](), list[str]()
    with canary.command_lines() as seen:
        pushed = push(conf)
        for number, moment in enumerate([{}, *bad_moments(server, url), {}]):
            with pytest.MonkeyPatch.context() as changed, impatient() if moment else nullcontext():
                for name, value in moment.items():
                    changed.setenv(name, value)
                lake.write("silver.readings", [reading(number, row) for row in range(3)]).pin(number)
                send(readings(1))
                taken.append(traced(partial(take, conf)))
                delivered.append(traced(partial(deliver, conf)))
                told(conf, "check", "status --format json", "sinks --format json", "backfill fleet --from earliest")
    assert [text.count("\n  sink ") > 0 for text in delivered] == [False, *[True] * len(bad_moments(server, url)), False]
    assert ([bool(text) for text in (taken[0], taken[-1])], any(taken)) == ([False, False], True)
    assert server.rows("select count(*) from r") == [(3 * len(taken),)]
    assert canary.texts_with(SECRET, [pushed, *taken, *delivered, *capfd.readouterr(), *seen]) == []
    assert [name for name in canary.files_with(SECRET, conf.parent) if name != "secret"] == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_secret_is_nowhere_after_whole_runs(conf: Path, running: Broker, topic: str, server: PostgresServer, url: str) -> None:
    running.send(topic, readings(40))
    said: list[str | bytes] = [push(conf)]
    with canary.command_lines() as seen:
        for moment in ({}, *bad_moments(server, url)[:2], {}):
            for command in ("run --once", "status --format json", "sinks --format json", "ledger", "verify"):
                arguments = [sys.executable, "-c", PROGRAM, "--debug", "--conf", str(conf), *command.split()]
                ended = subprocess.run(arguments, env=os.environ | moment | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
                said += [ended.stdout, ended.stderr]
            running.send(topic, [event("oven", "temperature", 1, datetime.now(UTC)).encode()])
    assert server.rows("select count(*) > 40 from r") == [(True,)]
    assert canary.texts_with(SECRET, [*said, *seen]) == []
    assert [name for name in canary.files_with(SECRET, conf.parent) if name != "secret"] == []
