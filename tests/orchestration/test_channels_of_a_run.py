"""Real runs send messages about alerts: at their end, and while they go on."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from gold.alerts.spec import Alert, NoticePolicy, Signal
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.notifications import ChannelState, state_file
from orchestration.conf.channel_settings import AddressSettings, ChannelSettings
from orchestration.conf.model import Source
from orchestration.conf.sink_settings import FilesSettings, SinkSettings
from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors.channels.channel import Message
from orchestration.connectors.sources.source import SourceDownError
from orchestration.storage.snapshots import find_snapshot
from orchestration.supervisor.pipeline_run import PipelineRun
from tests.broker import impatient
from tests.http_server import receiving
from tests.lakes import SHAPE, conf, event, land, minutes, run, run_until
from tests.rows import at

START = at("2026-01-05T00:00:00")


def left(message_id: str) -> ChannelState:
    """As an earlier run left it that did not reach the channel."""
    message = Message(message_id, "too_hot", "firing", "warning", ("oven",), START, START, "oven is hot", 281.5, ("e1",))
    return ChannelState(waiting=[Waiting(message, (message_id,))])


def test_a_source_that_is_down_keeps_nobody_from_being_told_and_no_sink_from_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Case 57: a broker that is down for a day is no day without alarms."""
    hot = Alert("oven_hot", Signal("reading", "temperature"), "value > 280", recover_when="value < 260")
    with receiving() as receiver:
        sources = {"plant": conf(tmp_path).sources["plant"], "fleet": Source("fleet", SHAPE, KafkaSettings("127.0.0.1:1", ("readings",)))}
        made = replace(
            conf(tmp_path, sources=sources, alerts={"oven_hot": hot}, notice_policies={"oven_hot": NoticePolicy()}),
            channels={"pager": ChannelSettings(webhook=AddressSettings(url=receiver.url))},
            sinks={"export": SinkSettings(table="silver.readings", files=FilesSettings(path=str(tmp_path / "export")))},
        )
        now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
        land(tmp_path, "1.json", [event("oven", "temperature", 299 - 29 * n, time) for n, time in enumerate(minutes(now, 2))])
        with impatient(), pytest.raises(SourceDownError, match="fleet"):
            run(made, spark)
        (message,) = receiver.documents
        rows = ds.dataset(tmp_path / "export", partitioning="hive").to_table().num_rows
    assert (message["entities"], message["state"], message["value"]) == (["oven"], "firing", 299.0)
    changed_at, known_at, told_at = (datetime.fromisoformat(message[name]) for name in ("changed_at", "known_at", "told_at"))
    assert changed_at == now < known_at < told_at < datetime.now(UTC)
    assert rows == 2


def test_an_alert_on_readings_is_told_before_gold_has_them(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hot = Alert("oven_hot", Signal("reading", "temperature"), "value > 280", recover_when="value < 260")
    may_go_on, close_windows = threading.Event(), PipelineRun.close_windows
    with receiving() as receiver:
        made = replace(
            conf(tmp_path, alerts={"oven_hot": hot}, notice_policies={"oven_hot": NoticePolicy()}),
            channels={"pager": ChannelSettings(webhook=AddressSettings(url=receiver.url))},
        )

        def close_later(this: PipelineRun) -> None:
            if may_go_on.is_set() or find_snapshot(made.lake) is None:
                close_windows(this)

        monkeypatch.setattr(PipelineRun, "close_windows", close_later)
        now, seen = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5), list[int]()
        land(tmp_path, "1.json", [event("oven", "temperature", 200, now)])

        def is_told() -> bool:
            snapshot = find_snapshot(made.lake)
            if snapshot is not None and not (tmp_path / "landing" / "2.json").exists():
                land(tmp_path, "2.json", [event("oven", "temperature", 299, now + timedelta(minutes=1))])
            if snapshot is not None and receiver.documents and not seen:
                seen.append(snapshot.bronze_batch)
                may_go_on.set()
                land(tmp_path, "3.json", [event("oven", "temperature", 299, now + timedelta(minutes=2))])
            return snapshot is not None and snapshot.bronze_batch == 2

        run_until(made, spark, is_told)
    assert seen == [0]
    assert [(message["entities"], message["state"]) for message in receiver.documents] == [(["oven"], "firing")]


def test_what_waits_is_sent_at_the_end_of_a_run_and_by_one_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with receiving() as receiver:
        made = replace(conf(tmp_path), channels={"pager": ChannelSettings(webhook=AddressSettings(url=receiver.url))})
        land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
        state_file(made.lake, "pager").write(left("id-1"))
        run(made, spark)
        assert receiver.keys == ["id-1"]
        state_file(made.lake, "pager").write(left("id-2"))
        run_until(made, spark, lambda: receiver.keys == ["id-1", "id-2"])
