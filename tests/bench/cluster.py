"""What executors on two machines do of a run, and what comes to the driver: `make bench NAME=cluster`, as root.

The machines are network namespaces that share an object store, and nothing else. So many events, then twice as many, each in a cluster of
its own. The end is 1 where results of tasks are more than a hundredth of what landed, or grow faster than it.
"""

import argparse
import json
import os
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.processes import timed
from tests.bench.script import REPOSITORY, narrow_table, of, parser_for, progress, script, write_report
from tests.cluster.cluster import Cluster
from tests.cluster.event_log import Task, tasks
from tests.cluster.machines import MASTER
from tests.cluster.sample import KEYS, in_store, logged
from tests.s3_proxy import Request

MB, MOST = 1_000_000, 0.01
OF_TABLE = re.compile(r"(bronze|silver|gold)[./]\w+")
TRAFFIC = ("driver reads", "driver writes", "tasks read", "tasks write")


def main() -> int:
    """Measure, tell. Steps overlap, and `of tasks` adds up what both executors do at the same time."""
    options = parser_for(__doc__, "bench-cluster", events=300_000).parse_args()
    os.environ |= KEYS
    reports = {events: _measured(options, events) for events in (options.events, 2 * options.events)}
    for events, report in reports.items():
        _show(events, report)
    write_report(options, {f"of {events} events": report for events, report in reports.items()})
    shares = [report["results"] / report["landed"] for report in reports.values()]
    return int(shares[-1] > min(MOST, shares[0] * 1.1))


def _measured(options: argparse.Namespace, events: int) -> dict[str, Any]:
    folder = options.work / f"{events}-cluster"
    shutil.rmtree(folder / "machines", ignore_errors=True)
    (folder / "machines").mkdir(parents=True)
    landing = write_events(folder, write_conf(folder, options.driver_memory, options.cores), events)
    with ExitStack() as stack:
        cluster = Cluster(folder / "machines", stack)
        host, proxy = cluster.hosts[0], cluster.proxy
        settings = logged(host.folder / "event-logs")
        (host.folder / "plant").mkdir()
        conf = write_conf(host.folder / "plant", options.driver_memory, options.cores, master=MASTER, settings=settings)
        in_store(conf, proxy.endpoint, cluster.bucket)
        for file in sorted(landing.iterdir()):
            cluster.land(file.name, file.read_bytes())
        proxy.forget()
        before, log = host.received(), folder / "run.log"
        run = timed([*host.inside, *of(conf), "run", "--once"], REPOSITORY, log)
        requests, received = proxy.requests(), host.received() - before
        steps = _steps(log, [*tasks(host.folder / "event-logs")])
    progress.log(f"{events:,} events: {run.seconds:.1f} s")
    landed, answered = sum(file.stat().st_size for file in landing.iterdir()), sum(_bytes(requests, host.address, "GET").values())
    results = sum(step["results"] for step in steps.values())
    traffic = {
        name: _bytes([request for request in requests if (request.client == host.address) == name.startswith("driver")], None, kind)
        for name, kind in zip(TRAFFIC, ("GET", "PUT") * 2, strict=True)
    }
    others = received - answered
    return {**vars(run), "landed": landed, "results": results, "others": others, "steps": steps, "traffic": traffic}


def _bytes(requests: list[Request], client: str | None, kind: str) -> Counter[str]:
    """Bytes of contents, by what they are of. `client`: of requests of this address alone."""
    count = Counter[str]()
    for request in requests:
        if request.kind == kind and client in {None, request.client}:
            count[_part(request.key)] += request.received_bytes if kind == "GET" else request.sent_bytes
    return count


def _part(key: str) -> str:
    path = key.split("/", 1)[-1]
    if path.startswith("landing/"):
        return "what landed"
    if "_delta_log" in path:
        return "logs of tables"
    table = OF_TABLE.search(path)
    return "checkpoints" if "checkpoint" in path else table[0].replace("/", ".") if table else "others"


def _steps(log: Path, done: list[Task]) -> dict[str, dict[str, Any]]:
    """By flow or job; what none of them asked for is of Delta's log and of jobs."""
    told = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    names = dict.fromkeys([*(line.get("flow") or line["job"] for line in told if "rows" in line), "others"])
    return {
        name: _step([line for line in told if name in line.values()], [task for task in done if (task.flow or "others") == name])
        for name in names
    }


def _step(told: list[dict[str, Any]], done: list[Task]) -> dict[str, Any]:
    of_run = {key: sum(line[key] for line in told) for key in ("rows", "seconds")}
    return of_run | {"of_tasks": sum(task.seconds for task in done), "results": sum(task.sent for task in done)}


def _show(events: int, report: dict[str, Any]) -> None:
    steps, traffic = narrow_table("step", "rows", "seconds", "of tasks", "MB of results"), narrow_table("MB", *TRAFFIC)
    for name, step in report["steps"].items():
        steps.add_row(name, f"{step['rows']:,}", *(f"{step[key]:.1f}" for key in ("seconds", "of_tasks")), f"{step['results'] / MB:.2f}")
    for part in sorted(set().union(*report["traffic"].values())):
        traffic.add_row(part, *(f"{report['traffic'][name][part] / MB:.2f}" for name in TRAFFIC))
    landed, results = report["landed"], report["results"]
    told = f"{events:,} events: {landed / MB:.1f} MB had landed; {report['seconds']:.1f} s in all"
    sent = f"Results of tasks: {results / MB:.2f} MB, {results / landed:.2%} of that"
    more = f"What came by the driver's link and was no content of the store: {report['others'] / MB:.2f} MB"
    Console().print(told, steps, traffic, sent, more, "", sep="\n")


if __name__ == "__main__":
    script(main)
