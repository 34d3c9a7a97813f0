"""The newest window of a chain, as a run reads it batch by batch, against its definition; without Spark."""

import random
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from gold.windows.spec import Group
from orchestration.engine import chains
from orchestration.engine.chains import NewestCarries
from orchestration.engine.lake import Lake
from orchestration.storage.delta import ask
from orchestration.utc import from_micros
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import bare_conf, write

METRIC = Metric("total", Aggregation.COUNTER_INCREASE, 60)
MINUTE = 60_000_000
DAY = 1440
Row = dict[str, Any]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(bare_conf(tmp_path, metrics={"total": METRIC}, groups={"kitchen": Group("kitchen", ("total",), 600, "plant")}))
    write(made, "gold.aggregates")
    return made


def add(lake: Lake, rows: list[Row]) -> list[Row]:
    if rows:
        write(lake, "gold.aggregates", *rows)
    return rows


def window(batch: int, device: str, minute: int, revision: int = 0) -> Row:
    """A window that carries when it ends and how often it was made."""
    times = {"window_start": from_micros((minute - 1) * MINUTE), "window_end": from_micros(minute * MINUTE)}
    own = {"device_group": "kitchen", "device_id": device, "metric": "total", "revision": revision, "gold_batch": batch}
    return own | times | {"carry": [float(minute), float(revision)]}


def read(carries: NewestCarries, batch: int, since: int, devices: list[str]) -> dict[str, list[float]]:
    rows = carries.before(batch, since * MINUTE, {("kitchen", device, "total") for device in devices}).to_pylist()
    carried = {row["device_id"]: row["carry"] for row in rows}
    assert len(carried) == len(rows)
    return carried


@pytest.mark.parametrize("seed", range(3))
def test_each_batch_goes_on_from_the_newest_windows_of_the_batches_before_it(lake: Lake, seed: int) -> None:
    """Some batches are repeated, windows are amended, also for an older batch than the last one, files are compacted, runs begin anew."""
    rng, rows, carries = random.Random(seed), list[Row](), NewestCarries(lake, "plant", lake.conf.streams["plant"])
    for batch in range(15):
        carries = NewestCarries(lake, "plant", lake.conf.streams["plant"]) if rng.random() < 0.2 else carries
        if rows and rng.random() < 0.5:
            row = rng.choice(rows)
            rows += add(lake, [row | {"revision": 9 + batch, "carry": [row["carry"][0], 9 + batch], "gold_batch": rng.randrange(batch)}])
        if rows and rng.random() < 0.2:
            DeltaTable(lake.gold("plant")[0].location.local).optimize.compact()
        devices, since = rng.sample("abcd", rng.randint(0, 3)), (batch - 1) * DAY
        in_order = sorted(rows, key=lambda row: (row["window_end"], row["revision"]))
        newest = {row["device_id"]: row["carry"] for row in in_order}
        wanted = {device: carry for device, carry in newest.items() if device in devices or carry[0] >= since}
        made = [window(batch, device, batch * DAY + rng.randint(1, DAY)) for device in devices]
        assert read(carries, batch, since, devices) == wanted
        rows += add(lake, made)
        assert read(carries, batch, since, devices) == wanted


def test_a_batch_reads_no_more_of_a_long_history_than_what_is_new(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins reads what lies near; only for a device that came back, or a new one, it looks further, and once."""
    carries, days = NewestCarries(lake, "plant", lake.conf.streams["plant"]), 30
    for day in range(days):
        add(lake, [window(day, "a", day * DAY + minute) for minute in range(1, 6)] + [window(day, "old", 7)] * (day == 0))
    rows_read = list[int]()

    def counting(sql: str, tables: dict[str, Any]) -> Any:
        where = sql.partition(" from history where ")[2].partition(") as closed")[0]
        rows_read.append(ask(f"select count(*) as n from history where {where}", tables).read_all()["n"][0].as_py())
        return ask(sql, tables)

    monkeypatch.setattr(chains, "ask", counting)

    def batch(day: int, *devices: str) -> int:
        rows_read.clear()
        read(carries, day, (day - 1) * DAY, [*devices])
        add(lake, [window(day, "a", day * DAY + minute) for minute in range(1, 6)])
        return sum(rows_read)

    assert batch(days, "a") == 5
    assert batch(days + 1, "a") == 5
    assert batch(days + 2, "a", "old") == 5 + 5 * (days - 1) + 1
    assert batch(days + 3, "a", "new") == 5
    assert batch(days + 4, "old", "new") == 5
