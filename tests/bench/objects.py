"""What claims of a bucket with many objects cost, without the bucket: `make bench NAME=objects`.

Pages of a listing are made up, as a store answers no faster than 1,000 names a request. A fresh process claims all of them, and another one
goes on as a later run does. Memory is that of the process, resident, at the end of a step.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from orchestration.connectors.sources.object_claims import ObjectClaims, ObjectVersion
from orchestration.location import Location
from tests.bench.script import narrow_table, parser_for, script, write_report

A_PAGE, BEGAN_US, A_SECOND_US = 1_000, 1_767_571_200_000_000, 1_000_000
Step = tuple[str, float, int]


def pages(count: int) -> Iterator[Sequence[ObjectVersion]]:
    for first in range(0, count, A_PAGE):
        numbers = range(first, min(first + A_PAGE, count))
        yield [ObjectVersion(f"readings/2026/01/05/{n:012d}.json.gz", f'"{n:032x}"', BEGAN_US + n * A_SECOND_US, 4096) for n in numbers]


def step(name: str, do: Callable[[], object]) -> Step:
    began = time.perf_counter()
    do()
    seconds = time.perf_counter() - began
    return name, seconds, int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def first_run(lake: str, count: int) -> list[Step]:
    claims = ObjectClaims(Location(Path(lake)), "bucket", "utf-8")
    return [
        step("making up a listing", lambda: [*map(len, pages(count))]),
        step("the first listing", lambda: claims.claim(pages(count), -1)),
    ]


def later_run(lake: str, count: int) -> list[Step]:
    claims, last = ObjectClaims(Location(Path(lake)), "bucket", "utf-8"), count - 1
    return [
        step("start of a process", lambda: claims.between(last, most=1)),
        step("a cycle without a listing", lambda: claims.between(last, most=1)),
        step("a listing with nothing new", lambda: claims.claim(pages(count), last)),
        step("a listing with 10 new objects", lambda: claims.claim(pages(count + 10), last)),
    ]


def main() -> int:
    options = parser_for(__doc__, "objects", objects=1_000_000).parse_args()
    with TemporaryDirectory() as lake, ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        steps = [row for run in (first_run, later_run) for row in processes.submit(run, lake, options.objects).result()]
    table = narrow_table(f"{options.objects:,} objects", "s", "MB")
    for name, seconds, megabytes in steps:
        table.add_row(name, f"{seconds:.4f}", str(megabytes))
    Console().print(table)
    write_report(options, {name: {"seconds": seconds, "megabytes": megabytes} for name, seconds, megabytes in steps})
    return 0


if __name__ == "__main__":
    script(main)
