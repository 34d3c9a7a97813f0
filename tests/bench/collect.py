"""How many pushed events `tidemark collect` takes in a second, each on the disk before it is acknowledged, and how soon at half of that.

python -m tests.bench.collect [--seconds 10] [tcp] [http] [mqtt]

Senders are two processes on the same machine, each with a few connections. MQTT goes through a mosquitto that the benchmark starts: what
counts there is what the collector has on the disk.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import cast

import numpy as np
import psutil
import uvloop

from orchestration.connectors.sources.spool import Spool
from tests.bench import mqtt
from tests.bench.processes import cpu_seconds
from tests.collectors import collecting, write_conf
from tests.mosquitto import mosquitto

EVENT = b'{"device":"press-0001","metric":"temperature","value":21.53,"ts":"2026-01-05T00:00:00.000Z"}'
A_REQUEST = 100
SENDERS, CONNECTIONS = 2, {"tcp": 4, "http": 16, "mqtt": 1}
WINDOW = {"tcp": 20_000, "http": A_REQUEST, "mqtt": 100}
"""Events of a connection without acknowledgement, at most, where it sends as fast as it can."""
GOALS = {"tcp": 300_000, "http": 200_000, "mqtt": 7_000}
TICK_SECONDS = 0.002
SPOOL = "max_spool_bytes: 100000000000"


class Sender(asyncio.Protocol):
    """A connection. `rate` in events a second; 0: as fast as the window lets it."""

    transport: asyncio.Transport

    def __init__(self, way: str, rate: float, end: float) -> None:
        """Not connected yet; `end` by the monotonic clock."""
        self.way, self.rate, self.end = way, rate, end
        body = b"[" + b",".join([EVENT] * A_REQUEST) + b"]"
        head = f"POST /events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        units = {"tcp": (EVENT + b"\n", 1), "http": (head + body, A_REQUEST), "mqtt": (mqtt.publish(EVENT), 1)}
        self.unit, self.size = units[way]
        self.sent = self.acknowledged = self.heard = 0
        self.begin = time.monotonic()
        self.due: deque[tuple[int, float]] = deque()
        self.delays: list[tuple[float, int]] = []
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.way == "mqtt":
            self.transport.write(mqtt.connect(b"sender-%d" % os.getpid()))
        self.send()

    def send(self) -> None:
        """What is due now: one event a write, or one request."""
        now = time.monotonic()
        if now > self.end:
            if self.acknowledged == self.sent and not self.over.done():
                self.over.set_result(None)
            return
        if self.rate:
            asyncio.get_running_loop().call_later(max(TICK_SECONDS, self.size / self.rate / 4), self.send)
            count = int((now - self.begin) * self.rate) - self.sent
        else:
            count = WINDOW[self.way] - (self.sent - self.acknowledged)
        for _ in range(count // self.size):
            self.transport.write(self.unit)
        if count >= self.size:
            self.sent += count // self.size * self.size
            self.due.append((self.sent, now))

    def data_received(self, data: bytes) -> None:
        """An acknowledgement, or several."""
        if self.way == "tcp":
            self.acknowledged = int(data.rsplit(b"\n", 2)[-2]) if data.count(b"\n") else self.acknowledged
        elif self.way == "mqtt":
            self.heard += len(data)
            self.acknowledged = self.heard // mqtt.ANSWER_BYTES - 1  # the first is that to CONNECT
        else:
            assert data.count(b"HTTP/1.1") == data.count(b"HTTP/1.1 202"), data
            self.acknowledged += data.count(b"HTTP/1.1 202") * A_REQUEST
        now = time.monotonic()
        while self.due and self.due[0][0] <= self.acknowledged:
            number, then = self.due.popleft()
            self.delays.append((now - then, number))
        if not self.rate or now > self.end:
            self.send()


async def send(way: str, port: int, rate: float, seconds: float) -> None:
    """As one of the sending processes; prints what came of it as JSON."""
    loop, begin = asyncio.get_running_loop(), time.monotonic()
    end, share = begin + seconds, rate / SENDERS / CONNECTIONS[way]
    made = [await loop.create_connection(lambda: Sender(way, share, end), "127.0.0.1", port) for _ in range(CONNECTIONS[way])]
    senders = [sender for _, sender in made]
    await asyncio.gather(*(sender.over for sender in senders))
    delays = [delay for sender in senders for delay, _ in sender.delays]
    print(json.dumps({"events": sum(s.acknowledged for s in senders), "seconds": time.monotonic() - begin, "delays": delays}))


def measure(way: str, port: int, rate: float, seconds: float) -> tuple[float, list[float]]:
    """Events a second that all senders together got acknowledged, and how long each group of them waited."""
    settings = {"send": way, "port": port, "rate": rate, "seconds": seconds}
    command = [sys.executable, "-m", "tests.bench.collect", *(f"--{name}={value}" for name, value in settings.items())]
    senders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(SENDERS)]
    answers = [json.loads(sender.communicate()[0]) for sender in senders]
    return sum(one["events"] / one["seconds"] for one in answers), [delay for one in answers for delay in one["delays"]]


def bench(way: str, seconds: float) -> tuple[float, float, float, list[float]]:
    """Events a second, CPU of the collector in us an event; events a second that were sent as half of the goal, and delays of those."""
    with tempfile.TemporaryDirectory() as folder, collecting(write_conf(Path(folder), bench=f"{way}: {{port: 0, {SPOOL}}}")) as collector:
        port = collector.ports["bench"]
        most, _ = measure(way, port, 0, seconds)
        spent = cpu_seconds(psutil.Process(collector.process.pid)) / (most * seconds) * 1e6
        return most, spent, *measure(way, port, GOALS[way] / 2, seconds)


def bench_mqtt(seconds: float) -> tuple[float, float, float, list[float]]:
    """The same. Events count from the first that was taken to the last; acknowledgements are those of the collector, tapped."""
    with tempfile.TemporaryDirectory() as name, mosquitto(Path(name) / "broker") as broker, mqtt.tapping(broker.port) as tap:
        found = []
        for port, rate in ((broker.port, 2 * GOALS["mqtt"]), (tap.port, GOALS["mqtt"] / 2)):
            folder = Path(name) / str(port)
            conf = write_conf(folder, bench=f"mqtt: {{broker: '127.0.0.1:{port}', topics: ['plant/#'], {SPOOL}}}")
            with collecting(conf) as collector:
                collector.says("messages come")
                before = cpu_seconds(psutil.Process(collector.process.pid))
                measure("mqtt", broker.port, rate, seconds)
                events, most = taken(folder)
                found += [most, (cpu_seconds(psutil.Process(collector.process.pid)) - before) / events * 1e6]
        return found[0], found[1], found[2], tap.delays


def taken(folder: Path) -> tuple[int, float]:
    """How many events the spool has when no more come, and how many of them came a second."""
    spool, before, times = Spool("bench", folder / "lake" / "spool" / "bench", 1 << 40), -1, np.empty(0)
    while before < len(times):
        before = len(times)
        time.sleep(1)
        tables = [table for part in spool.partitions({}, spool.latest_offset({})) for table in spool.read(part)]
        times = np.concatenate([table["received_at"].cast("int64").to_numpy() for table in tables])
    return len(times), len(times) / (times.max() - times.min()) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ways", nargs="*")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--send", choices=list(GOALS))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0)
    options = parser.parse_args()
    if options.send:
        gc.disable()  # its pauses would count as the collector's
        uvloop.run(send(options.send, options.port, options.rate, options.seconds))
        return
    print(f"{'':6}{'events/s':>12}{'goal':>12}{'CPU us/event':>14}{'at half of the goal':>22}{'p50 ms':>10}{'p99 ms':>10}")
    for way in options.ways or GOALS:
        most, spent, half, delays = bench_mqtt(options.seconds) if way == "mqtt" else bench(way, options.seconds)
        middle, late = np.percentile(delays, [50, 99]) * 1000
        print(f"{way:6}{most:12,.0f}{GOALS[way]:12,}{spent:14.2f}{half:22,.0f}{middle:10.1f}{late:10.1f}", flush=True)


if __name__ == "__main__":
    main()
