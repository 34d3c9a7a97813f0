"""The report of one run: a single HTML file that loads nothing from other hosts and runs no script."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from expectations.suite import Severity
from orchestration.quality.failed_rows import FailedRow, FailedRows
from orchestration.quality.history import Point, Streak, Trends, fixed, streak
from orchestration.quality.outcome import COUNTED, Result, Run, TableResult, identity, shorten, summary, verdict
from orchestration.rendering import short, visible

LONGEST_PAYLOAD = 1000
BARS = 30


NO_ROWS: FailedRows = {}
NO_TRENDS: Trends = {}


@dataclass(frozen=True)
class Bar:
    """One run in a plot. `height`, 0 to 100, grows with the share of rows that fail; one that failed is never low."""

    word: str
    height: int
    title: str


@dataclass(frozen=True)
class Item:
    """One expectation on the page; `anchor` is its link target."""

    anchor: str
    table: str
    result: Result
    rows: Sequence[FailedRow]
    points: Sequence[Point]

    @property
    def word(self) -> str:
        return verdict(self.result)

    @property
    def streak(self) -> Streak | None:
        """Since when it fails; None where that is not known."""
        return streak(self.points) if self.result.outcome.is_success is False else None

    @property
    def bars(self) -> list[Bar]:
        """The last runs; one bar alone is no trend."""
        return bars(self.points) if len(self.points) > 1 else []

    @property
    def most(self) -> float:
        """The greatest share of rows that failed in one of the last runs, 0 to 100."""
        return most_failing(self.points)


def write_report(run: Run, file: Path, rows: FailedRows = NO_ROWS, trends: Trends = NO_TRENDS) -> None:
    """Write the page; a reader sees the old page or the new one, never half of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.draft")
    draft.write_bytes(rendered(run, rows, trends).encode())
    draft.replace(file)


def rendered(run: Run, rows: FailedRows = NO_ROWS, trends: Trends = NO_TRENDS) -> str:
    """The page as text. Every value is escaped, and shortened. `rows` that fail, and `trends`: by expectation."""
    items = [list(_items(f"t{n}", table, rows, trends)) for n, table in enumerate(run.tables, start=1)]
    order = list(Severity)
    failed = (item for of_table in items for item in of_table if item.result.outcome.is_success is False)
    return _template().render(
        run=run,
        tables=[(f"t{n}", *about) for n, about in enumerate(zip(run.tables, summary(run), items, strict=True), start=1)],
        totals={word: sum(table.counts[word] for table in run.tables) for word in COUNTED},
        wrong=sorted(failed, key=lambda item: order.index(item.result.expectation.severity)),
        fixed=[*fixed(run, trends)],
    )


def _items(anchor: str, table: TableResult, rows: FailedRows, trends: Trends) -> Iterator[Item]:
    for n, result in enumerate(table.results, start=1):
        key = identity(table.table, result)
        failed = rows.get(key) or [FailedRow(sample, None) for sample in result.outcome.samples]
        yield Item(f"{anchor}e{n}", table.table, result, failed, trends.get(key, ()))


def bars(points: Sequence[Point]) -> list[Bar]:
    """The last runs, the oldest first."""
    return [_bar(point, most_failing(points)) for point in points[-BARS:]]


def most_failing(points: Sequence[Point]) -> float:
    """The greatest share of rows that failed in one of the last runs, 0 to 100."""
    return max((point.unexpected_percent or 0 for point in points[-BARS:]), default=0.0)


def _bar(point: Point, most: float) -> Bar:
    share = (point.unexpected_percent or 0) / most if most else 0.0
    rows = "" if point.unexpected_percent is None else f", {percent(point.unexpected_percent)} of rows"
    word, height = {
        None: ("not checked", 10),
        True: ("passed", 20 + round(60 * share)),
        False: ("failed", 45 + round(55 * (share if rows else 1))),
    }[point.is_success]
    return Bar(word.replace(" ", "_"), height, f"{point.run_at:%Y-%m-%d %H:%M} UTC: {word}{rows}")


def failures(run: Run) -> Iterator[str]:
    """A line for each expectation that failed, for a terminal."""
    for table in run.tables:
        for result in table.failed:
            said, observed = shorten(result.expectation.description), shorten(result.outcome.observed)
            yield visible(f"{result.expectation.severity}: {table.table}: {said} Found: {observed}")


def printable(value: Any) -> str:
    """A value as shortened text; characters that cannot be printed become backslash escapes."""
    return visible(shorten(str(value)))


def payload(message: bytes) -> str:
    """A message, or the start of a long one; bytes that are not UTF-8 or cannot be printed become backslash escapes."""
    return visible(short(message, LONGEST_PAYLOAD) or "")


def percent(share: float) -> str:
    """0 to 100; never rounded to 0 or 100."""
    if 0 < share < 0.01:
        return "less than 0.01\N{NO-BREAK SPACE}%"
    if 99.99 < share < 100:
        return "more than 99.99\N{NO-BREAK SPACE}%"
    return f"{share:.2f}".rstrip("0").rstrip(".") + "\N{NO-BREAK SPACE}%"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("orchestration.quality", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(printable=printable, payload=payload, percent=percent)
    return environment.get_template("report.html")
