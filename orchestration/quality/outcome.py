"""Results of a quality run: plain data, free of Spark and of Great Expectations."""

import math
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from expectations.suite import Expectation, Severity

LONGEST = 500
SHORTENED = "… ({:,} characters)"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one expectation. `is_success` None: not checked, as there are no rows. False also if it could not be evaluated.

    `unexpected_percent`: of rows in which the column is not null, 0 to 100; None for expectations that are not about single rows.
    `samples`: a few of the rows that fail, as texts by column; times in UTC. `keys`: for each sample the columns that lead to its event,
    with the values of the table; empty where none do.
    """

    is_success: bool | None
    observed: str
    unexpected_percent: float | None = None
    samples: tuple[Mapping[str, str], ...] = ()
    keys: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Result:
    """Grain: one expectation of one suite on one table in one run. `since`: only rows of later versions were evaluated; None: all rows.

    `found_in`: the earlier run that evaluated these rows, where there are no new ones; None: this run did.
    """

    suite: str
    expectation: Expectation
    outcome: Outcome
    since: int | None = None
    found_in: str | None = None


@dataclass(frozen=True)
class TableResult:
    """All that a run found about one table. `version` None: it does not exist. `rows`: of the whole table."""

    table: str
    version: int | None
    table_id: str | None
    rows: int
    results: tuple[Result, ...]

    @property
    def state(self) -> str:
        if self.version is None:
            return "missing"
        return "checked" if self.rows else "empty"

    @property
    def counts(self) -> Counter[str]:
        """How many expectations passed, were not checked, or failed, those by severity."""
        return Counter(verdict(result) for result in self.results)

    @property
    def failed(self) -> list[Result]:
        order = list(Severity)
        return sorted((r for r in self.results if r.outcome.is_success is False), key=lambda r: order.index(r.expectation.severity))


def run_id(run_at: datetime) -> str:
    """A new id for a run that begins then (UTC); ids sort by time."""
    return f"{run_at:%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(3)}"


class Cause(StrEnum):
    """Why a run was made. The next run continues after ASKED.

    SNAPSHOT is about the past. GATE evaluates critical expectations only, and is kept only if one failed.
    """

    ASKED = "asked"
    GATE = "gate"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True)
class Run:
    """One quality run; `run_at` in UTC. `broken`: sentences about suites and tables whose evaluation has thrown: they have no result."""

    run_id: str
    run_at: datetime
    pipeline: str
    cause: Cause
    tables: tuple[TableResult, ...]
    broken: tuple[str, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Whether no critical expectation failed, and nothing broke; False where nothing could be checked."""
        is_checked = any(result.outcome.is_success is not None for table in self.tables for result in table.results)
        return is_checked and not self.broken and not any(table.counts[Severity.CRITICAL] for table in self.tables)


Identity = tuple[str, str, str, str]
"""Table, suite, type and description: the same expectation in all runs, also if its threshold changes."""


def identity(table: str, result: Result) -> Identity:
    """Identity of a result on the table of this name."""
    return table, result.suite, result.expectation.type, result.expectation.description


def verdict(result: Result) -> str:
    """passed, not_checked, or the severity of what failed."""
    if result.outcome.is_success is None:
        return "not_checked"
    return "passed" if result.outcome.is_success else result.expectation.severity.value


COUNTED = ("passed", *(severity.value for severity in Severity), "not_checked")
SUMMARY_COLUMNS = ("table", "version", "rows", "state", *COUNTED)


def summary(run: Run) -> list[dict[str, str | int | None]]:
    """Grain: one table; `critical`, `warning` and `info` count what failed."""
    return [
        {"table": table.table, "version": table.version, "rows": table.rows, "state": table.state}
        | {word: table.counts[word] for word in COUNTED}
        for table in run.tables
    ]


def shorten(text: str) -> str:
    """The text, or the start of a long one with its full length. Shortening twice changes nothing."""
    return text if len(text) <= LONGEST + len(SHORTENED) + 20 else text[:LONGEST] + SHORTENED.format(len(text))


def text(value: Any) -> str:
    """A value for people, shortened; times in UTC."""
    match value:
        case datetime():
            formatted = value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ") + "Z"
        case float() if math.isfinite(value):
            formatted = f"{value:,.10g}"
        case None:
            formatted = "null"
        case bool() | str() | date() | float():
            formatted = str(value)
        case int():
            formatted = f"{value:,}"
        case bytes() | bytearray():
            formatted = bytes(value).decode("utf-8", "backslashreplace")
        case Sequence():
            formatted = f"[{', '.join(map(text, value))}]"
        case _:
            formatted = str(value)
    return shorten(formatted)
