"""The sources of dbt: every table of the lake at one snapshot, and schema `cut`, which has the same tables in every lake.

    cut.windows    gold.<group>_aggregates of all groups, with `device_group` and `is_new`
    cut.readings   silver.readings and silver.late, with `is_late`, `is_retried` and `is_new`
    cut.metrics, cut.groups   metrics.yml and groups.yml

`is_new`: the row may have come after the build that this one continues; it is true for every row that did.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from gold.literal import quoted
from gold.schema import AGGREGATES
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage.delta import max_in_log, version_of
from orchestration.storage.generations import numbered
from orchestration.storage.marts import Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import View, views
from silver.schema import READINGS

SCHEMA = "cut"
BRONZE, RETRY = "bronze", "retry"
NOTHING = -1


def pinned(conf: Conf, snapshot: Snapshot) -> dict[str, View]:
    """Every table of the lake except marts; tables that are not pinned get their newest version, so that all models see the same."""
    tables = views(conf, snapshot).values()
    return {view.name: view if view.version is not None else replace(view, version=version_of(view.location)) for view in tables}


def groups_of(conf: Conf, snapshot: Snapshot) -> list[str]:
    """Groups with a table in the snapshot; a group that is newer than the snapshot has none."""
    return [group for group in conf.groups if f"gold.{group}_aggregates" in snapshot.versions]


def positions(conf: Conf, snapshot: Snapshot) -> dict[str, int]:
    """How far the tables are, by their logs; the next build reads what came after. For each group its newest micro-batch."""
    declared = Lake(conf, generation=numbered(conf.lake, snapshot.generation)).tables
    retry = max_in_log(declared["silver.late"].location, "retry", snapshot.versions["silver.late"])
    reached = {BRONZE: snapshot.bronze_batch, RETRY: NOTHING if retry is None else int(retry)}
    for group in groups_of(conf, snapshot):
        batch = max_in_log(declared[f"gold.{group}_aggregates"].location, "gold_batch", snapshot.versions[f"gold.{group}_aggregates"])
        reached[group] = NOTHING if batch is None else int(batch)
    return reached


def create_views(lake: Lake, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None, text: str) -> None:
    """Create views of the tables that `text` can mean, and those of schema `cut`. `base` None: every row is new."""
    lake.show(view for view in tables.values() if view.is_meant(text))
    lake.spark.sql(f"create database if not exists {SCHEMA}")
    for name, query in cut_queries(lake.conf, tables, snapshot, base).items():
        lake.spark.sql(f"create or replace view {SCHEMA}.{name} as {query}")


def cache_windows(spark: SparkSession) -> None:
    """Cache cut.windows at its first use: a dozen models read it, and planning it is expensive."""
    spark.sql(f"cache lazy table {SCHEMA}.windows")


def cut_queries(conf: Conf, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None) -> dict[str, str]:
    """Queries of schema `cut`, by the name of the view."""
    metrics, groups = conf.metrics.values(), conf.groups.values()
    return {
        "windows": _union([_windows(group, tables, base) for group in groups_of(conf, snapshot)]),
        "readings": _readings(tables, base),
        "metrics": _constants(
            "metric string, label string, unit string, aggregation string, step_seconds int, slide_seconds int",
            [(metric.name, metric.label, metric.unit, metric.aggregation, metric.step_seconds, metric.slide_seconds) for metric in metrics],
        ),
        "groups": _constants(
            "device_group string, label string, metric string, lateness_seconds int, late string",
            [(group.name, group.label, metric, group.lateness_seconds, group.late) for group in groups for metric in group.metrics],
        ),
    }


def _windows(group: str, tables: Mapping[str, View], base: Build | None) -> str:
    # An amendment carries the newest micro-batch, which the previous build may have read already: so that batch counts as new, too.
    is_new = "true" if base is None else f"gold_batch >= {base.reached.get(group, NOTHING)}"
    return f"select {_names(AGGREGATES)}, '{group}' as device_group, {is_new} as is_new from ({tables[f'gold.{group}_aggregates'].spark()})"


def _readings(tables: Mapping[str, View], base: Build | None) -> str:
    is_new, is_new_late = "true", "true"
    if base is not None:
        is_new = f"bronze_batch > {base.reached[BRONZE]}"
        # A row that a retry re-admits has an old batch.
        is_new_late = f"{is_new} or coalesce(retry, {NOTHING}) > {base.reached[RETRY]}"
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
    """In a lake without a group: no row, with the same columns."""
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
