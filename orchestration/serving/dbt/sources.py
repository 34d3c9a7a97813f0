"""The sources of dbt: every table of the lake at one snapshot, and schema `at_snapshot`, which has the same tables in every lake.

    at_snapshot.windows    gold.aggregates with `is_new`
    at_snapshot.readings   silver.readings and silver.late, with `is_late`, `is_retried` and `is_new`
    at_snapshot.alerts, at_snapshot.acknowledgements   gold.alerts and ops.acknowledgements; no rows where there are no such tables
    at_snapshot.metrics, at_snapshot.groups   metrics.yml and groups.yml

`is_new`: the row may have come after the build that this one continues; it is true for every row that did.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from gold.schema import AGGREGATES, ALERTS
from gold.windows.aggregates import quoted
from orchestration.alerts.records import ACKNOWLEDGEMENTS
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage.delta import max_in_log, version_of
from orchestration.storage.generations import numbered
from orchestration.storage.marts import Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import Part, View, views
from silver.schema import READINGS

SCHEMA = "at_snapshot"
BRONZE, RETRY = "bronze", "retry"
NOTHING = -1
WINDOWS = "gold.aggregates"
MAY_BE_ABSENT = {"alerts": ("gold.alerts", ALERTS), "acknowledgements": (ACKNOWLEDGEMENTS.table, ACKNOWLEDGEMENTS.schema)}
IS_NEW = {"is_new": "boolean"}
MARKS = {"of": "string", "mark": "bigint"}
METRICS = {"metric": "string", "label": "string", "unit": "string", "aggregation": "string", "step_seconds": "int", "slide_seconds": "int"}
GROUPS = {"device_group": "string", "label": "string", "metric": "string", "lateness_seconds": "int", "late": "string"}


def pinned(conf: Conf, snapshot: Snapshot) -> dict[str, View]:
    """Every table of the lake except marts; tables that are not pinned get their newest version, so that all models see the same."""
    return {view.name: replace(view, parts=tuple(map(_pinned, view.parts))) for view in views(conf, snapshot).values()}


def _pinned(part: Part) -> Part:
    return part if part.version is not None else replace(part, version=version_of(part.location))


def positions(conf: Conf, snapshot: Snapshot) -> dict[str, int]:
    """How far the tables are, by their logs; the next build reads what came after. For each stream of gold its newest micro-batch."""
    lake = LakeStore(conf, numbered(conf.lake, snapshot.generation))
    retry = max_in_log(lake.table_path("silver.late"), "retry", snapshot.versions["silver.late"])
    pinned = {stream: snapshot.versions.get(lake.generation.gold(stream, "aggregates")) for stream in conf.streams}
    reached = {
        f"gold.{stream}": lake.newest_gold_batch(stream, "aggregates", version) for stream, version in pinned.items() if version is not None
    }
    return {BRONZE: snapshot.bronze_batch, RETRY: NOTHING if retry is None else int(retry), **reached}


def create_views(lake: Lake, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None, text: str) -> None:
    """Create views of the tables that `text` can mean, and those of schema `at_snapshot`. `base` None: every row is new."""
    lake.show(view for view in tables.values() if view.is_meant(text))
    lake.spark.sql(f"create database if not exists {SCHEMA}")
    for name, query in queries(lake.conf, tables, snapshot, base).items():
        lake.spark.sql(f"create or replace view {SCHEMA}.{name} as {query}")


def queries(conf: Conf, tables: Mapping[str, View], snapshot: Snapshot, base: Build | None) -> dict[str, str]:
    """Queries of schema `at_snapshot`, by the name of the view."""
    groups = [vars(group) | {"device_group": group.name, "metric": metric} for group in conf.groups.values() for metric in group.metrics]
    return {
        "windows": _windows(conf, tables, base),
        "readings": _readings(tables, base),
        **{
            name: tables[table].spark() if table in tables else _constants(_types(schema), [])
            for name, (table, schema) in MAY_BE_ABSENT.items()
        },
        "metrics": _constants(METRICS, [vars(metric) | {"metric": metric.name} for metric in conf.metrics.values()]),
        "groups": _constants(GROUPS, groups),
    }


def _windows(conf: Conf, tables: Mapping[str, View], base: Build | None) -> str:
    if WINDOWS not in tables:
        return _constants(_types(AGGREGATES) | IS_NEW, [])
    # An amendment carries the newest micro-batch, which the previous build may have read already: so that batch counts as new, too.
    reached = {} if base is None else base.reached
    marks = [{"of": group, "mark": reached.get(f"gold.{stream}", NOTHING)} for group, stream in conf.stream_of.items()]
    names = _names(AGGREGATES)
    return (
        f"select {names}, gold_batch >= mark as is_new from ({tables[WINDOWS].spark()}) as windows"
        f" join ({_constants(MARKS, marks)}) as marks on windows.device_group = marks.of"
    )


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
