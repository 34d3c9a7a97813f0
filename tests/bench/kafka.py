"""Kafka beside files: `make bench NAME=kafka`. The broker runs on the same machine.

Backlog: the events of `make bench` as messages, through all layers in a fresh process; the same events from files; in turn, ROUNDS times.
Live: as `make bench NAME=live`, but the events of each second are sent to Kafka: how long they took from there to a commit of silver.
"""

import argparse
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from deltalake import DeltaTable
from rich.console import Console

from tests.bench.factory import expected_rows, write_conf, write_events
from tests.bench.feed import Deliver
from tests.bench.live import is_clean, live_options, measured
from tests.bench.processes import FailedError
from tests.bench.script import all_layers, narrow_table, parser_for, progress, script, write_report
from tests.broker import Broker
from tests.waiting import PATIENCE_SECONDS

PARTITIONS, AT_ONCE = 4, 10_000
GOAL_RATIO, GOAL_P99_SECONDS = 1.3, 4.0


def main() -> int:
    """Measure, check, tell; 0 when every count is right."""
    options = _options()
    folder = options.work / f"kafka-{options.events}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "broker").mkdir(parents=True)
    report: dict[str, Any] = {"events": options.events, "partitions": PARTITIONS}
    with Broker(folder / "broker").running() as running:
        if options.events:
            report |= _backlog(folder, running, options)
        if options.minutes:
            report |= _live(folder / "live", running, options)
    write_report(options, report)
    return 0 if not options.minutes or is_clean(report) else 1


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-kafka", rounds=1)
    parser.add_argument("--events", type=int, default=2_000_000, help="of the backlog; 0: none")
    live_options(parser, minutes=3)
    return parser.parse_args()


def _backlog(folder: Path, running: Broker, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds by round, and their ratio; FailedError where a table holds another number of rows than it must."""
    made = options.work / str(options.events)
    made.mkdir(parents=True, exist_ok=True)
    landing = write_events(made, write_conf(folder / "made", options.driver_memory, options.cores), options.events)
    progress.log(f"sending {options.events:,} messages")
    running.create("backlog", PARTITIONS)
    sending = sender(running, "backlog")
    for file in sorted(landing.iterdir()):
        sending(0, file.read_text(encoding="utf-8").splitlines())
    ways: dict[str, Mapping[str, Any]] = {"files": {"path": str(landing), "settle_seconds": 0}, "Kafka": _topic(running, "backlog")}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, transport in ways.items():
            lake = folder / way
            shutil.rmtree(lake, ignore_errors=True)
            conf = write_conf(lake, options.driver_memory, options.cores, transport=transport)
            seconds[way].append(round(all_layers(conf, folder / f"{way}.log").seconds, 1))
            progress.log(f"{way}: {seconds[way][-1]} s")
            _refuse_wrong_counts(lake / "lake", expected_rows(made))
    ratio = round(statistics.median(seconds["Kafka"]) / statistics.median(seconds["files"]), 2)
    _show(seconds, ratio)
    return {"backlog_s": seconds, "ratio": ratio, "goal_ratio": GOAL_RATIO}


def _live(folder: Path, running: Broker, options: argparse.Namespace) -> dict[str, Any]:
    running.create("live", PARTITIONS)
    transport = _topic(running, "live")
    conf = write_conf(folder, options.driver_memory, options.cores, transport=transport, trigger_seconds=options.trigger_seconds)
    report = measured(conf, options, sender(running, "live"))
    warm = [minute["to_silver_s"]["p99"] for minute in report["minutes"][1:] if minute["to_silver_s"]]
    p99_seconds = max(warm, default=None)
    Console().print(f"sent to silver, p99 of the slowest minute but the first: {p99_seconds} s, goal {GOAL_P99_SECONDS} s")
    return report | {"p99_s": p99_seconds, "goal_p99_s": GOAL_P99_SECONDS}


def _topic(running: Broker, name: str) -> dict[str, Any]:
    return {"kafka": {"servers": running.servers, "subscribe": [name]}}


def sender(running: Broker, topic: str) -> Deliver:
    """Messages that the broker has when it returns; they come to all partitions in their order."""
    producer = Producer({"bootstrap.servers": running.servers, "linger.ms": 5, "queue.buffering.max.messages": 2 * AT_ONCE})

    def deliver(_: int, events: Sequence[str]) -> None:
        for n, event in enumerate(events):
            if n % AT_ONCE == 0:
                producer.flush(PATIENCE_SECONDS)
            producer.produce(topic, event, partition=n % PARTITIONS)
        if producer.flush(PATIENCE_SECONDS):
            raise FailedError(f"the broker has not taken all messages within {PATIENCE_SECONDS:.0f} s")

    return deliver


def _refuse_wrong_counts(lake: Path, expected: Mapping[str, int]) -> None:
    for name, count in expected.items():
        if (found := DeltaTable(lake / name.replace(".", "/")).count()) != count:
            raise FailedError(f"{name} holds {found} rows and should hold {count}")


def _show(seconds: Mapping[str, Sequence[float]], ratio: float) -> None:
    table = narrow_table("backlog", "seconds, median", "all rounds")
    for way, of_way in seconds.items():
        table.add_row(way, f"{statistics.median(of_way):.1f}", " ".join(map(str, of_way)))
    table.add_row("ratio", f"{ratio:.2f}", f"goal {GOAL_RATIO}")
    Console().print(table)


if __name__ == "__main__":
    script(main)
