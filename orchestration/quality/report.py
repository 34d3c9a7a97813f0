"""The page about one run: one HTML file with everything inside it, which asks no other host for anything and runs no script."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from orchestration.cli.rows import visible
from orchestration.quality.outcome import COUNTED, Run, summary, verdict

LONGEST = 160


def write_report(run: Run, file: Path) -> None:
    """Write the page; a reader who opens it meanwhile sees the former one or this one, never half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(rendered(run), encoding="utf-8")
    draft.replace(file)


def rendered(run: Run) -> str:
    """The page as text. Every value is escaped, and cut where it is long."""
    rows = summary(run)
    totals = {word: sum(table.counts[word] for table in run.tables) for word in COUNTED}
    return _template().render(run=run, tables=list(zip(run.tables, rows, strict=True)), totals=totals)


def failures(run: Run) -> Iterator[str]:
    """A line for each expectation that failed, for a terminal."""
    for table in run.tables:
        for result in table.failed:
            yield visible(
                f"{result.expectation.severity}: {table.table}: {result.expectation.description} Found: {cut(result.outcome.observed)}"
            )


def cut(text: str) -> str:
    """A text that fits: the end of a long one is given up."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def shown(value: Any) -> str:
    """A value as text that fits and hides nothing: what cannot be printed becomes its backslash escape."""
    return visible(cut(str(value)))


def percent(share: float) -> str:
    """0 to 100 with as many digits as tell it from none and from all."""
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
    environment.filters.update(shown=shown, percent=percent, verdict=verdict)
    return environment.get_template("report.html")
