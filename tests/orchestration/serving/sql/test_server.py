"""tidemark sql-server: a real process, asked over HTTP, attacked, overloaded, and its workers killed."""

import concurrent.futures
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import requests

from orchestration.location import Location
from orchestration.serving.sql import landlock
from orchestration.serving.sql.answer import Question
from orchestration.serving.sql.client import ServerEngine, address_of
from orchestration.serving.sql.refusal import RefusedError
from orchestration.serving.sql.workers import LOST
from tests.bench.factory import TIDEMARK
from tests.orchestration.serving.sql.attacks import ATTACKS, aimed, attacked, files, tells
from tests.orchestration.serving.sql.bombs import ENDLESS, MEMORY_BOMBS
from tests.waiting import PATIENCE_SECONDS, until

REPOSITORY = Path(__file__).parents[4]
OTHER_TOKEN = "a-token-of-another-user"
HASTY = """
import sys
from pathlib import Path
from orchestration.conf.place import Place
from orchestration.location import Location
from orchestration.serving.sql import server
from orchestration.serving.sql.answer import Limits
if __name__ == "__main__":
    server.LIMITS = Limits(seconds=3, rows=1000, result_bytes=1_000_000)
    server.serve(Place(Location(Path(sys.argv[1])), {"kitchen": "kitchen"}, {}, dict), 0, {"a-token-of-someone": "someone"}, print)
"""
"""A server that gives a query three seconds."""


@dataclass(frozen=True)
class Server:
    process: "subprocess.Popen[bytes]"
    folder: Path
    url: str
    token: str

    def post(self, body: Any, accept: str = "application/json", token: str | None = None, **more: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": accept, **more}
        return requests.post(f"{self.url}/sql", data=json.dumps(body), headers=headers, timeout=PATIENCE_SECONDS)

    def rows(self, query: str) -> Any:
        response = self.post({"query": query})
        assert response.status_code == 200, response.text
        return response.json()["rows"]

    def cancel(self, name: str, token: str | None = None) -> int:
        """The status of the answer."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return requests.delete(f"{self.url}/sql/{name}", headers=headers, timeout=PATIENCE_SECONDS).status_code

    def active(self) -> int:
        """How many questions have come and are not answered."""
        return int(requests.get(f"{self.url}/health", timeout=PATIENCE_SECONDS).json()["active"])

    def workers(self) -> list[int]:
        """Ids of the processes that answer: their parent is the one that makes them, whose parent is the server."""
        makers = [child for child in children(self.process.pid) if children(child)]
        return [worker for maker in makers for worker in children(maker)]


def children(process: int) -> list[int]:
    return [int(child) for file in Path(f"/proc/{process}/task").glob("*/children") for child in file.read_text().split()]


@contextmanager
def served(folder: Path, command: Sequence[str]) -> Iterator[Server]:
    """A server over the lake in a folder."""
    state = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(REPOSITORY)}
    with (folder / "server.log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state["XDG_STATE_HOME"])
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | state, cwd=folder)
        try:
            until(lambda: address_of(Location(folder / "lake")) is not None or process.poll() is not None)
            address = address_of(Location(folder / "lake"))
            assert address is not None, (folder / "server.log").read_text()
            yield Server(process, folder, f"http://127.0.0.1:{address.port}", address.token)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(REPOSITORY / "conf", folder / "conf", ignore=shutil.ignore_patterns("__*"))
    attacked(folder)
    (folder / "users").write_text(f"other:{OTHER_TOKEN}\n")
    (folder / "users").chmod(0o600)
    conf, users = str(folder / "conf"), str(folder / "users")
    with served(folder, [*TIDEMARK, "--conf", conf, "sql-server", "--port", "0", "--users", users]) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that gives a query three seconds."""
    folder = tmp_path_factory.mktemp("hasty")
    attacked(folder)
    (folder / "hasty.py").write_text(HASTY)
    with served(folder, [sys.executable, "hasty.py", str(folder / "lake")]) as running:
        yield running


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_who_asks_for_another_protocol_is_answered_in_this_one(protocol: str, server: Server) -> None:
    answer = server.post({"query": "select 1 as n"}, Connection="Upgrade", Upgrade=protocol)
    assert (answer.status_code, answer.json()["rows"]) == (200, [[1]])


def test_json_csv_and_arrow_hold_the_same_rows(server: Server) -> None:
    query = "select device_id, metric, event_time, value, groups, age(event_time, '2026-01-05') as since from silver.readings order by all"
    answer = server.post({"query": query}).json()
    rows = pd.DataFrame(answer["rows"], columns=[column["name"] for column in answer["columns"]])
    arrow = pa.ipc.open_stream(server.post({"query": query}, "application/vnd.apache.arrow.stream").content).read_all()
    text = pd.read_csv(io.BytesIO(server.post({"query": query}, "text/csv").content))
    assert len(rows) == 8
    assert arrow["value"].to_pylist() == rows["value"].tolist() == text["value"].tolist()
    assert arrow["since"].to_pylist() == rows["since"].tolist() == text["since"].tolist()
    assert arrow["groups"].to_pylist() == rows["groups"].tolist() == [json.loads(cell) for cell in text["groups"]]
    for other in (rows["event_time"], text["event_time"]):
        assert (arrow["event_time"].to_pandas() == pd.to_datetime(other)).all()
    assert duckdb.from_arrow(arrow).aggregate("count(*), sum(value)").fetchall() == [(8, 84.5)]
    assert answer["snapshot"]["snapshot_id"] == 1
    assert server.post({"query": query, "snapshot": 0}).json()["snapshot"]["bronze_batch"] == 0


def test_types_that_arrow_has_not_are_texts_in_every_format(server: Server) -> None:
    query = "select 340282366920938463463374607431768211455::uhugeint a, time '24:00:00' b, '12345678901234567890'::bignum c"
    expected = ["340282366920938463463374607431768211455", "24:00:00", "12345678901234567890"]
    assert server.post({"query": query}).json()["rows"] == [expected]
    rows = pa.ipc.open_stream(server.post({"query": query}, "application/vnd.apache.arrow.stream").content).read_all()
    assert [*rows.to_pylist()[0].values()] == expected
    assert server.post({"query": query}, "text/csv").text.splitlines()[1] == ",".join(f'"{text}"' for text in expected)


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
        ({"query": "select vlaue from silver.readings"}, 400, "LINE 1: select vlaue from silver.readings"),
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


def test_attacks_over_http_change_nothing_and_tell_nothing(hasty: Server) -> None:
    before, through = files(hasty.folder / "lake"), {}
    for attack in ATTACKS:
        query = aimed(attack, hasty.folder)
        response = hasty.post({"query": query})
        if response.status_code != 400 or tells(json.loads(response.text)["error"], query, hasty.folder):
            through[query] = response.text
    assert through == {}
    assert files(hasty.folder / "lake") == before
    assert not (hasty.folder / "out").exists()


def test_queries_without_end_and_without_measure_end_and_others_are_answered_beside_them(hasty: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        bombs = [pool.submit(hasty.post, {"query": query}) for query in (*ENDLESS, *MEMORY_BOMBS)]
        while not all(bomb.done() for bomb in bombs):
            assert hasty.rows("select count(*) from silver.readings") == [[8]]
    answers = [bomb.result() for bomb in bombs]
    assert [answer.text for answer in answers if answer.status_code != 400] == []
    assert all("took longer than 3 s and was cancelled" in answer.text for answer in answers[: len(ENDLESS)])


def test_rows_beyond_the_limit_are_left_out_and_that_is_said(hasty: Server) -> None:
    response = hasty.post({"query": "select range from range(1001)"})
    assert response.json()["is_cut_off"] is True
    assert (response.headers["Tidemark-Is-Cut-Off"], len(response.json()["rows"])) == ("true", 1000)


def test_a_question_is_ended_by_its_name_by_who_asked_it_alone(server: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.post, {"query": ENDLESS[0], "name": "mine"})
        until(lambda: server.active() == 1)
        assert server.cancel("mine", OTHER_TOKEN) == 404
        assert not asked.done()
        assert server.cancel("mine") == 200
        assert (asked.result().status_code, asked.result().json()) == (400, {"error": "the query was cancelled."})
    assert server.rows("select 1 as one") == [[1]]


def test_a_question_that_waits_can_be_ended_too(server: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        running = [pool.submit(server.post, {"query": ENDLESS[0], "name": f"running {n}"}) for n in range(4)]  # as many as one user may
        until(lambda: server.active() == 4)
        waiting = pool.submit(server.post, {"query": "select 1", "name": "waiting"})
        until(lambda: server.active() == 5)
        assert [server.cancel(name) for name in ("waiting", *(f"running {n}" for n in range(4)))] == [200] * 5
        assert all("the query was cancelled" in query.result().text for query in (waiting, *running))


def test_fifty_at_once_are_answered_beside_two_that_are_endless(server: Server) -> None:
    with concurrent.futures.ThreadPoolExecutor(52) as pool:
        endless = [pool.submit(server.post, {"query": ENDLESS[0], "name": f"endless {n}"}) for n in range(2)]
        until(lambda: server.active() == 2)
        asked = [pool.submit(server.rows, f"select count(*) + {n} as n from silver.readings") for n in range(48)]
        # Users take turns, so another one need not wait for the fifty; on a slow machine these take as long as an endless one may.
        first = server.post({"query": "select count(*) from silver.readings"}, token=OTHER_TOKEN).json()["rows"][0][0]
        assert not any(query.done() for query in endless)
        assert [query.result() for query in asked] == [[[first + n]] for n in range(48)]
        for n in range(2):
            server.cancel(f"endless {n}")
        assert all(query.result().status_code >= 400 for query in endless)


@pytest.mark.skipif(not landlock.is_supported(), reason="this kernel has no Landlock")
def test_no_worker_can_write_or_regain_the_right(server: Server) -> None:
    assert server.rows("select 1 as one") == [[1]]
    for worker in server.workers():
        threads = [file.read_text() for file in Path(f"/proc/{worker}/task").glob("*/status")]
        assert any("NoNewPrivs:\t1" in status for status in threads)


def test_a_crash_of_a_worker_ends_its_query_and_no_other(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        crashed = pool.submit(server.post, {"query": ENDLESS[0], "name": "crashed"})
        until(lambda: server.active() == 1)
        assert server.rows("select 1 as one") == [[1]]
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
        assert (crashed.result().status_code, crashed.result().json()) == (
            400,
            {"error": LOST},
        )
    monkeypatch.setenv("XDG_STATE_HOME", str(server.folder / "state"))
    address = address_of(Location(server.folder / "lake"))
    assert address is not None
    answer = ServerEngine(address).ask(Question("select count(*) as n from bronze.events"))
    assert answer.rows.to_pylist() == [{"n": 12}]
    assert answer.snapshot is not None
    assert answer.snapshot.snapshot_id == 1
    with pytest.raises(RefusedError, match=r"there is no table silver\.reading; did you mean silver\.readings\?"):
        ServerEngine(address).ask(Question("from silver.reading"))


def test_a_server_that_ends_takes_its_workers_along(hasty: Server) -> None:
    assert hasty.rows("select 1 as one") == [[1]]
    workers = hasty.workers()
    assert workers
    hasty.process.kill()
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
