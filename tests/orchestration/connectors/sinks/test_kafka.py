"""Whoever keeps the newest message of each key has the table of the lake at a snapshot, whatever is killed."""

import io
import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from orchestration.connectors.sinks.all import sinks
from orchestration.connectors.sinks.kafka_messages import avro_schema
from orchestration.connectors.sinks.sink import Batch
from orchestration.errors import TidemarkError
from orchestration.jobs.sinks import newest_table
from orchestration.rendering import plain
from orchestration.storage.snapshot import Snapshot
from tests.broker import Broker, impatient
from tests.orchestration.connectors.sinks.sender import sender
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, KEYS, READINGS, SmallLake, reading, sent, window, windows
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.usefixtures("patient")
KILLS = 10


def lake_for(folder: Path, running: Broker, topic: str, table: str = AGGREGATES, **more: Any) -> SmallLake:
    return SmallLake(folder, {"out": {"table": table, "kafka": {"servers": running.servers, "topic": topic, **more}}})


def messages(
    running: Broker, topic: str, partitions: int = 1, isolation: str = "read_committed", *, is_settled: bool = True
) -> list[Message]:
    """All that there are. `is_settled`: no transaction is open, but for one that has just been committed."""
    if is_settled and isolation == "read_committed":
        running.settle(topic, partitions)
    settings = {"bootstrap.servers": running.servers, "group.id": "test", "log_level": 0, "isolation.level": isolation}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.partition.eof": True, "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    came, ended = [], 0
    while ended < partitions:
        for message in consumer.consume(1000, 0.02):
            ended += message.error() is not None
            came += [message] if message.error() is None else []
    consumer.close()
    return came


def kept(running: Broker, topic: str, partitions: int = 1, *, is_settled: bool = True) -> dict[str, dict[str, Any]]:
    """What a reader has who keeps the newest message of each key."""
    came = messages(running, topic, partitions, is_settled=is_settled)
    newest = {bytes(message.key() or b"").decode(): message.value() for message in came}
    return {key: json.loads(value) for key, value in newest.items() if value is not None}


def expected(lake: SmallLake, table: str, snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    rows = [plain(row) for row in lake.expected(table, snapshot).values()]
    return {json.dumps({name: row[name] for name in KEYS[table]}, separators=(",", ":"), ensure_ascii=False): row for row in rows}


def test_rows_come_once_under_their_key_and_an_amendment_is_a_later_message(tmp_path: Path, running: Broker) -> None:
    running.create("amended", 3)
    lake = lake_for(tmp_path, running, "amended")
    first = lake.write(AGGREGATES, [*windows(0, range(5)), window(0, 2, 7.0, revision=1)]).pin(0)
    assert lake.step() == sent(5)
    assert kept(running, "amended", 3) == expected(lake, AGGREGATES, first)
    assert lake.step() is None
    second = lake.write(AGGREGATES, [window(0, 1, 9.0, revision=1), *windows(1, [5])]).pin(1)
    assert lake.step() == sent(2, is_complete=False)
    assert kept(running, "amended", 3) == expected(lake, AGGREGATES, second)
    came = messages(running, "amended", 3)
    assert len(came) == 7
    facts = [("sink", b"test/out"), ("table", AGGREGATES.encode()), ("snapshot_id", b"1")]
    assert [message.headers()[:3] for message in came].count(facts) == 2  # type: ignore[index]


def test_keys_that_another_generation_has_not_get_a_message_without_a_value(tmp_path: Path, running: Broker, topic: str) -> None:
    running.send(topic, [b"of another"], key=b'{"device_id":"stranger"}')
    lake = lake_for(tmp_path, running, topic)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    built = lake.next_generation()
    second = built.write(AGGREGATES, [*windows(-1, range(2, 4), value=5.0)]).pin(0)
    assert built.step() == sent(2)
    assert [message.value() for message in messages(running, topic)].count(None) == 3
    others = running_out_of(running, topic)
    assert others == expected(built, AGGREGATES, second)
    lake.pin(0)
    lake.step()
    assert running_out_of(running, topic) == expected(lake, AGGREGATES, lake.pin(0))


def running_out_of(running: Broker, topic: str) -> dict[str, dict[str, Any]]:
    """What is kept, but for what another producer has sent."""
    newest = {bytes(of.key() or b""): of.value() for of in messages(running, topic)}
    assert newest.pop(b'{"device_id":"stranger"}') == b"of another"
    return {key.decode(): json.loads(value) for key, value in newest.items() if value is not None}


def test_avro_says_by_its_fingerprint_which_schema_it_has_and_gives_back_each_row(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_for(tmp_path, running, topic, READINGS, format="avro")
    rows = [
        reading(0, 0, device_id='é "x"\n'),
        reading(0, 1, None, groups=None),
        reading(0, 2, groups=[None, ""], attributes={"q": "é", "no": None}),
    ]
    snapshot = lake.write(READINGS, rows).pin(0)
    lake.step()
    pinned = newest_table(lake.conf, "out")
    assert pinned is not None
    schema = fastavro.parse_schema(avro_schema(READINGS, pinned.schema))
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    prefix = b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
    values = [message.value() or b"" for message in messages(running, topic)]
    assert {value[:10] for value in values} == {prefix}
    found = [fastavro.schemaless_reader(io.BytesIO(value[10:]), schema, None) for value in values]
    assert [plain(row) for row in found] == [plain(row) for row in lake.expected(READINGS, snapshot).values()]


def test_a_topic_that_is_not_there_is_asked_for_and_not_made(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_for(tmp_path, running, f"{topic}-absent")
    lake.pin(0)
    with pytest.raises(TidemarkError, match=f"topic {topic}-absent is not there; make it .*--create --topic {topic}-absent"):
        lake.step()
    assert f"{topic}-absent" not in running.admin.list_topics(timeout=PATIENCE_SECONDS).topics


def test_a_topic_that_was_made_anew_gets_all_rows(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_for(tmp_path, running, topic)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    running.delete(topic)
    running.create(topic)
    snapshot = lake.pin(1)
    assert lake.step() == sent(5)
    assert kept(running, topic) == expected(lake, AGGREGATES, snapshot)


def test_without_transactions_a_repeat_comes_again_under_the_same_key(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_for(tmp_path, running, topic, transactional=False)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    (lake.conf.lake / "sinks" / "out.json").local.unlink()  # as a kill before the position was kept
    lake.step()
    assert len(messages(running, topic)) == 10
    snapshot = lake.write(AGGREGATES, [window(0, 1, 9.0, revision=1)]).pin(1)
    lake.step()
    assert kept(running, topic) == expected(lake, AGGREGATES, snapshot)


def test_a_transaction_that_never_ended_is_not_seen_and_the_next_process_ends_it(tmp_path: Path, running: Broker, topic: str) -> None:
    lake = lake_for(tmp_path, running, topic)
    snapshot = lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    left = Producer({"bootstrap.servers": running.servers, "transactional.id": "test/out", "log_level": 0})
    left.init_transactions(PATIENCE_SECONDS)
    left.begin_transaction()
    left.produce(topic, b"half", b"half", headers=[("sink", "test/out")])
    left.flush(PATIENCE_SECONDS)
    assert lake.step() == sent(5)
    assert len(messages(running, topic, isolation="read_uncommitted")) == 6
    assert kept(running, topic) == expected(lake, AGGREGATES, snapshot)


def test_of_two_processes_that_send_at_once_one_gives_way_and_each_row_comes_once(tmp_path: Path, running: Broker, topic: str) -> None:
    lake, chance = lake_for(tmp_path, running, topic), random.Random(1)
    first = sinks(lake.conf)["out"]
    last = lake.grow(0, chance)
    first.last(None)
    assert lake.step() == sent(2000)
    pinned = newest_table(lake.conf, "out")
    assert pinned is not None
    batch = Batch("out", AGGREGATES, "1", None, pinned.position, False, pinned.schema, pinned.key)
    with pytest.raises(TidemarkError, match=f"topic {topic}: another process has begun to send to it."):
        first.write(batch, pinned.rows(None))
    assert len(messages(running, topic)) == 2000
    processes = [sender(lake.conf, "out") for _ in range(2)]
    for process in processes:
        process.communicate()
    assert kept(running, topic) == expected(lake, AGGREGATES, last)


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_broker_and_sender_are_killed_by_turns_and_the_topic_equals_the_table(
    tmp_path: Path, running: Broker, topic: str, kills: int, chance: random.Random
) -> None:
    lake = lake_for(tmp_path, running, topic)
    taken: list[Snapshot] = []
    for kill in range(kills):
        taken.append(lake.grow(len(taken), chance))
        process = sender(lake.conf, "out")
        time.sleep(chance.uniform(0.0, 0.6))
        if kill % 2:
            running.kill()
            taken.append(lake.grow(len(taken), chance))  # the sender may have sent all there was
            with impatient(), pytest.raises(TidemarkError, match=f"it cannot be sent to the brokers {running.servers}: they do not answer"):
                lake.step()
            process.kill()
            running.start()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found = kept(running, topic, is_settled=False)
        assert found in ({}, *(expected(lake, AGGREGATES, snapshot) for snapshot in taken))
    lake.send_all()
    assert kept(running, topic) == expected(lake, AGGREGATES, taken[-1])
    values = [(message.key(), message.value()) for message in messages(running, topic)]
    assert len(values) == len(set(values))  # each revision once


@pytest.mark.slow
@pytest.mark.parametrize("format", ["json", "avro"])
def test_a_million_rows_are_sent_and_the_speed_is_told(tmp_path: Path, running: Broker, topic: str, format: str) -> None:
    lake_for(tmp_path, running, topic, format=format).send_a_million()
    assert len({message.key() for message in messages(running, topic)}) == 1_000_000
