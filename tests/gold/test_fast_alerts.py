"""Fast alerts: events in, changes of state out; the same changes, with the same ids, as those of the exact job where time is in order."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bronze.events import ARRIVED, identified
from gold.alerts.fast import FastAlerts, Watched
from gold.alerts.samples import samples
from gold.alerts.spec import Alert, NoData, Signal
from gold.alerts.states import judge
from gold.instants import to_micros
from gold.schema import SAMPLES
from silver.aggregation import Aggregation
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.metric import Metric
from silver.policy import Policy, SilverConfig
from silver.schema import DEVICES
from silver.spec import Origin, PayloadFormat, Time

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
SHAPE = PayloadFormat("json", Origin(field="d"), Time("ts"), metric=Origin(field="m"), value=Origin("v"))
METRICS = {name: Metric(name, Aggregation.AVERAGE, 60, "degC") for name in ("temperature", "pressure")}
CONFIG = SilverConfig({"plant": SHAPE}, Policy(lateness_seconds=60, max_future_seconds=3600, max_payload_bytes=1000), METRICS)
KNOWN: list[dict[str, Any]] = [
    {"device_id": name, "groups": groups, "zone": "hall", "is_known": True, "origin": "conf", "registered_at": NOW - timedelta(days=1)}
    for name, groups in {"oven": ["kitchen"], "press": ["line"]}.items()
]
HOT = Alert("hot", Signal("reading", "temperature"), "value > 280", "value < 260", fast=True)


def alerts(*of: Alert, watched: dict[str, Watched] | None = None) -> FastAlerts:
    return FastAlerts(of, CONFIG, pa.Table.from_pylist(KNOWN, DEVICES), watched or {})


def event(seconds: float, value: Any, device: str = "oven", metric: str = "temperature") -> bytes:
    return json.dumps({"d": device, "m": metric, "v": value, "ts": (NOW + timedelta(seconds=seconds)).isoformat()}).encode()


def of(payloads: Iterable[bytes], now: datetime = NOW) -> pa.Table:
    rows = [{"payload": payload, "source": "plant", "position": "a/1", "received_at": now} for payload in payloads]
    return identified(pa.Table.from_pylist(rows, ARRIVED), now, 0, 0)


def told(changes: Iterable[pa.Table]) -> list[tuple[str, str, str, float]]:
    """Alert, entity, state, and seconds after NOW."""
    rows = [row for table in changes for row in table.to_pylist()]
    return [(row["alert"], row["entity"], row["state"], (row["changed_at"] - NOW).total_seconds()) for row in rows]


def test_an_alert_fires_once_and_ends_where_recover_when_is_true() -> None:
    fast = alerts(HOT)
    assert told(fast.take(of([event(1, 270), event(2, 281), event(3, 290)]))) == [("hot", "oven", "firing", 2)]
    assert told(fast.take(of([event(4, 270)]))) == []
    assert told(fast.take(of([event(5, 259)]))) == [("hot", "oven", "normal", 5)]


def test_an_event_that_comes_twice_or_is_older_changes_nothing() -> None:
    fast = alerts(HOT)
    assert len(told(fast.take(of([event(5, 281), event(5, 281)])))) == 1
    assert told(fast.take(of([event(5, 281), event(4, 200), event(5, 200)]))) == []


def test_an_alert_sees_only_readings_of_its_metric_and_group() -> None:
    of_kitchen = Alert("kitchen", Signal("reading", "temperature", "kitchen"), "value > 280", fast=True)
    fast = alerts(of_kitchen, HOT)
    both = told(fast.take(of([event(1, 300, "press"), event(1, 300, metric="pressure")])))
    assert both == [("hot", "press", "firing", 1)]


def test_what_silver_would_quarantine_tells_nothing() -> None:
    odd = [
        b"no JSON",
        b"\xff\xfe",
        b"",
        b"[" * 5000,
        event(1, "x"),
        event(1, 1e999),
        event(1, 300, "stranger"),
        event(1, 300, metric="noise"),
    ]
    odd += [event(4000, 300), event(-(10**9), 300), b'{"d":"oven","m":"temperature","v":300,"ts":"' + b" " * 2000 + b'"}']
    assert told(alerts(HOT).take(of(odd))) == []


def test_so_many_true_readings_in_a_row_are_asked_for() -> None:
    fast = alerts(Alert("hot", Signal("reading", "temperature"), "value > 280", for_times=2, fast=True))
    states = [told(fast.take(of([event(n, value)]))) for n, value in enumerate((300, 200, 300, 300))]
    assert [[state for _, _, state, _ in some] for some in states] == [["pending"], ["normal"], ["pending"], ["firing"]]


def test_a_device_that_sends_nothing_is_told_of_by_the_clock_and_a_reading_ends_it() -> None:
    fast = alerts(Alert("hot", Signal("reading", "temperature"), "value > 280", no_data=NoData(60, "fire"), fast=True))
    assert told(fast.take(of([event(-5, 20)]))) == []  # on its way for 5 s
    assert told(fast.silences(NOW + timedelta(seconds=60))) == []
    assert told(fast.silences(NOW + timedelta(seconds=61))) == [("hot", "oven", "firing", 55)]
    assert told(fast.silences(NOW + timedelta(seconds=500))) == []
    late = NOW + timedelta(seconds=501)
    assert told(fast.take(of([event(500, 20)], late))) == [("hot", "oven", "normal", 500)]
    assert told(fast.silences(late + timedelta(seconds=61))) == [("hot", "oven", "firing", 560)]


def test_another_process_goes_on_with_what_is_known() -> None:
    alert = Alert("hot", Signal("reading", "temperature"), "value > 280", no_data=NoData(60, "fire"), fast=True)
    fast = alerts(alert)
    assert len(told(fast.take(of([event(1, 300), event(1, 20, "press")])))) == 1
    again = alerts(alert, watched=fast.watched)
    assert told(again.silences(NOW + timedelta(seconds=62))) == [("hot", "press", "firing", 61)]
    assert told(again.take(of([event(2, 310), event(3, 20)]))) == [("hot", "oven", "normal", 3)]


@given(
    st.lists(st.tuples(st.sampled_from(["oven", "press", "nobody"]), st.sampled_from([200, 270, 290, "x"])), min_size=1, max_size=30),
    st.data(),
)
def test_in_order_of_time_the_exact_job_finds_the_same_changes_with_the_same_ids(sent: list[tuple[str, Any]], data: st.DataObject) -> None:
    alert = Alert("hot", Signal("reading", "temperature"), "value > 280", "value < 260", for_times=2, fast=True)
    events = of([event(n, value, device) for n, (device, value) in enumerate(sent)])
    cut = data.draw(st.integers(0, len(sent)))
    fast = alerts(alert)
    changes = [row for part in (events[:cut], events[cut:]) for table in fast.take(part) for row in table.to_pylist()]
    rows = list(judged(events, ReferenceData(pa.Table.from_pylist(KNOWN, DEVICES)), CONFIG))
    with duckdb.connect() as store:
        store.register("readings", pa.concat_tables(rows))
        of_step = "(select *, 0 as step from readings where len(broken_rules) = 0)"
        found, _ = samples(store, alert, of_step, [to_micros(NOW)])
    exact = judge(alert, {}, found.cast(SAMPLES), [to_micros(NOW)]).changes.to_pylist()
    named = ("entity", "state", "changed_at", "alert_id", "value", "summary")
    assert [[row[name] for name in named] for row in changes] == [[row[name] for name in named] for row in exact]
