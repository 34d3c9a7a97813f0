"""Apache Superset over a lake: a database, a dataset, all time grains, csv, a chart that Chromium draws, SQL Lab.

python superset_steps.py URL PICTURE.png, in the environment of superset.txt
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

URL, PICTURE = sys.argv[1:]
CONFIG = """
SECRET_KEY = "of a test, for as long as it runs, on this machine only"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = False
"""
GRAINS = [None, *["PT1S", "PT5S", "PT30S", "PT1M", "PT5M", "PT10M", "PT15M", "PT30M", "PT1H", "P1D", "P1W", "P1M", "P3M", "P1Y"]]
MEAN = {"expressionType": "SIMPLE", "column": {"column_name": "value"}, "aggregate": "AVG", "label": "AVG(value)"}

folder = tempfile.mkdtemp()
(Path(folder) / "config.py").write_text(CONFIG.format(folder=folder))
os.environ |= {"SUPERSET_CONFIG_PATH": f"{folder}/config.py", "SUPERSET_HOME": folder}

person = "--username=me --password=me --firstname=A --lastname=Person --email=me@localhost"
for command in ("db upgrade", "init", f"fab create-admin {person}"):
    subprocess.run([f"{sys.prefix}/bin/superset", *command.split()], check=True, capture_output=True)

from playwright.sync_api import sync_playwright  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

with redirect_stdout(sys.stderr):  # it says which configuration it took
    from superset.app import create_app

    app = create_app()
client = app.test_client()


def ask(method: str, path: str, **body: Any) -> Any:
    """Send a request as a signed-in person; a refusal ends the test with what Superset says."""
    response = client.open(f"/api/v1/{path}", method=method, json=body or None, headers=headers)
    assert response.status_code < 300, (path, response.status_code, response.text)
    return response.json if response.is_json else response.text


headers: dict[str, str] = {}
token = ask("POST", "security/login", username="me", password="me", provider="db")["access_token"]
headers["Authorization"] = f"Bearer {token}"
address = {"database_name": "lake", "sqlalchemy_uri": URL.replace("postgresql:", "postgresql+psycopg2:")}
ask("POST", "database/test_connection/", **address)
database = ask("POST", "database/", **address, expose_in_sqllab=True)["id"]
assert {"bronze", "silver", "gold"} <= set(ask("GET", f"database/{database}/schemas/")["result"])
dataset = ask("POST", "dataset/", database=database, schema="gold", table_name="aggregates")["id"]
columns = {column["column_name"]: column for column in ask("GET", f"dataset/{dataset}")["result"]["columns"]}
assert columns["window_start"]["is_dttm"], columns["window_start"]
print("database, dataset")


def query(grain: str | None, form: str = "json") -> Any:
    """Ask for the mean by time and metric, as a chart does."""
    axis = {"expressionType": "SQL", "label": "window_start", "sqlExpression": "window_start", "columnType": "BASE_AXIS"}
    wanted = {
        "columns": [axis | {"timeGrain": grain}, "metric"],
        "metrics": [MEAN, "count"],
        "row_limit": 50_000,
        "filters": [],
        "extras": {},
    }
    return ask("POST", "chart/data", datasource={"id": dataset, "type": "table"}, queries=[wanted], result_format=form, force=True)


counts = {sum(row["count"] for row in query(grain)["result"][0]["data"]) for grain in GRAINS}
assert len(counts) == 1, counts
assert "window_start,metric,AVG(value),COUNT(*)" in (csv := query("P1D", "csv")), csv[:200]
print(f"{len(GRAINS)} time grains, csv")

ran = ask("POST", "sqllab/execute/", database_id=database, schema="gold", runAsync=False, sql="select count(*) as n from aggregates")
assert {row["n"] for row in ran["data"]} == counts, ran
print("SQL Lab")

MEANT = [
    {"expressionType": "SIMPLE", "clause": "WHERE", "subject": "metric", "operator": "==", "comparator": "temperature"},
    {"expressionType": "SIMPLE", "clause": "WHERE", "subject": "device_id", "operator": "LIKE", "comparator": "oven%"},
]
chart = {
    "viz_type": "echarts_timeseries_line", "datasource": f"{dataset}__table", "x_axis": "window_start", "time_grain_sqla": "PT15M",
    "metrics": [MEAN], "groupby": ["device_id"], "adhoc_filters": MEANT, "row_limit": 10_000, "time_range": "No filter",
    "x_axis_title": "start of the window (UTC)", "x_axis_title_margin": 30, "show_legend": True, "legendOrientation": "top",
    "y_axis_title": "degC", "y_axis_title_margin": 30,
}  # fmt: skip
shown = {"viz_type": chart["viz_type"], "params": json.dumps(chart)}
saved = ask("POST", "chart/", slice_name="Temperature of the ovens", datasource_id=dataset, datasource_type="table", **shown)
server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1200, "height": 660})
    page.request.post(f"http://127.0.0.1:{server.port}/login/", form={"username": "me", "password": "me"})
    page.goto(f"http://127.0.0.1:{server.port}/explore/?slice_id={saved['id']}")
    page.wait_for_selector("canvas")
    page.wait_for_timeout(3000)
    page.screenshot(path=PICTURE)
print("chart drawn in Chromium")
os._exit(0)
