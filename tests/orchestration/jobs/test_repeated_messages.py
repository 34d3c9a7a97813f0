"""Repeats are known from one batch of bronze to the next: over restarts, and after a commit that failed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bronze.events import ARRIVED
from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.jobs.repeated_messages import RepeatedMessages
from orchestration.storage.tables import LakeStore
from silver.measurements import REPEAT
from silver.spec import Origin
from tests.lakes import SHAPE, conf, table
from tests.taking import opened, take


def lake_of(folder: Path) -> LakeStore:
    shape, landing = replace(SHAPE, id=Origin("n")), LandingFolder(folder / "landing", settle_seconds=0)
    landing.path.mkdir(exist_ok=True)
    return opened(conf(folder, sources={"plant": Source("plant", shape, landing)}))


def message(n: int, second: int) -> dict[str, Any]:
    return {"device": "oven", "metric": "temperature", "value": 1, "n": n, "ts": f"2026-01-01T00:00:{second:02d}Z"}


def put(folder: Path, name: str, *messages: dict[str, Any]) -> None:
    (folder / "landing" / name).write_text("".join(json.dumps(row) + "\n" for row in messages), encoding="utf-8")


def shifts(lake: LakeStore) -> list[list[tuple[str, bytes]]]:
    rows = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"]).headers
    return [[(header["key"], header["value"]) for header in headers] if headers is not None else [] for headers in rows]


def test_a_repeat_of_what_came_before_a_restart_has_a_header(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(tmp_path, "a.json", message(1, 1), message(2, 2), message(1, 9))
    take(lake)
    put(tmp_path, "b.json", message(2, 4), message(3, 5))
    take(lake)  # with no memory of the first batch
    put(tmp_path, "c.json", message(2, 1))
    take(lake)
    of_first, of_second, of_third = ((REPEAT, text) for text in (b"8000000", b"2000000", b"-1000000"))
    assert shifts(lake) == [[], [], [of_first], [of_second], [], [of_third]]


def test_messages_of_a_commit_that_failed_do_not_repeat_themselves(tmp_path: Path) -> None:
    repeats = RepeatedMessages(lake_of(tmp_path))
    rows = [{"payload": json.dumps(message(1, second)).encode(), "source": "plant"} for second in (1, 2)]
    first, second = (pa.Table.from_pylist([row], ARRIVED) for row in rows)
    repeats.begin(0)
    assert repeats.marked("plant", second) is second
    repeats.begin(0)
    assert repeats.marked("plant", first) is first
    repeats.end(0)
    repeats.begin(1)
    assert repeats.marked("plant", second) is not second
