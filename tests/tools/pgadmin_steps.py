"""pgAdmin 4 over a lake: the tree down to columns, properties, View Data, the query tool, csv. python pgadmin_steps.py URL"""

import builtins
import os
import secrets
import sys
import tempfile
from contextlib import redirect_stdout
from typing import Any
from urllib.parse import urlsplit

os.environ["HOME"] = tempfile.mkdtemp()
builtins.SERVER_MODE = False  # type: ignore[attr-defined]
sys.path.insert(0, f"{sys.prefix}/lib/python3.{sys.version_info.minor}/site-packages/pgadmin4")

import config  # noqa: E402

config.WTF_CSRF_ENABLED = config.MASTER_PASSWORD_REQUIRED = config.UPGRADE_CHECK_ENABLED = False
with redirect_stdout(sys.stderr):  # it greets
    from pgAdmin4 import app

url = urlsplit(sys.argv[1])
client = app.test_client()
client.get("/")


def ask(method: str, path: str, **body: Any) -> Any:
    """Send what the page sends; a refusal ends the test with what pgAdmin says."""
    answer = client.open(path, method=method, json=body or None)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:2000])
    return answer.json if answer.is_json else answer.text


def nodes(kind: str, *ids: int) -> dict[str, int]:
    """List what the tree shows below a node, by name."""
    below = ask("GET", f"/browser/{kind}/nodes/{'/'.join(map(str, (1, *ids)))}/")["data"]
    return {node["label"]: node["_id"] for node in below}


def rows(transaction: int) -> list[list[Any]]:
    """Fetch the answer as the grid does."""
    while (answer := ask("GET", f"/sqleditor/poll/{transaction}")["data"])["status"] in {"Busy", "NotInitialised"}:
        pass
    assert answer["status"] == "Success", answer
    return list(answer["result"])


place = {"host": url.hostname, "port": url.port, "db": url.path[1:], "username": url.username}
server = ask("POST", "/browser/server/obj/1/", name="lake", **place, connection_params={"sslmode": "prefer"})["node"]["_id"]
ask("POST", f"/browser/server/connect/1/{server}", password=url.password)
database = nodes("database", server)[url.path[1:]]
ask("POST", f"/browser/database/connect/1/{server}/{database}")
schemas = nodes("schema", server, database)
assert {"bronze", "silver", "gold", "marts"} <= set(schemas), schemas
of_gold = (server, database, schemas["gold"])
table = nodes("table", *of_gold)["aggregates"]
node = "/".join(map(str, (1, *of_gold, table)))
columns = nodes("column", *of_gold, table)
assert {"device_id", "window_start", "value"} <= set(columns), columns
for shown in ("obj", "sql", "stats", "dependency", "dependent"):
    ask("GET", f"/browser/table/{shown}/{node}")
for column in columns.values():
    ask("GET", f"/browser/column/obj/{node}/{column}")
print("tree, properties")

for command in (1, 2, 3):  # the first hundred, the last hundred, all
    transaction = secrets.randbelow(9_999_999)
    ask("POST", f"/sqleditor/initialize/viewdata/{transaction}/{command}/table/1/{server}/{database}/{table}")
    ask("GET", f"/sqleditor/view_data/start/{transaction}")
    assert rows(transaction)
print("View Data")

transaction = secrets.randbelow(9_999_999)
ask("POST", f"/sqleditor/initialize/sqleditor/{transaction}/1/{server}/{database}", dbname=place["db"])
ask("POST", f"/sqleditor/query_tool/start/{transaction}", sql="select count(*) from gold.aggregates")
assert int(rows(transaction)[0][0]) > 0
ask("POST", f"/sqleditor/query_tool/start/{transaction}", sql="explain (format json, verbose true) select value from gold.aggregates")
assert rows(transaction)
export = {"query": "select device_id, value from gold.aggregates", "filename": "a.csv", "query_commited": True}
csv = ask("POST", f"/sqleditor/query_tool/download/{transaction}", **export)
assert csv.startswith('"device_id"'), csv[:100]
print("query tool, explain, csv")
