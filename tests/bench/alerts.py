"""How soon somebody is told: CONDITIONS alerts among RATE events/s, from a collector and from Kafka, to a webhook and to a topic.

make bench NAME=alerts ARGS="[--rate 5000] [--conditions 10000] [--silence 10] [collector kafka kafka-webhook exact silence]"

`exact` is the way by bronze, silver and gold.alerts of a `tidemark run`; the others are those of fast alerts, by the watch.

Each event is stamped where it is sent; a message is late by what its receiver's clock says more: one machine, one clock. Every device that
gets hot is told of once, under its own id; what is missing or repeated is counted by that id. The load of the machine stands beside each
number. A picture of all delays is drawn to artifacts/alerts.png.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer

from orchestration.utc import from_micros
from tests.bench.processes import cpu_seconds
from tests.broker import Broker
from tests.collectors import collecting, write_conf
from tests.waiting import until
from tests.watching import Runner, Watcher, receiver

DEVICES, EVERY, HOT, COLD = 1000, 50, 300, 200
WARM, TICK_SECONDS = 200, 0.01
GOALS = {"collector": (None, 50), "kafka": (10, 100), "kafka-webhook": (None, 150), "exact": (None, 15_000)}
"""Milliseconds by way, p50 and p99."""
ALERTS = """
alerts:
  hot: {{reading: temperature, when: value > 280, fast: {fast}}}
  silent: {{reading: temperature, when: value > 100000, no_data: {{after_seconds: {seconds}, then: fire}}, fast: {fast}}}
channels:
  there: {channel}
"""
ARTIFACTS = Path("artifacts")


@dataclass
class Delays:
    """Of one way. `seconds`: from the stamp of an event to its message. `load`: of the machine, over a minute, at begin and end. `cpu`: of
    the watch, or of the run with its JVM, in cores. `stamps`: by how much the receiver's clock says more than `told_at`, at most.
    """

    way: str
    expected: int
    seconds: list[float] = field(default_factory=list)
    repeated: int = 0
    load: tuple[float, float] = (0.0, 0.0)
    rate: float = 0.0
    cpu: float = 0.0
    stamps: float = 0.0

    def add(self, come: list[tuple[float, dict[str, Any]]]) -> None:
        """Messages with the instants at which they came: what tells that a device is hot, each once."""
        hot = [(at, of) for at, of in come if of["alert"] == "hot" and of["state"] in {"firing", "over"}]
        self.stamps = max((at - datetime.fromisoformat(of["told_at"]).timestamp() for at, of in hot), default=0.0)
        first: dict[str, float] = {}
        for at, of in hot:
            first.setdefault(of["message_id"], at - datetime.fromisoformat(of["changed_at"]).timestamp())
        self.seconds, self.repeated = list(first.values()), sum(n - 1 for n in Counter(of["message_id"] for _, of in hot).values())

    def __str__(self) -> str:
        goal = " ".join(f"{name} {ms}" for name, ms in zip(("p50", "p99"), GOALS[self.way], strict=True) if ms)
        middle, late, most = np.percentile(self.seconds, [50, 99, 100]) * 1000 if self.seconds else (float("nan"),) * 3
        return (
            f"{self.way:14}{middle:9.1f}{late:9.1f}{most:9.1f}  {goal:16}{self.expected:9,}{self.expected - len(self.seconds):9,}"
            f"{self.repeated:9,}{self.rate:11,.0f}{self.cpu:7.2f}{self.stamps * 1000:12.1f}  {self.load[0]:.1f} - {self.load[1]:.1f}"
        )


def payloads(count: int, first: int) -> Iterator[bytes]:
    """Events of now: of EVERY, the first makes a device hot, and the second ends that of another one, half a turn after it began."""
    now, half = time.time_ns() // 1000, DEVICES // 2
    for n in range(first, first + count):
        turn, step = divmod(n, EVERY)
        device = turn % half if step == 0 else (turn + half // 2) % half if step == 1 else half + n % half
        at = from_micros(now + n - first).isoformat().encode()
        yield b'{"device":"d%04d","metric":"temperature","value":%d,"ts":"%s"}' % (device, COLD if step else HOT, at)


def send(deliver: Callable[[list[bytes]], None], rate: int, first: int, count: int) -> float:
    """Evenly, as the clock says; the events a second that it came to."""
    begin, sent = time.monotonic(), 0
    while sent < count:
        due = min(count, int((time.monotonic() - begin) * rate)) - sent
        if due > 0:
            deliver(list(payloads(due, first + sent)))
            sent += due
        time.sleep(TICK_SECONDS)
    return count / (time.monotonic() - begin)


def conf_of(folder: Path, transport: str, channel: str, silence: int = 100_000, *, is_fast: bool = True) -> Path:
    conf = write_conf(folder, plant=transport)
    (conf / "devices.yml").write_text("devices:\n" + "".join(f"  d{n:04d}: {{groups: [kitchen]}}\n" for n in range(DEVICES)))
    (conf / "alerts.yml").write_text(ALERTS.format(channel=channel, seconds=silence, fast=str(is_fast).lower()))
    return conf


def by_kafka(running: Broker) -> Callable[[list[bytes]], None]:
    producer = Producer({"bootstrap.servers": running.servers, "linger.ms": 0, "log_level": 0})

    def deliver(events: list[bytes]) -> None:
        for event in events:
            producer.produce("readings", event, key=event[11:16])  # of a device all in one partition
        producer.poll(0)

    return deliver


def by_tcp(port: int) -> Callable[[list[bytes]], None]:
    """As devices do, on one connection; its acknowledgements are read and forgotten."""
    connection = socket.create_connection(("127.0.0.1", port))

    def forget() -> None:
        while connection.recv(1 << 16):
            pass

    threading.Thread(target=forget, daemon=True).start()
    return lambda events: connection.sendall(b"\n".join(events) + b"\n")


def measure(way: str, folder: Path, options: argparse.Namespace) -> Delays:
    """From a fresh lake; returns when all is told, or nothing more comes for a while."""
    result, begin_load = Delays(way, options.conditions), os.getloadavg()[0]
    with ExitStack() as stack:
        (folder / "broker").mkdir(parents=True)
        running = None if way in {"collector", "exact"} else stack.enter_context(Broker(folder / "broker").running())
        told = stack.enter_context(receiver())
        come, channel = told.messages, f'{{webhook: {{url: "{told.url}"}}}}'
        transport = "tcp: {port: 0}"
        if running is not None:
            running.create("readings", 4)
            transport = f"kafka: {{servers: '{running.servers}', subscribe: [readings]}}"
            if way == "kafka":
                running.create("told", 1)
                channel, come = f"{{kafka: {{servers: '{running.servers}', topic: told}}}}", []
                threading.Thread(target=_receive, args=(running.servers, come), daemon=True).start()
        conf = conf_of(folder, transport, channel, is_fast=way != "exact")
        deliver = by_kafka(running) if running else by_tcp(stack.enter_context(collecting(conf)).ports["plant"])
        watcher = stack.enter_context((Runner if way == "exact" else Watcher)(conf).running())
        state = folder / "lake" / "fast_alerts" / "state.json"
        until(lambda: running is None or '"readings/3"' in state.read_text(), lambda: watcher.log)
        send(deliver, options.rate, 0, WARM * EVERY)  # what is cold is no measure
        if way == "exact":
            until(lambda: len(come) >= WARM, lambda: watcher.log)
        time.sleep(2)
        assert watcher.process is not None
        process = psutil.Process(watcher.process.pid)
        before, spent, since = len(come), _cpu(process), time.monotonic()
        result.rate = send(deliver, options.rate, WARM * EVERY, options.conditions * EVERY)
        result.cpu = (_cpu(process) - spent) / (time.monotonic() - since)
        _wait(come, before + result.expected)
        result.add(come[before:])
        sys.stderr.write(watcher.log)
    result.load = begin_load, os.getloadavg()[0]
    return result


def silence(folder: Path, seconds: int) -> list[tuple[str, float]]:
    """By what is done meanwhile: how long after the last event of a device its silence is told."""
    found = []
    for way in ("running", "killed with -9 and started again"):
        with ExitStack() as stack:
            told = stack.enter_context(receiver())
            conf = conf_of(folder / way.split()[0], "tcp: {port: 0}", f'{{webhook: {{url: "{told.url}"}}}}', seconds)
            deliver = by_tcp(stack.enter_context(collecting(conf)).ports["plant"])
            watcher = stack.enter_context(Watcher(conf).running())
            deliver(list(payloads(1, 2)))
            sent = time.time()
            time.sleep(seconds / 2)
            if way != "running":
                watcher.kill()
                watcher.start()
            until(lambda: bool(told.messages), lambda: watcher.log)  # noqa: B023
            found.append((way, told.messages[0][0] - sent))
    return found


def _cpu(process: psutil.Process) -> float:
    """Seconds that a process and its children have spent."""
    return sum(map(cpu_seconds, [process, *process.children(recursive=True)]))


def _receive(servers: str, come: list[tuple[float, dict[str, Any]]]) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "receiver", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20, "log_level": 0}
    )
    consumer.subscribe(["told"])
    while True:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            come.append((time.time(), json.loads(message.value() or b"{}")))


def _wait(come: list[Any], count: int) -> None:
    """Until so many have come, or none for half a minute."""
    seen, since = len(come), time.monotonic()
    while len(come) < count * 2 and time.monotonic() < since + 30:
        time.sleep(0.2)
        if len(come) != seen:
            seen, since = len(come), time.monotonic()


def draw(results: list[Delays], file: Path) -> None:
    """A histogram of each way, one below the other, on one logarithmic scale of milliseconds."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(results), 1, figsize=(9, 2.4 * len(results)), sharex=True, squeeze=False, layout="constrained")
    edges = np.geomspace(1, max(10_000.0, *(max(of.seconds, default=1) * 1100 for of in results)), 90)
    for axis, of in zip(axes[:, 0], results, strict=True):
        axis.hist(np.array(of.seconds) * 1000, edges, color="#2a6f97")
        for percent, style in ((50, "-"), (99, "--")):
            at = float(np.percentile(of.seconds, percent)) * 1000
            axis.axvline(at, color="#b23a48", linestyle=style, label=f"p{percent} {at:.1f} ms")
        what = f"{of.way}: {len(of.seconds):,} of {of.expected:,}, {of.rate:,.0f} events/s, load {of.load[0]:.1f} - {of.load[1]:.1f}"
        axis.set(xscale="log", ylabel="messages", title=what)
        axis.legend(loc="upper right")
    axes[-1, 0].set_xlabel("ms from the event's stamp to the receiver")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ways", nargs="*", choices=[[], *GOALS, "silence"])
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--conditions", type=int, default=10_000)
    parser.add_argument("--silence", type=int, default=10, help="seconds after which a device is silent")
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)  # the receiver is a thread beside the sender
    ways = options.ways or [*GOALS, "silence"]
    names = "".join(f"{name:>9}" for name in ("p50 ms", "p99 ms", "max ms"))
    counts = "".join(f"{name:>9}" for name in ("told of", "missing", "repeated"))
    print(f"{'way':14}{names}  {'goal ms':16}{counts}   events/s  cores  told_at ms  load")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            if way in GOALS:
                results.append(measure(way, Path(folder) / way, options))
                print(results[-1], flush=True)
        if results:
            draw(results, ARTIFACTS / "alerts.png")
        if "silence" in ways:
            for name, seconds in silence(Path(folder) / "silence", options.silence):
                goal = f"goal {options.silence + 10} s, load {os.getloadavg()[0]:.1f}"
                print(f"silence of {options.silence} s, {name}: told after {seconds:.1f} s, {goal}", flush=True)


if __name__ == "__main__":
    main()
