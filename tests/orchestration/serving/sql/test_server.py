"""tidemark sql-server: a real process, asked over HTTP, attacked, overloaded and killed."""

import concurrent.futures
import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import requests
from pyspark.sql import SparkSession

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.serving.sql.answer import Question
from orchestration.serving.sql.client import ServerEngine, address_of
from tests.bench.factory import TIDEMARK
from tests.lakes import run
from tests.orchestration.serving.sql.attacks import ATTACKS
from tests.orchestration.serving.sql.test_sql_guard import SECRET, aimed, files
from tests.waiting import PATIENCE_SECONDS, until

REPOSITORY = Path(__file__).parents[4]
ENDLESS = "select count(*) from range(1000000000000)"
OTHER_TOKEN = "a-token-of-another-user"


@dataclass(frozen=True)
class Server:
    process: "subprocess.Popen[bytes]"
    folder: Path
    url: str
    token: str

    def post(self, body: Any, accept: str = "application/json", token: str | None = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": accept}
        return requests.post(f"{self.url}/sql", json=body, headers=headers, timeout=PATIENCE_SECONDS)

    def rows(self, query: str) -> Any:
        response = self.post({"query": query})
        assert response.status_code == 200, response.text
        return response.json()["rows"]

    def active(self) -> int:
        """How many questions have come and are not answered."""
        return int(requests.get(f"{self.url}/health", timeout=PATIENCE_SECONDS).json()["active"])

    def worker(self) -> int:
        """The id of the process that answers."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])


@pytest.fixture(scope="module")
def server(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(REPOSITORY / "conf", folder / "conf", ignore=shutil.ignore_patterns("__*"))
    assert exit_code(["--conf", str(folder / "conf"), "simulate", "--to", str(folder / "landing"), "--events", "5000"]) == 0
    run(load(folder / "conf"), spark)
    (folder / "secret.txt").write_text(SECRET + "\n")
    (folder / "users").write_text(f"other:{OTHER_TOKEN}\n")
    (folder / "users").chmod(0o600)
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    command = [*TIDEMARK, "--conf", str(folder / "conf"), "sql-server", "--port", "0"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([*command, "--users", str(folder / "users")], stdout=log, stderr=log, env=environment)
    lake = load(folder / "conf").lake
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    try:
        until(lambda: address_of(lake) is not None or process.poll() is not None)
        address = address_of(lake)
        assert address is not None, (folder / "server.log").read_text()
        yield Server(process, folder, f"http://127.0.0.1:{address.port}", address.token)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        del os.environ["XDG_STATE_HOME"]


def test_json_csv_and_arrow_hold_the_same_rows(server: Server) -> None:
    query = "select device_id, metric, event_time, value, groups from silver.readings order by bronze_row, part limit 200"
    answer = server.post({"query": query}).json()
    rows = pd.DataFrame(answer["rows"], columns=[column["name"] for column in answer["columns"]])
    arrow = pa.ipc.open_stream(server.post({"query": query}, "application/vnd.apache.arrow.stream").content).read_all()
    text = pd.read_csv(io.BytesIO(server.post({"query": query}, "text/csv").content))
    assert len(rows) == 200
    assert arrow["value"].to_pylist() == rows["value"].tolist() == text["value"].tolist()
    assert arrow["groups"].to_pylist() == rows["groups"].tolist() == [json.loads(cell) for cell in text["groups"]]
    for other in (rows["event_time"], text["event_time"]):
        assert (arrow["event_time"].to_pandas() == pd.to_datetime(other)).all()
    totals = duckdb.from_arrow(arrow).aggregate("count(*), sum(value)").fetchall()
    assert totals == [(200, pytest.approx(sum(rows["value"])))]
    assert answer["snapshot"]["snapshot_id"] == 0


def test_attacks_over_http_change_nothing_and_tell_nothing(server: Server) -> None:
    before, answered = files(server.folder), {}
    for query in ATTACKS:
        response = server.post({"query": aimed(query, server.folder)})
        assert SECRET not in response.text
        if response.status_code != 400:
            answered[query] = response.text
    assert answered == {}
    assert files(server.folder) == before
    assert not (server.folder / "out").exists()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"query": "select 1", "snapshot": "x"}, 400, "snapshot must be an integer"),
        ({"query": "select 1", "at": "soon"}, 400, "at must be an instant such as"),
        ({"query": "select 1", "snapshot": 99}, 500, "there is no snapshot 99"),
        ({"query": 1}, 400, 'must be an object with a text "query"'),
        ([], 400, 'must be an object with a text "query"'),
        ({"query": "select 1", "path": "/etc"}, 400, "unknown fields: path"),
        ({"query": "select 1", "name": "x" * 101}, 400, "name must be a text of at most 100"),
    ],
)
def test_the_error_of_a_wrong_request_says_what_is_wrong(server: Server, body: Any, status: int, message: str) -> None:
    response = server.post(body)
    assert response.status_code == status
    assert message in response.json()["error"]


def test_without_its_token_nothing_is_answered(server: Server) -> None:
    assert server.post({"query": "select 1"}, token="another").status_code == 401
    assert requests.post(f"{server.url}/sql", json={"query": "select 1"}, timeout=PATIENCE_SECONDS).status_code == 401
    assert server.post({"query": "select 1"}, token=OTHER_TOKEN).status_code == 200
    assert all(file.stat().st_mode & 0o077 == 0 for file in (server.folder / "state").rglob("*.json"))


def test_a_question_is_ended_by_its_name_by_who_asked_it_alone(server: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.post, {"query": ENDLESS, "name": "mine"})
        until(lambda: server.active() == 1)
        by_name = f"{server.url}/sql/mine"
        assert requests.delete(by_name, headers={"Authorization": f"Bearer {OTHER_TOKEN}"}, timeout=PATIENCE_SECONDS).status_code == 404
        assert not asked.done()
        mine = {"Authorization": f"Bearer {server.token}"}
        assert requests.delete(by_name, headers=mine, timeout=PATIENCE_SECONDS).status_code == 200
        until(lambda: asked.done() or requests.delete(by_name, headers=mine, timeout=PATIENCE_SECONDS) is None)  # it may have come too soon
        assert asked.result().status_code >= 400


@pytest.mark.slow
def test_fifty_at_once_are_answered_beside_two_that_are_endless(server: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(52) as pool:
        endless = [pool.submit(server.post, {"query": ENDLESS, "name": f"endless {n}"}) for n in range(2)]
        until(lambda: server.active() == 2)
        asked = [pool.submit(server.rows, f"select count(*) + {n} as n from silver.readings") for n in range(48)]
        # Users take turns, so another one need not wait for the fifty; on a slow machine these take as long as an endless one may.
        first = server.post({"query": "select count(*) from silver.readings"}, token=OTHER_TOKEN).json()["rows"][0][0]
        assert not any(query.done() for query in endless)
        assert [query.result() for query in asked] == [[[first + n]] for n in range(48)]
        for n in range(2):
            requests.delete(f"{server.url}/sql/endless {n}", headers={"Authorization": f"Bearer {server.token}"}, timeout=PATIENCE_SECONDS)
        assert all(query.result().status_code >= 400 for query in endless)


def test_the_jvm_cannot_write_and_cannot_regain_the_right(server: Server) -> None:
    jvm = next(
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if (folder / "stat").exists()
        and f" {server.worker()} " in (folder / "stat").read_text()
        and b"java" in (folder / "cmdline").read_bytes()
    )
    assert "NoNewPrivs:\t1" in Path(f"/proc/{jvm}/status").read_text()


def test_a_worker_that_was_killed_is_followed_by_another_at_the_same_address(server: Server) -> None:
    before = server.worker()
    os.kill(before, signal.SIGKILL)
    assert server.rows("select 1 as one") == [[1]]  # waits in the socket until there is one
    assert server.worker() != before
    address = address_of(load(server.folder / "conf").lake)
    assert address is not None
    answer = ServerEngine(address).ask(Question("select count(*) as n from bronze.events"))
    assert answer.rows.to_pylist() == [{"n": 5000}]
    assert answer.snapshot is not None and answer.snapshot.snapshot_id == 0
