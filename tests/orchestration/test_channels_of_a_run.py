"""Real runs send messages about alerts: at their end, and while they go on."""

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from orchestration.alerts.notifications import ChannelState, Waiting, state_file
from orchestration.conf.channel_settings import AddressSettings, ChannelSettings
from orchestration.connectors.channels.channel import Message
from tests.http_server import receiving
from tests.lakes import conf, event, land, minutes, run, run_until
from tests.rows import at

START = at("2026-01-05T00:00:00")


def left(message_id: str) -> ChannelState:
    """As an earlier run left it that did not reach the channel."""
    message = Message(message_id, "too_hot", "firing", "warning", ("oven",), START, START, "oven is hot", 281.5, ("e1",))
    return ChannelState(waiting=[Waiting(message, (message_id,))])


def test_what_waits_is_sent_at_the_end_of_a_run_and_by_one_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with receiving() as receiver:
        made = replace(conf(tmp_path), channels={"pager": ChannelSettings(webhook=AddressSettings(url=receiver.url))})
        land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
        state_file(made.lake, "pager").write(left("id-1"))
        run(made, spark)
        assert receiver.keys == ["id-1"]
        state_file(made.lake, "pager").write(left("id-2"))
        run_until(made, spark, lambda: receiver.keys == ["id-1", "id-2"])
