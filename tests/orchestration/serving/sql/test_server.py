"""tidemark sql-server: a real process, asked over HTTP, attacked, overloaded, and its workers killed."""

import concurrent.futures
import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import requests

from orchestration.location import Location
from orchestration.serving.sql import landlock
from orchestration.serving.sql.answer import Question, RefusedError
from orchestration.serving.sql.client import ServerEngine, address_of
from orchestration.serving.sql.workers import LOST
from tests.bench.factory import TIDEMARK
from tests.orchestration.serving.sql.attacks import ATTACKS, aimed, attacked, files, tells
from tests.orchestration.serving.sql.bombs import ENDLESS, MEMORY_BOMBS
from tests.orchestration.serving.sql.query_server import REPOSITORY, Server, served
from tests.waiting import PATIENCE_SECONDS, until

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
        ({"query": "select 1", "snapshot": 99}, 400, "there is no snapshot 99"),
        ({"query": "select 1", "snapshot": 10**30}, 400, "there is no snapshot 1000"),
        ({"query": "select 1", "at": "1900-01-01"}, 400, "there is no snapshot at 1900-01-01"),
        ({"query": "select 1", "at": "0001-01-01T00:00:00+23:59"}, 400, "there is no snapshot at 0001-01-01"),
        ({"query": "select 1", "at": []}, 400, "at must be an instant such as"),
        ({"query": "select * from marts.hourly", "snapshot": 1}, 400, "snapshot 1 does not have all marts"),
        ({"query": "select 1", "name": "a\nb"}, 400, "printable ASCII"),
        ({"query": "select 1", "name": "\u65e5"}, 400, "printable ASCII"),
        ({"query": "select 1", "name": "\ud800"}, 400, "printable ASCII"),
        ({"query": "select 'x'::int"}, 400, "Could not convert string 'x' to INT32"),
        ({"query": "select 128::tinyint"}, 400, "can't be cast"),
        ({"query": "select date '9999-12-31' + 'x'"}, 400, "LINE 1"),
        ({"query": "select $1"}, 400, "parameter"),
        ({"query": "select nope(1)"}, 400, "nope"),
        ({"query": "select * from summary('x')"}, 400, "summary"),
        ({"query": "select value::nope from silver.readings"}, 400, "nope"),
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


def test_a_query_for_the_end_of_time_is_over_the_newest_snapshot(server: Server) -> None:
    assert server.post({"query": "select 1", "at": "9999-12-31"}).json()["snapshot"]["snapshot_id"] == 1


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"query":' + b"[" * 100_000, b"NaN", b"1" * 5000])
def test_a_body_that_is_no_json_is_a_wrong_request(body: bytes, server: Server) -> None:
    answer = requests.post(f"{server.url}/sql", data=body, headers={"Authorization": f"Bearer {server.token}"}, timeout=PATIENCE_SECONDS)
    assert (answer.status_code, set(answer.json())) == (400, {"error"})


def test_an_answer_that_parquet_does_not_hold_is_a_wrong_request(server: Server) -> None:
    answer = server.post({"query": "select timestamp_s 'infinity'"}, "application/vnd.apache.parquet")
    assert (answer.status_code, "cast the column" in answer.json()["error"]) == (400, True)


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
