"""The sources of dbt: every table of the lake at one snapshot, and schema `at_snapshot`, which has the same tables in every lake.

    at_snapshot.windows    gold.<group>_aggregates of all groups, with `device_group` and `is_new`
    at_snapshot.readings   silver.readings and silver.late, with `is_late`, `is_retried` and `is_new`
    at_snapshot.metrics, at_snapshot.groups   metrics.yml and groups.yml

`is_new`: the row may have come after the build that this one continues; it is true for every row that did.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

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

SCHEMA = "at_snapshot"
BRONZE, RETRY = "bronze", "retry"
NOTHING = -1
WINDOWS = {"device_group": "string", "is_new": "boolean"}
METRICS = {"metric": "string", "label": "string", "unit": "string", "aggregation": "string", "step_seconds": "int", "slide_seconds": "int"}
GROUPS = {"device_group": "string", "label": "string", "metric": "string", "lateness_seconds": "int", "late": "string"}


def pinned(conf: Conf, snapshot: Snapshot) -> dict[str, View]:
    """Every table of the lake except marts; tables that are not pinned get their newest version, so that all models see the same."""
    tables = views(conf, snapshot).values()
    return {view.name: view if view.version is not None else replace(view, version=version_of(view.location)) for view in tables}


def groups_of(conf: Conf, snapshot: Snapshot) -> list[str]:
    """Groups with a table in the snapshot; a group that is newer than the snapshot has none."""
    return [group for group in conf.groups if f"gold.{group}_aggregates" in snapshot.versions]


def positions(conf: Conf, snapshot: Snapshot) -> dict[str, int]:
    """How far the tables are, by their logs; the next build reads what came after. For each group its newest micro-batch."""
    tables = Lake(conf, generation=numbered(conf.lake, snapshot.generation)).tables

    def newest(name: str, column: str) -> int:
        value = max_in_log(tables[name].location, column, snapshot.versions[name])
        return NOTHING if value is None else int(value)

    groups = {group: newest(f"gold.{group}_aggregates", "gold_batch") for group in groups_of(conf, snapshot)}
    return {BRONZE: snapshot.bronze_batch, RETRY: newest("silver.late", "retry"), **groups}


def create_views(lake: Lake, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None, text: str) -> None:
    """Create views of the tables that `text` can mean, and those of schema `at_snapshot`. `base` None: every row is new."""
    lake.show(view for view in tables.values() if view.is_meant(text))
    lake.spark.sql(f"create database if not exists {SCHEMA}")
    for name, query in queries(lake.conf, tables, snapshot, base).items():
        lake.spark.sql(f"create or replace view {SCHEMA}.{name} as {query}")


def queries(conf: Conf, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None) -> dict[str, str]:
    """Queries of schema `at_snapshot`, by the name of the view."""
    windows = [_windows(group, tables, base) for group in groups_of(conf, snapshot)]
    groups = [vars(group) | {"device_group": group.name, "metric": metric} for group in conf.groups.values() for metric in group.metrics]
    return {
        "windows": " union all ".join(windows) or _constants(_types(AGGREGATES) | WINDOWS, []),
        "readings": _readings(tables, base),
        "metrics": _constants(METRICS, [vars(metric) | {"metric": metric.name} for metric in conf.metrics.values()]),
        "groups": _constants(GROUPS, groups),
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


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in from_arrow_schema(schema)}


def _names(schema: pa.Schema) -> str:
    return ", ".join(f"`{name}`" for name in schema.names)


def _constants(types: Mapping[str, str], rows: Iterable[Mapping[str, object]]) -> str:
    """A query of these columns of constant rows; it may have none."""
    cells = json.dumps([{name: row[name] for name in types} for row in rows])
    schema = ", ".join(f"`{name}`: {kind}" for name, kind in types.items())
    return f"select inline(from_json({quoted(cells)}, {quoted(f'array<struct<{schema}>>')}))"
