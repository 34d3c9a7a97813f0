"""One look at the tables: which suite judges which table, at which version, with which values of conf."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltalake import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from expectations.judged import judged
from expectations.suite import Suite
from orchestration.conf.model import Conf
from orchestration.lake import Lake
from orchestration.quality.outcome import Outcome, Result, Run, TableResult
from orchestration.quality.validation import outcomes
from orchestration.tables import Table


@dataclass(frozen=True)
class Pinned:
    """A table at one version, whatever is written while it is checked; None: there is no such table."""

    table: Table
    version: int | None


def check(lake: Lake, suites: Sequence[Suite], run_at: datetime, tell: Callable[[str], None], layer: str | None = None) -> Run:
    """Judge the latest version of every declared table, or those of one layer; `tell` gets the name of each before its turn."""
    pinned = {name: Pinned(table, _latest(table)) for name, table in _judgeable(lake).items()}
    found = []
    for name, table in pinned.items():
        if layer in (None, name.split(".", 1)[0]):
            tell(name)
            found.append(_table_result(lake, table, pinned, [suite for suite in suites if suite.applies_to(name)]))
    return Run(f"{run_at:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}", run_at, lake.conf.pipeline, tuple(found))


def parameters(conf: Conf) -> dict[str, Any]:
    """What a $PARAMETER in a suite may name."""
    policy = conf.policy
    return {
        "lateness_seconds": policy.lateness_seconds,
        "max_future_seconds": policy.max_future_seconds,
        "max_payload_bytes": policy.max_payload_bytes,
        "sources": sorted(conf.sources),
        "metrics": sorted(conf.metrics),
        "groups": sorted(conf.groups),
    }


def _judgeable(lake: Lake) -> dict[str, Table]:
    """Declared tables, without those that stay empty for ever: vectors of groups that declare none."""
    without_vector = {f"gold.{name}_vectors" for name, group in lake.conf.groups.items() if group.vector is None}
    return {name: table for name, table in lake.tables.items() if name not in without_vector}


def _latest(table: Table) -> int | None:
    return DeltaTable(table.path).version() if DeltaTable.is_deltatable(str(table.path)) else None


def _table_result(lake: Lake, pinned: Pinned, others: Mapping[str, Pinned], suites: Sequence[Suite]) -> TableResult:
    # Counted by Spark: the numbers in the log still hold rows that a deletion vector has taken away.
    rows = _read(lake, pinned).count()
    results = []
    for suite in suites:
        read = [_read(lake, table) for table in (pinned, *(others[name] for name in suite.together_with))]
        found = _outcomes(read, suite, parameters(lake.conf))
        results += [Result(suite.name, expectation, outcome) for expectation, outcome in zip(suite.expectations, found, strict=True)]
    return TableResult(pinned.table.name, pinned.version, rows, tuple(results))


def _outcomes(read: Sequence[DataFrame], suite: Suite, values: Mapping[str, Any]) -> list[Outcome]:
    """Also where a column that the suite computes with is not there: then nothing of the suite can be evaluated, which is no pass."""
    try:
        rows = judged(read, suite)
    except AnalysisException as error:
        failure = Outcome(False, f"could not be evaluated: {str(error).splitlines()[0]}")
        return [failure] * len(suite.expectations)
    return outcomes(rows, suite, values)


def _read(lake: Lake, pinned: Pinned) -> DataFrame:
    """A table that is not there is judged as one without rows."""
    if pinned.version is None:
        return lake.spark.createDataFrame([], pinned.table.ddl)
    return lake.spark.read.format("delta").option("versionAsOf", pinned.version).load(str(pinned.table.path))
