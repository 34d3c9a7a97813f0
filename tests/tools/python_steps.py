"""pgcli, Harlequin, ibis, dbt-postgres, connectorx and psqlODBC over a lake: python python_steps.py TOOL URL, by python.txt"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

URL = sys.argv[2]
COUNT = "select count(*) as n from gold.aggregates"
PARTS = urlsplit(URL)
PLACE: dict[str, Any] = {"host": PARTS.hostname, "port": PARTS.port, "user": PARTS.username, "password": PARTS.password}


def command(*words: str, **more: Any) -> str:
    """Run a program of this environment."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [f"{sys.prefix}/bin/{words[0]}", *words[1:]], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pgcli() -> None:
    """Give lines to it as a person types them."""
    typed = [r"\d", r"\dt gold.*", r"\d gold.aggregates", r"\dn+", r"\du", r"\l+", r"\df", r"\dv", r"\dx", COUNT, r"\q"]
    shown = command("pgcli", URL, "--less-chatty", input="\n".join(f"{line};" if line == COUNT else line for line in typed))
    assert "error" not in shown.lower() and "aggregates" in shown and "SELECT 1" in shown, shown
    print("start, ten commands, a query")


def harlequin() -> None:
    """Use its adapter class, as the screen does."""
    from harlequin_postgres import HarlequinPostgresAdapter

    connection = HarlequinPostgresAdapter((URL,)).connect()
    labels = [schema.label for database in connection.get_catalog().items for schema in database.fetch_children()]
    assert {"bronze", "silver", "gold"} <= set(labels), labels
    assert len(connection.get_completions()) > 500
    rows = connection.execute("select device_id, window_start, value from gold.aggregates")
    assert rows is not None and len(rows.set_limit(1000).fetchall() or ()) == 1000
    print("catalog, completions, a query")


def ibis() -> None:
    """Build expressions over a table of the server."""
    import ibis as framework

    lake = framework.postgres.connect(**PLACE, database=PARTS.path[1:], schema="gold")
    assert "aggregates" in lake.list_tables(database="gold")
    table = lake.table("aggregates", database="gold")
    hourly = table.group_by(hour=table.window_start.truncate("h")).agg(mean=table.value.mean(), spread=table.value.std(), n=table.count())
    total = table.count().execute()
    assert hourly.to_pyarrow()["n"].to_numpy().sum() == total
    assert sum(len(batch) for batch in table.to_pyarrow_batches()) == total
    assert len(table.join(table.distinct().limit(5), ["device_id", "metric", "window_start"]).execute()) >= 5
    print("tables, aggregates, a join, batches of all rows")


def frames() -> None:
    """Read into data frames."""
    from polars import Datetime, read_database_uri

    frame = read_database_uri("select count, window_start, value from gold.aggregates", URL)
    assert frame["window_start"].dtype == Datetime("us", "UTC"), frame.schema
    split = read_database_uri("select count, value from gold.aggregates", URL, partition_on="count", partition_num=4)
    assert split.height == frame.height == read_database_uri(COUNT, URL).item()
    print("all rows, in four partitions too")


def odbc() -> None:
    """Ask the driver that Excel uses, in three ways of fetching."""
    import pyodbc

    for extra in ("", "UseDeclareFetch=1;Fetch=500", "UseServerSidePrepare=0"):
        address = f"Server={PARTS.hostname};Port={PARTS.port};Database={PARTS.path[1:]};Uid={PARTS.username};Pwd={PARTS.password}"
        connection = pyodbc.connect(f"Driver=PostgreSQL Unicode;{address};{extra}", autocommit=not extra)
        cursor = connection.cursor()
        assert "aggregates" in {row.table_name for row in cursor.tables(schema="gold")}
        assert "window_start" in {row.column_name for row in cursor.columns(table="aggregates", schema="gold")}
        (total,) = cursor.execute(COUNT).fetchone()
        assert len(cursor.execute("select device_id, window_start, value from gold.aggregates").fetchall()) == total
        assert cursor.execute(f"{COUNT} where value > ? and device_id <> ?", 0.5, "nobody").fetchone()[0] <= total
        connection.close()
    print("tables, columns, all rows, parameters; by cursor too")


def dbt() -> None:
    """Test and show tables of the lake; a model would write."""
    folder = Path(tempfile.mkdtemp())
    output = PLACE | {"type": "postgres", "dbname": PARTS.path[1:], "schema": "gold", "threads": 2}
    (folder / "profiles.yml").write_text(json.dumps({"lake": {"target": "lake", "outputs": {"lake": output}}}))
    (folder / "dbt_project.yml").write_text(json.dumps({"name": "lake", "version": "1.0.0", "profile": "lake"}))
    (folder / "models").mkdir()
    tests = [{"name": "device_id", "data_tests": ["not_null"]}, {"name": "revision", "data_tests": ["not_null"]}]
    sources = [{"name": "gold", "tables": [{"name": "aggregates", "columns": tests}]}]
    (folder / "models" / "sources.yml").write_text(json.dumps({"version": 2, "sources": sources}))
    environment = os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    command("dbt", "debug", cwd=folder, env=environment)
    assert "PASS=2" in command("dbt", "test", cwd=folder, env=environment)
    shown = command(
        "dbt", "show", "--inline", "select * from {{ source('gold', 'aggregates') }}", "--limit", "3", cwd=folder, env=environment
    )
    assert "device_id" in shown, shown
    print("debug, tests of sources, show")


{"pgcli": pgcli, "Harlequin": harlequin, "ibis": ibis, "connectorx": frames, "psqlODBC": odbc, "dbt-postgres": dbt}[sys.argv[1]]()
