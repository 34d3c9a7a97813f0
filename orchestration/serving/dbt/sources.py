"""What dbt's sources are: every table of the lake at one snapshot, and schema `cut`, which looks alike in every lake.

    cut.windows    gold.<group>_aggregates of all groups, with `device_group` and `is_new`
    cut.readings   silver.readings and silver.late, with `is_late`, `is_retried` and `is_new`
    cut.metrics, cut.groups   metrics.yml and groups.yml

`is_new`: the row may have come after the build that this one goes on from; it never is false for one that did.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gold.literal import quoted
from gold.schema import AGGREGATES
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage.generations import numbered
from orchestration.storage.marts import Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import max_in_log
from orchestration.storage.views import View, views
from silver.schema import READINGS

SCHEMA = "cut"
BRONZE, RETRY = "bronze", "retry"
NOTHING = -1


def pinned(conf: Conf, cut: Snapshot) -> dict[str, View]:
    """Every table of the lake but marts; what the snapshot does not pin, in the version of this moment, so that all models see the same."""
    found = views(conf, cut).values()
    return {view.name: view if view.version is not None else replace(view, version=DeltaTable(view.path).version()) for view in found}


def groups_of(conf: Conf, cut: Snapshot) -> list[str]:
    """Those that have a table at the cut; one that conf has named since has none."""
    return [group for group in conf.groups if f"gold.{group}_aggregates" in cut.versions]


def reached(conf: Conf, cut: Snapshot) -> dict[str, int]:
    """How far the tables are, by their logs: the next build asks for what came after. By group its newest micro-batch."""
    declared = Lake(conf, generation=numbered(conf.lake, cut.generation)).tables
    retry = max_in_log(declared["silver.late"], "retry", cut.versions["silver.late"])
    found = {BRONZE: cut.bronze_batch, RETRY: NOTHING if retry is None else int(retry)}
    for group in groups_of(conf, cut):
        batch = max_in_log(declared[f"gold.{group}_aggregates"], "gold_batch", cut.versions[f"gold.{group}_aggregates"])
        found[group] = NOTHING if batch is None else int(batch)
    return found


def show(lake: Lake, tables: Mapping[str, View], cut: Snapshot, since: Build | None, text: str) -> None:
    """Make views of those tables that `text` can mean, and those of `cut`; `since` None: everything is new."""
    lake.show(view for view in tables.values() if view.is_meant(text))
    lake.spark.sql(f"create database if not exists {SCHEMA}")
    for name, query in prepared(lake.conf, tables, cut, since).items():
        lake.spark.sql(f"create or replace view {SCHEMA}.{name} as {query}")


def keep_in_memory(spark: SparkSession) -> None:
    """Windows are asked a dozen times, and are dear to plan; they are found once, when the first model asks."""
    spark.sql(f"cache lazy table {SCHEMA}.windows")


def prepared(conf: Conf, tables: Mapping[str, View], cut: Snapshot, since: Build | None) -> dict[str, str]:
    """Queries by name."""
    metrics, groups = conf.metrics.values(), conf.groups.values()
    return {
        "windows": _union([_windows(group, tables, since) for group in groups_of(conf, cut)]),
        "readings": _readings(tables, since),
        "metrics": _constants(
            "metric string, label string, unit string, aggregation string, step_seconds int, slide_seconds int",
            [(each.name, each.label, each.unit, each.aggregation, each.step_seconds, each.slide_seconds) for each in metrics],
        ),
        "groups": _constants(
            "device_group string, label string, metric string, lateness_seconds int, late string",
            [(each.name, each.label, metric, each.lateness_seconds, each.late) for each in groups for metric in each.metrics],
        ),
    }


def _windows(group: str, tables: Mapping[str, View], since: Build | None) -> str:
    # An amendment carries the newest micro-batch, which may be the one that the build before has seen: so that one counts as new, too.
    is_new = "true" if since is None else f"gold_batch >= {since.reached.get(group, NOTHING)}"
    return f"select {_names(AGGREGATES)}, '{group}' as device_group, {is_new} as is_new from ({tables[f'gold.{group}_aggregates'].spark()})"


def _readings(tables: Mapping[str, View], since: Build | None) -> str:
    is_new, is_new_late = "true", "true"
    if since is not None:
        is_new = f"bronze_batch > {since.reached[BRONZE]}"
        # What a retry re-admits has an old batch.
        is_new_late = f"{is_new} or coalesce(retry, {NOTHING}) > {since.reached[RETRY]}"
    names, late = _names(READINGS), tables["silver.late"].spark()
    return (
        f"select {names}, false as is_late, false as is_retried, {is_new} as is_new from ({tables['silver.readings'].spark()})"
        f" union all select {names}, true as is_late, retry is not null as is_retried, {is_new_late} as is_new from ({late})"
    )


def _names(ddl: str) -> str:
    return ", ".join(f"`{name}`" for name, _ in _columns(ddl))


def _columns(ddl: str) -> list[tuple[str, str]]:
    return re.findall(r"^\s*(\w+) ([\w<>]+) COMMENT", ddl, re.MULTILINE)


def _union(queries: list[str]) -> str:
    """A lake without a group has no row, and the same columns."""
    return " union all ".join(queries) or _no_row([*_columns(AGGREGATES), ("device_group", "string"), ("is_new", "boolean")])


def _constants(ddl: str, rows: Iterable[tuple[object, ...]]) -> str:
    columns = [(name, kind) for name, kind in (column.split() for column in ddl.split(", "))]
    cells = ([f"cast({_literal(cell)} as {kind}) as `{name}`" for cell, (name, kind) in zip(row, columns, strict=True)] for row in rows)
    return " union all ".join(f"select {', '.join(row)}" for row in cells) or _no_row(columns)


def _no_row(columns: Iterable[tuple[str, str]]) -> str:
    return f"select {', '.join(f'cast(null as {kind}) as `{name}`' for name, kind in columns)} where false"


def _literal(cell: object) -> str:
    if cell is None:
        return "null"
    return quoted(cell) if isinstance(cell, str) else repr(cell)
