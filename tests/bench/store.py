"""What a lake in an object store costs: requests by kind, and time beside a disk. `make bench NAME=store`.

A proxy before a store of this machine counts what is asked, and makes each request take so many milliseconds. The same events go into a
lake on a disk, and into lakes in the store.
"""

import argparse
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from tests.bench.script import all_layers, narrow_table, of, parser_for, progress, script, write_report
from tests.object_store import Store
from tests.s3_proxy import KINDS, Proxy, Request
from tests.store_lakes import ENVIRONMENT, ROOT, conf_in_store
from tests.waiting import until

SQL = "select metric, count(*) as n from silver.readings group by metric"
MOST = {"run, nothing new": None, "a cycle with nothing new": 40, "a cycle with a batch": 250, "sql": 15, "ledger": 60}
PURPOSES = {"checkpoints": "/checkpoints/", "logs of tables": "/_delta_log/", "files of tables": r"\.parquet$", "else": ""}
CLIENTS = {"Spark": "Hadoop", "delta-rs": "object_store", "we": ""}
"""By what they call themselves."""
SETTLE_SECONDS, CYCLES = 20.0, 12
"""A run is settled when it has written nothing but its lease for so long."""


def main() -> int:
    options = _options()
    folder = options.work / "store"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ |= ENVIRONMENT | {"XDG_STATE_HOME": str(folder / "state")}
    simulate(folder / "landing", options.events)
    shutil.copytree(ROOT / "conf", folder / "disk" / "conf")
    shutil.copytree(folder / "landing", folder / "disk" / "landing")
    with Store(folder).running() as store, Proxy(folder, store.endpoint).running() as proxy:
        seconds = {"disk": first_run(folder / "disk" / "conf", folder)}
        for latency in options.milliseconds:
            conf = _conf(folder, proxy, store, latency)
            proxy.set_faults(seconds=latency / 1000)
            proxy.forget()
            seconds[f"store, {latency} ms"] = first_run(conf, folder)
            counted = {"run, all events": proxy.counts()}
        proxy.set_faults()
        counted |= of_commands(conf, proxy)
        purposes = {"ledger": by_purpose(proxy)}
        of_cycle, purposes["a cycle with a batch"] = of_cycles(conf, proxy)
        counted |= of_cycle
    show(seconds, counted)
    show_purposes(purposes)
    write_report(options, {"events": options.events, "seconds": seconds, "requests": counted, "purposes": purposes})
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-store", events=240_000)
    parser.add_argument("--milliseconds", type=int, nargs="+", default=[0, 1, 20], help="of each request")
    return parser.parse_args()


def _conf(folder: Path, proxy: Proxy, store: Store, latency: int) -> Path:
    conf = conf_in_store(folder / f"{latency}ms", proxy.endpoint, store.bucket())
    shutil.copytree(folder / "landing", conf.parent / "landing")
    return conf


def simulate(landing: Path, events: int, *more: str) -> None:
    command = [*of(ROOT / "conf"), "simulate", "--to", str(landing), "--events", str(events), *more]
    subprocess.run(command, check=True, capture_output=True)


def first_run(conf: Path, folder: Path) -> float:
    run = all_layers(conf, folder / "run.log")
    progress.log(f"{conf.parent.name}: {run.seconds:.1f} s")
    return run.seconds


def of_commands(conf: Path, proxy: Proxy) -> dict[str, Counter[str]]:
    """Requests of whole commands."""
    counted = {}
    for name, arguments in {"run, nothing new": ["run", "--once"], "sql": ["sql", SQL], "ledger": ["ledger"]}.items():
        proxy.forget()
        subprocess.run([*of(conf), *arguments], cwd=ROOT, check=True, capture_output=True)
        counted[name] = proxy.counts()
    return counted


def of_cycles(conf: Path, proxy: Proxy) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Requests of a continuous run: in a cycle in which nothing came, the mean of twelve; and more than these until a batch is in gold,
    these by purpose too.

    The lease costs 12 PUT a minute, and is not counted.
    """
    (conf / "pipeline.yml").write_text(text := (conf / "pipeline.yml").read_text())
    seconds = 5 if "trigger_seconds: 5 " in text else 1
    with (conf.parent / "live.log").open("wb") as log:
        process = subprocess.Popen([*of(conf), "run"], cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        try:
            settled(proxy)
            proxy.forget()
            time.sleep(CYCLES * seconds)
            idle, idle_purposes = without_lease(proxy), by_purpose(proxy)
            landed = time.monotonic()
            proxy.forget()
            simulate(conf.parent / "more", 20_000, "--start", "2026-02-01T00:00:00Z", "--seed", "7", "--files", "1")
            for file in (conf.parent / "more").iterdir():
                file.rename(conf.parent / "landing" / f"more-{file.name}")
            until(lambda: bool(proxy.counts("ops/snapshots/_delta_log/.*json")["PUT"]))
            settled(proxy)
            batch, purposes, cycles = without_lease(proxy), by_purpose(proxy), (time.monotonic() - landed) / seconds
        finally:
            process.terminate()
            process.wait()
    per_cycle = Counter({kind: round(count / CYCLES) for kind, count in idle.items()})
    of_cycle = {"a cycle with nothing new": per_cycle, "a cycle with a batch": beyond(batch, idle, cycles) + per_cycle}
    return of_cycle, beyond(purposes, idle_purposes, cycles)


def beyond(batch: Counter[str], idle: Counter[str], cycles: float) -> Counter[str]:
    """Return what came in so many cycles beyond what comes when nothing does."""
    return Counter({name: max(0, round(count - idle[name] * cycles / CYCLES)) for name, count in batch.items()})


def settled(proxy: Proxy) -> None:
    """Wait until nothing has been written for a while."""
    written, since = -1, time.monotonic()

    def is_quiet() -> bool:
        nonlocal written, since
        now = sum(without_lease(proxy)[kind] for kind in ("PUT", "COPY", "DELETE"))
        if now != written:
            written, since = now, time.monotonic()
        return time.monotonic() - since > SETTLE_SECONDS

    until(is_quiet, pause_seconds=1.0)


def without_lease(proxy: Proxy) -> Counter[str]:
    return Counter(request.kind for request in _asked(proxy))


def by_purpose(proxy: Proxy) -> Counter[str]:
    """Count requests by what they ask for and by whom."""
    return Counter(f"{_first(PURPOSES, request.key)}, {_first(CLIENTS, request.agent)}" for request in _asked(proxy))


def _asked(proxy: Proxy) -> list[Request]:
    return [request for request in proxy.requests() if not request.key.endswith("writer.json")]


def _first(patterns: dict[str, str], text: str) -> str:
    return next(name for name, pattern in patterns.items() if re.search(pattern, text))


def show(seconds: dict[str, float], counted: dict[str, Counter[str]]) -> None:
    console, times = Console(), narrow_table("240,000 events", "seconds", "of the disk's")
    for name, taken in seconds.items():
        times.add_row(name, f"{taken:.1f}", f"{taken / seconds['disk']:.2f}")
    console.print(times)
    table = narrow_table("requests", *KINDS, "all", "at most")
    for name, counts in counted.items():
        most = MOST.get(name)
        table.add_row(name, *(str(counts[kind]) for kind in KINDS), str(counts.total()), str(most or ""))
    console.print(table)


def show_purposes(purposes: dict[str, Counter[str]]) -> None:
    for name, counts in purposes.items():
        table = narrow_table(f"{name}: requests for", *CLIENTS)
        for purpose in PURPOSES:
            table.add_row(purpose, *(str(counts[f"{purpose}, {client}"]) for client in CLIENTS))
        Console().print(table)


if __name__ == "__main__":
    script(main)
