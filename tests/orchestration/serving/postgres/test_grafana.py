"""The dashboard of deploy/ asks what the sql-server answers; Grafana itself is not here, its macros are expanded as its pages say."""

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import yaml

from tests.built import built
from tests.orchestration.serving.postgres.served import REPOSITORY, Served
from tests.test_readme import blocks

pytestmark = pytest.mark.lakes
DEPLOY = REPOSITORY / "orchestration/service/deploy"
DASHBOARD = json.loads((DEPLOY / "lake.dashboard.json").read_text())
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
PANELS = {panel["title"]: panel["targets"][0] for panel in DASHBOARD["panels"]}
QUERIES = [(panel["rawSql"], panel["format"]) for panel in PANELS.values()] + [
    (sql, "time_series") for sql in blocks("orchestration/serving/CONNECT.md", "sql")
]
START, END = "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


def expanded(sql: str) -> str:
    """The query that Grafana sends: an interval of ten minutes, all devices, the metric temperature."""
    for variable, value in {"$__interval": "10m", "${metric:sqlstring}": "'temperature'", "${device:sqlstring}": "'oven','fridge'"}.items():
        sql = sql.replace(variable, value)
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{START}' AND '{END}'", sql)
    sql = re.sub(r"\$__timeGroupAlias\((\w+), 10m\)", r'floor(extract(epoch from \1)/600)*600 AS "time"', sql)
    assert "$" not in sql, sql
    return sql


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[psycopg.Connection[dict[str, Any]]]":
    """A connection to a server over a lake in which an alert fires."""
    folder = tmp_path_factory.mktemp("grafana")
    with Served(folder, built("views") / "conf").running() as server, server.connect(row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@pytest.mark.parametrize(("sql", "form"), QUERIES)
def test_a_query_of_the_dashboard_or_the_page_has_rows_of_the_shape_that_grafana_draws(
    sql: str, form: str, lake: "psycopg.Connection[dict[str, Any]]"
) -> None:
    rows = lake.execute(expanded(sql)).fetchall()
    assert rows
    if form == "time_series":
        assert all([*row] == ["time", "metric", "value"] and row["time"] % 600 == 0 for row in rows), rows


def test_the_variables_list_metrics_and_devices(lake: "psycopg.Connection[dict[str, Any]]") -> None:
    listed = {name: {value for row in lake.execute(expanded(VARIABLES[name]["query"])) for value in row.values()} for name in VARIABLES}
    assert "temperature" in listed["metric"] and {"oven", "fridge"} <= listed["device"]


def test_the_data_source_of_all_panels_is_the_one_that_is_provisioned() -> None:
    (source,) = yaml.safe_load((DEPLOY / "grafana.datasource.yml").read_text())["datasources"]
    assert {(target["datasource"]["type"], target["datasource"]["uid"]) for target in PANELS.values()} == {(source["type"], source["uid"])}
