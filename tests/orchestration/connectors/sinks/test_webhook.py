"""A real HTTP server gets every row at least once; a repeat has the key of what it repeats, and the same rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration.errors import TidemarkError
from tests.http_server import Receiver, receiving
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, SmallLake, window, windows

CANARY = "canary-0815-secret"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as made:
        monkeypatch.setenv("URL", f"{made.url}/{CANARY}")
        monkeypatch.setenv("TOKEN", CANARY)
        yield made


def values(receiver: Receiver) -> list[list[float]]:
    return [[row["value"] for row in document["rows"]] for document in receiver.documents]


def lake_for(folder: Path, table: str = AGGREGATES, **settings: Any) -> SmallLake:
    return SmallLake(folder, {"alarm": {"table": table, "webhook": {"url": "${env:URL}", "rows_per_request": 3, **settings}}})


def test_rows_come_in_the_order_of_their_key_a_bounded_number_a_request(tmp_path: Path, receiver: Receiver) -> None:
    lake = lake_for(tmp_path, token="${env:TOKEN}")
    lake.write(AGGREGATES, [window(0, number, float(number)) for number in reversed(range(7))]).pin(0)
    assert lake.step()
    assert values(receiver) == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0]]
    headers, document = receiver.requests[0].headers, receiver.documents[0]
    assert (headers["Authorization"], headers["Content-Type"]) == (f"Bearer {CANARY}", "application/json")
    assert {name: document[name] for name in document if name != "rows"} == {
        "sink": "alarm",
        "table": AGGREGATES,
        "snapshot_id": 0,
        "request": 1,
        "is_complete": True,
    }
    assert document["rows"][0]["window_end"] == "2026-01-05T00:10:00Z"
    assert not lake.step()
    lake.write(AGGREGATES, [window(0, 2, 9.0, revision=1)]).pin(1)
    assert lake.step()
    assert values(receiver)[3:] == [[9.0]]
    assert receiver.documents[-1]["is_complete"] is False
    assert len({*receiver.keys}) == 4


def test_a_snapshot_with_nothing_new_makes_no_request(tmp_path: Path, receiver: Receiver) -> None:
    lake = lake_for(tmp_path)
    lake.write(AGGREGATES, [*windows(0, range(2))]).pin(0)
    lake.step()
    lake.pin(1)
    assert lake.step()
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("code", [302, 400, 503])
def test_what_is_not_accepted_is_sent_again_with_the_same_keys_before_what_came_later(
    tmp_path: Path, receiver: Receiver, code: int
) -> None:
    lake = lake_for(tmp_path)
    first = lake.write(AGGREGATES, [window(0, number, float(number)) for number in range(7)]).pin(0)
    receiver.answers = [204, code]
    with pytest.raises(TidemarkError, match=f"the webhook answered {code}"):
        lake.step()
    lake.write(AGGREGATES, [window(1, number, float(number)) for number in range(7, 9)])
    lake.compact(AGGREGATES, first)
    lake.pin(1)
    lake.send_all()
    assert values(receiver) == [*([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] * 2), [6.0], [7.0, 8.0]]
    assert receiver.keys[:2] == receiver.keys[2:4]
    by_key = dict(zip(receiver.keys, values(receiver), strict=True))
    assert sorted(value for values in by_key.values() for value in values) == [*map(float, range(9))]


def test_no_message_and_no_file_holds_any_part_of_the_address(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_for(tmp_path, token="${env:TOKEN}")
    lake.write(AGGREGATES, [*windows(0, range(2))]).pin(0)
    for url in (
        f"http://127.0.0.1:1/{CANARY}",
        f"ftp://{CANARY}",
        f"http://{CANARY}.invalid/x",
        f"http://[{CANARY}",
        f"http://a b/{CANARY}",
    ):
        monkeypatch.setenv("URL", url)
        with pytest.raises(TidemarkError) as raised:
            lake.step()
        assert CANARY not in str(raised.value)
    monkeypatch.setenv("URL", f"{receiver.url}/{CANARY}")
    assert lake.step()
    assert [file for file in tmp_path.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()] == []
    assert CANARY not in caplog.text
