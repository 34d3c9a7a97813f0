"""Kafka as a source, with a real broker: a range is read the same twice, and nothing is lost, doubled or passed over in silence."""

import ctypes
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import confluent_kafka
import pytest

from bronze.events import ARRIVED
from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors import kafka_client
from orchestration.connectors.sources import kafka
from orchestration.connectors.sources.kafka import Kafka
from orchestration.connectors.sources.source import Gap, Offset, SourceDownError
from tests.broker import Broker
from tests.waiting import PATIENCE_SECONDS


def source(of: Broker, *topics: str, most: int = 1 << 30, **more: Any) -> Kafka:
    return Kafka("plant", KafkaSettings(of.servers, **({"subscribe": topics} if topics else {}) | more), most)


def rows(of: Kafka, start: Offset, end: Offset) -> list[dict[str, Any]]:
    tables = [table for partition in of.partitions(start, end) for table in of.read(partition)]
    assert all(table.schema == ARRIVED for table in tables)
    return [row for table in tables for row in table.to_pylist()]


def read(of: Kafka, start: Offset, end: Offset) -> list[bytes]:
    return sorted(row["payload"] for row in rows(of, start, end))


def following(offset: Offset, topic: str) -> dict[str, int]:
    found: dict[str, int] = offset["topics"][topic]["next"]
    return found


def test_key_headers_time_and_position_are_kept(running: Broker, topic: str) -> None:
    sent = datetime(2026, 1, 5, 12, 0, 0, 123000, tzinfo=UTC)
    headers = [("trace", b"\x00\xff"), ("trace", b"2"), ("empty", b""), ("none", None)]
    running.send(topic, [b"1"], key=b"\xfe", headers=headers, timestamp=int(sent.timestamp() * 1000))
    running.send(topic, [None], timestamp=2**62)
    of = source(running, topic)
    first, second = rows(of, {}, of.latest_offset({}))
    assert first == {
        "payload": b"1",
        "header": None,
        "source": "plant",
        "position": f"{topic}/0/0",
        "received_at": sent,
        "key": b"\xfe",
        "headers": [{"key": key, "value": value} for key, value in headers],
    }
    assert second == {
        "payload": b"",
        "header": None,
        "source": "plant",
        "position": f"{topic}/0/1",
        "key": None,
        "headers": None,
        "received_at": datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
    }


def test_headers_that_the_client_cannot_read_are_left_out_and_told(running: Broker, topic: str) -> None:
    send_with_header(running, topic, b"\xff")
    running.send(topic, [b"2"], headers=[("ok", b"1")])
    of = source(running, topic)
    found = rows(of, {}, of.latest_offset({}))
    assert [(row["payload"], row["headers"]) for row in found] == [(b"1", None), (b"2", [{"key": "ok", "value": b"1"}])]
    assert [(notice.what, notice.facts["topic"]) for notice in of.notices()] == [("headers are left out", topic)]


def send_with_header(running: Broker, topic: str, name: bytes) -> None:
    """By the C library in the client's wheel, as Python's own client takes no such name."""
    (library,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*")
    kafka_c = ctypes.CDLL(str(library))
    kafka_c.rd_kafka_conf_new.restype = kafka_c.rd_kafka_new.restype = ctypes.c_void_p
    text, settings = ctypes.create_string_buffer(512), ctypes.c_void_p(kafka_c.rd_kafka_conf_new())
    for key, value in (("bootstrap.servers", running.servers), ("log_level", "0")):
        kafka_c.rd_kafka_conf_set(settings, key.encode(), value.encode(), text, 512)
    producer = ctypes.c_void_p(kafka_c.rd_kafka_new(0, settings, text, 512))
    # Kinds of arguments: 1 topic, 3 partition, 4 value, 7 flags (2: copy it), 9 header, 0 the end.
    parts = (1, ctypes.c_char_p(topic.encode()), 3, 0, 7, 2, 4, ctypes.c_char_p(b"1"), ctypes.c_size_t(1))
    assert kafka_c.rd_kafka_producev(producer, *parts, 9, ctypes.c_char_p(name), ctypes.c_char_p(b"1"), ctypes.c_ssize_t(1), 0) == 0
    assert kafka_c.rd_kafka_flush(producer, 10_000) == 0


def test_what_was_not_committed_is_not_read_and_a_range_ends_where_only_a_marker_stands(running: Broker, topic: str) -> None:
    running.transact(topic, [b"1", b"2"], commit=True)
    of = source(running, topic)
    first = of.latest_offset({})
    running.transact(topic, [b"never"], commit=False)
    second = of.latest_offset(first)
    running.send(topic, [b"3"])
    third = of.latest_offset(second)
    assert [following(offset, topic)["0"] for offset in (first, second, third)] == [3, 5, 6]
    assert (read(of, {}, first), read(of, first, second), read(of, second, third)) == ([b"1", b"2"], [], [b"3"])
    anew = source(running, topic)
    assert read(anew, {}, anew.latest_offset({})) == [b"1", b"2", b"3"]


def test_topics_of_a_pattern_and_partitions_are_read_from_their_beginning_once_they_are_there(running: Broker) -> None:
    family = f"f{uuid4().hex[:8]}"
    of = source(running, subscribe_pattern=f"{family}-[0-9]", starting="latest")
    nothing = of.latest_offset({})
    running.create(f"{family}-1")
    running.create(f"{family}-x")
    running.send(f"{family}-1", [b"1"])
    running.send(f"{family}-x", [b"strange"])
    first = of.latest_offset(nothing)
    running.grow(f"{family}-1", 3)
    running.create(f"{family}-2")
    for name, partition in ((f"{family}-1", 2), (f"{family}-2", 0)):
        running.send(name, [b"2"], partition)
    second = of.latest_offset(first)
    assert (read(of, nothing, first), read(of, first, second)) == ([b"1"], [b"2", b"2"])
    assert of.latest_offset(second) == second


def test_a_topic_that_conf_names_and_nobody_has_is_told_once_and_not_made(running: Broker, topic: str) -> None:
    absent = f"{topic}-later"
    of = source(running, topic, absent)
    offset = of.latest_offset({})
    assert [notice.facts["topic"] for notice in of.notices()] == [absent]
    assert of.latest_offset(offset) == offset
    assert of.notices() == []
    assert absent not in running.admin.list_topics(timeout=PATIENCE_SECONDS).topics
    assigned = source(running, assign={topic: (0, 7)})
    assigned.latest_offset({})
    assert [notice.facts["topic"] for notice in assigned.notices()] == [f"{topic}/7"]


def test_the_first_read_begins_where_conf_says(running: Broker, topic: str) -> None:
    for day in (1, 2, 3):
        running.send(topic, [b"%d" % day], timestamp=int(datetime(2026, 1, day, tzinfo=UTC).timestamp() * 1000))
    expected: dict[Any, list[bytes]] = {
        "earliest": [b"1", b"2", b"3"],
        "latest": [],
        datetime(2026, 1, 2, tzinfo=UTC): [b"2", b"3"],
        datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=1): [b"3"],
        datetime(2030, 1, 1, tzinfo=UTC): [],
    }
    for starting, payloads in expected.items():
        of = source(running, topic, starting=starting)
        end = of.latest_offset({})
        assert (read(of, {}, end), following(end, topic)) == (payloads, {"0": 3})
    chosen = source(running, topic, starting="latest", starting_offsets={topic: {"0": 2}})
    assert read(chosen, {}, chosen.latest_offset({})) == [b"3"]
    with pytest.raises(SourceDownError, match=f"offset 4 of {topic}/0, which holds 0 to 3"):
        source(running, topic, starting_offsets={topic: {"0": 4}}).latest_offset({})


def test_partitions_share_a_batch_by_what_waits_in_them(running: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    running.create(name := f"t-{uuid4().hex[:8]}", 3)
    running.send(name, [b"0"] * 30)
    running.send(name, [b"1"] * 60, 1)
    running.send(name, [b"2"], 2)
    monkeypatch.setattr(kafka, "MAX_MESSAGES", 30)
    of, offset, ends, count = source(running, name), dict[str, Any](), [], 0
    while (end := of.latest_offset(offset)) != offset:
        count += len(read(of, offset, end))
        ends.append(following(end, name))
        offset = dict(end)
    assert ends[0] == {"0": 9, "1": 19, "2": 1}
    assert (ends[-1], count) == ({"0": 30, "1": 60, "2": 1}, 91)


def test_a_batch_has_as_many_messages_as_fit(running: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "MAX_UNKNOWN", 10)
    monkeypatch.setattr(kafka_client, "MESSAGES_AT_ONCE", 100)
    payloads = [b"%04d" % n + b"x" * 996 for n in range(1_000)]
    running.send(topic, payloads)
    of, offset, batches = source(running, topic, most=200_000), dict[str, Any](), []
    while (end := of.latest_offset(offset)) != offset:
        batches.append(read(of, offset, end))
        offset = dict(end)
    assert [payload for batch in batches for payload in batch] == payloads
    assert {len(batch) > 150 for batch in batches[:-1]} == {True}
    assert {len(batch) < 200 for batch in batches} == {True}


def test_messages_that_went_unread_are_a_gap(running: Broker, topic: str) -> None:
    running.send(topic, [b"1", b"2", b"3", b"4"])
    of = source(running, topic)
    first = {"topics": {topic: of.latest_offset({})["topics"][topic] | {"next": {"0": 1}}}}
    running.forget(topic, 0, 3)
    second = of.latest_offset(first)
    assert (of.gaps(first, second), read(of, first, second)) == ([Gap(topic, 0, 1, 2)], [b"4"])
    assert of.latest_offset(second) == second
    running.send(topic, [b"5"])
    third = of.latest_offset(second)
    assert (of.gaps(second, third), read(of, second, third)) == ([], [b"5"])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_topic_that_was_made_anew_is_a_gap_also_where_it_is_longer_than_the_old_one(running: Broker, topic: str, count: int) -> None:
    running.send(topic, [b"old", b"old"])
    of = source(running, topic)
    first = of.latest_offset({})
    running.delete(topic)
    assert of.latest_offset(first) == first
    running.create(topic)
    running.send(topic, [b"new"] * count)
    second = of.latest_offset(first)
    assert (of.gaps(first, second), read(of, first, second)) == ([Gap(topic, 0, 2, None)], [b"new"] * count)


def test_partitions_that_a_topic_made_anew_gets_later_have_no_gap(running: Broker, topic: str) -> None:
    running.grow(topic, 2)
    running.send(topic, [b"old", b"old"], 1)
    of = source(running, topic)
    first = of.latest_offset({})
    running.delete(topic)
    running.create(topic)
    second = of.latest_offset(first)
    running.grow(topic, 2)
    running.send(topic, [b"new"], 1)
    third = of.latest_offset(second)
    assert (of.gaps(first, second), of.gaps(second, third), read(of, second, third)) == ([Gap(topic, 0, 0, None)], [], [b"new"])


def test_a_range_that_is_gone_is_no_empty_one(running: Broker, topic: str) -> None:
    running.send(topic, [b"1", b"2"])
    of = source(running, topic)
    end = of.latest_offset({})
    running.forget(topic, 0, 1)
    with pytest.raises(SourceDownError, match="no longer holds what was asked for"):
        read(of, {}, end)
