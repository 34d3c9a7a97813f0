"""A look of the run at the newest batches of a lake: from rows of its tables to the list of what is wrong, without Spark."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from orchestration.jobs.device_looks import look
from orchestration.jobs.watched_devices import WatchedDevices, watched_devices
from orchestration.storage.commit import append_rows, create
from orchestration.storage.delta import table_of
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_micros
from tests.lakes import bare_conf, rewrite, write
from tests.rows import at

NOON = at("12:00:00")


@pytest.fixture
def lake(tmp_path: Path) -> LakeStore:
    made = LakeStore(bare_conf(tmp_path))
    create(made.table_path(LEDGER), LEDGER_SCHEMA)
    return made


def row(batch: int, device: str, behind: timedelta = timedelta(), **more: Any) -> dict[str, Any]:
    """One that was ingested in the minute of its batch."""
    came = NOON + timedelta(minutes=batch)
    times = {"ingested_at": came, "event_time": came - behind}
    return {
        "device_id": device,
        "metric": "pressure",
        "value": float(batch),
        "source": "plant",
        **times,
        "bronze_batch": batch,
        "bronze_row": 0,
        **more,
    }


def pass_batch(lake: LakeStore, batch: int, **counts: int) -> WatchedDevices:
    """The ledger passes a batch of source plant, and the run looks."""
    counted = dict.fromkeys(COUNTED, 0) | {"source": "plant", "bronze_batch": batch} | counts
    append_rows(lake.table_path(LEDGER), pa.Table.from_pylist([counted], LEDGER_SCHEMA), lake.app_id(LEDGER_FLOW, LEDGER), batch)
    look(lake)
    return watched(lake)


def watched(lake: LakeStore) -> WatchedDevices:
    state = watched_devices(lake.conf.lake).read()
    assert state is not None
    return state


def test_what_a_batch_brought_counts_once_however_often_it_is_looked_at(lake: LakeStore) -> None:
    for batch in range(3):
        write(lake, "silver.readings", row(batch, "oven"), row(batch, "fridge"))
        pass_batch(lake, batch, readings=2)
        look(lake)
    state = watched(lake)
    assert (state.bronze_batch, from_micros(state.at_us)) == (2, NOON + timedelta(minutes=2))
    assert {name: (device.arrivals.count, device.arrivals.usual_us) for name, device in state.devices.items()} == {
        "oven": (3, 60_000_000),
        "fridge": (3, 60_000_000),
    }
    assert (state.devices["oven"].metrics["pressure"].value, state.devices["oven"].metrics["pressure"].readings) == (2.0, 3)


def test_a_device_is_heard_wherever_silver_puts_what_it_sends_but_quarantine_makes_none(lake: LakeStore) -> None:
    write(lake, "silver.readings", row(0, "oven"))
    pass_batch(lake, 0, readings=1)
    write(lake, "silver.late", row(1, "oven", timedelta(hours=6)))
    pass_batch(lake, 1, late=1)
    broken = {"broken_rules": ["device_is_known"], "payload": b"{}"}
    write(lake, "silver.quarantine", row(2, "oven", -timedelta(hours=3)) | broken | {"broken_rules": ["event_time_is_not_in_the_future"]})
    write(lake, "silver.quarantine", *(row(2, "PMP-11") | broken | {"part": part} for part in range(4)))
    state = pass_batch(lake, 2, quarantined=5)
    assert [*state.devices] == ["oven"]
    assert (from_micros(state.devices["oven"].arrivals.last_us), state.devices["oven"].ahead_us) == (
        NOON + timedelta(minutes=2),
        3 * 3_600_000_000,
    )
    assert (state.sources["plant"].late, state.sources["plant"].behind_us) == (1, 6 * 3_600_000_000 - 60_000_000)
    assert (state.undeclared["PMP-11"].rows, state.undeclared["PMP-11"].source) == (4, "plant")
    future = row(3, "oven", -timedelta(hours=3)) | {"broken_rules": ["event_time_is_not_in_the_future"], "payload": b"{}"}
    write(lake, "silver.quarantine", future)
    write(lake, "silver.readings", row(3, "oven"))
    assert pass_batch(lake, 3, readings=1, quarantined=1).devices["oven"].ahead_us == 0  # one odd row says nothing of the clock


def test_equal_readings_in_a_row_are_counted_exactly_also_where_looks_cut_them(lake: LakeStore) -> None:
    cuts = [[1.0, 1.0, 2.0], [2.0, 2.0], [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0, 4.0], [4.0]]
    for batch, values in enumerate(cuts):
        seconds = [timedelta(seconds=len(values) - number) for number in range(len(values))]
        write(lake, "silver.readings", *(row(batch, "oven", behind, value=value) for behind, value in zip(seconds, values, strict=True)))
        metric = pass_batch(lake, batch, readings=len(values)).devices["oven"].metrics["pressure"]
    assert (metric.value, metric.equal, from_micros(metric.equal_since_us)) == (4.0, 2, NOON + timedelta(minutes=2, seconds=-1))
    assert (metric.longest, metric.readings, metric.changes) == (5, 14, 5)  # the first reading differs from none


def test_after_a_retry_only_what_is_still_in_quarantine_counts(lake: LakeStore) -> None:
    write(lake, "silver.quarantine", *(row(0, "PMP-11") | {"broken_rules": ["device_is_known"], "part": part} for part in range(4)))
    write(lake, "silver.readings", row(0, "oven"))
    assert pass_batch(lake, 0, quarantined=4).undeclared["PMP-11"].rows == 4
    rewrite(lake, "silver.quarantine", table_of(lake.table_path("silver.quarantine")).slice(0, 0))
    write(lake, "silver.late", row(0, "PMP-11", cause="retried", retry=0))
    look(lake)
    assert watched(lake).undeclared == {}


def test_of_a_backlog_only_the_newest_batches_are_looked_at(lake: LakeStore) -> None:
    for batch in (0, 60):
        write(lake, "silver.readings", row(batch, f"dev-{batch}"))
    assert [*pass_batch(lake, 60, readings=2).devices] == ["dev-60"]
