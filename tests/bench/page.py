"""What the live page costs and how soon it shows something: `make bench NAME=page`.

First views, in a browser, of a server that has just started: of the lake of `make demo`, and of one with 20,000 devices in 10,000 groups.
What 20 open pages cost while nothing changes. What a page and a scrape every 15 seconds cost beside a run, and how soon the page is told of
a commit.
"""

import argparse
import http.client
import os
import shutil
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.feed import fed_run
from tests.bench.processes import used
from tests.bench.script import REPOSITORY, all_layers, narrow_table, of, parser_for, progress, script, write_report
from tests.pages import Served, chromium, served

VIEWS = (
    "/",
    "/groups",
    "/groups?group={group}",
    "/devices",
    "/devices?device={device}",
    "/batches",
    "/quarantine",
    "/quality",
    "/runs",
    "/sql",
)
SCRAPE_SECONDS, SETTLE_SECONDS = 15.0, 5.0


def main() -> int:
    options = _options()
    many = _many(options)
    with chromium() as browser:
        first = {
            "demo": _first_views(browser, REPOSITORY / "conf", "kitchen", "oven-01"),
            "10,000 groups": _first_views(browser, many, "group_00007", "sim-0008"),
        }
        idle = {name: _idle(browser, conf, options) for name, conf in (("demo", REPOSITORY / "conf"), ("10,000 groups", many))}
    beside = _beside_a_run(options)
    report = {"first_view_s": first, "idle_pages_cpu": idle, "beside_a_run": beside}
    table = narrow_table("first view, seconds", *first)
    for view in VIEWS:
        table.add_row(view, *(f"{of_lake[view]:.2f}" for of_lake in first.values()))
    Console().print(table)
    Console().print_json(data={name: report[name] for name in ("idle_pages_cpu", "beside_a_run")})
    write_report(options, report)
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-page")
    parser.add_argument("--events", type=int, default=2_000_000, help="of the lake of 10,000 groups")
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rate", type=int, default=5_000, help="events a second, of the run")
    parser.add_argument("--seconds", type=int, default=60, help="of each measurement but the first")
    return parser.parse_args()


def _many(options: argparse.Namespace) -> Path:
    """The conf of a lake of 20,000 devices in 10,000 groups, made once."""
    folder = options.work / f"page-{options.events}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"group_{number:05d}" for number in range(10_000)]
    conf = write_conf(folder, options.driver_memory, options.cores, names=names, devices=20_000, stream="plant")
    if not (folder / "lake").exists():
        progress.log("a lake of 10,000 groups is made")
        write_events(folder, conf, options.events, 30)
        all_layers(conf, folder / "run.log")
    return conf


def _first_views(browser: Browser, conf: Path, group: str, device: str) -> dict[str, float]:
    """Seconds until each is loaded and its charts are drawn, each by the first page that asks the server for it."""
    seconds = {}
    with served(conf) as server:
        for view in VIEWS:
            page = browser.new_page()
            begin = time.perf_counter()
            page.goto(server.address + view.format(group=group, device=device))
            seconds[view] = round(time.perf_counter() - begin, 3)
            page.close()
    return seconds


def _idle(browser: Browser, conf: Path, options: argparse.Namespace) -> float:
    """Of a core, while the pages are open and nothing changes."""
    with served(conf) as server, ExitStack() as opened:
        for view in (VIEWS * options.pages)[: options.pages]:
            page = opened.enter_context(browser.new_page())
            page.goto(server.address + view.format(group="kitchen", device="oven-01"))
        time.sleep(SETTLE_SECONDS)
        before = used(server.process.pid)[0]
        time.sleep(options.seconds)
        return float(round((used(server.process.pid)[0] - before) / options.seconds, 4))


def _beside_a_run(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of CPU of the server beside those of the run, and seconds from a commit until an open page is told."""
    folder = options.work / f"page-live-{options.rate}"
    shutil.rmtree(folder, ignore_errors=True)
    conf = write_conf(folder, options.driver_memory, options.cores, trigger_seconds=1)
    (folder / "landing").mkdir()
    with fed_run(folder, of(conf), lambda _: options.rate, None) as run, served(conf) as server, _told(server) as told, _scraped(server):
        time.sleep(2 * SETTLE_SECONDS)
        begin, before = time.time(), [used(process)[0] for process in (run, server.process.pid)]
        time.sleep(options.seconds)
        end, after = time.time(), [used(process)[0] for process in (run, server.process.pid)]
    of_run, of_page = (now - then for now, then in zip(after, before, strict=True))
    delays = sorted(_delays(folder / "lake", told, begin, end))
    return {
        "run_cpu_s": round(of_run, 1),
        "page_cpu_s": round(of_page, 1),
        "page_of_run": round(of_page / of_run, 4),
        "told_of_a_commit_s": {"commits": len(delays), "p50": statistics.median(delays), "p99": delays[int(len(delays) * 0.99)]},
    }


@contextmanager
def _told(server: Served) -> Iterator[list[float]]:
    """When an open overview was told something."""
    told, connection = list[float](), http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/events?path=/")
    answer = connection.getresponse()

    def read() -> None:
        with suppress(OSError, AttributeError, ValueError):
            while line := answer.readline():
                if line.startswith(b"data:"):
                    told.append(time.time())

    threading.Thread(target=read, daemon=True).start()
    yield told
    connection.close()


@contextmanager
def _scraped(server: Served) -> Iterator[None]:
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(SCRAPE_SECONDS):
            assert server.ask("/metrics")[0] == 200

    thread = threading.Thread(target=scrape)
    thread.start()
    yield
    over.set()
    thread.join()


def _delays(lake: Path, told: Sequence[float], begin: float, end: float) -> Iterator[float]:
    """From each commit of bronze, silver and gold until the next time that the page was told; what was read before it may be told first."""
    for layer in ("bronze", "silver", "gold"):
        for log in (lake / layer).glob("*/_delta_log/*.json"):
            at = os.stat(log).st_mtime
            if begin <= at < end and (later := [instant for instant in told if instant > at]):
                yield round(later[0] - at, 3)


if __name__ == "__main__":
    script(main)
