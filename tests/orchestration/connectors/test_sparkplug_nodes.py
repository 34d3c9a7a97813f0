"""Which birth names the metrics of a message of Sparkplug B, and when a node is asked for one: messages in, ids of births out."""

from typing import Any

import pyarrow as pa
import pytest

from bronze.events import ARRIVED
from orchestration.connectors.collector.rebirths import PAUSE_SECONDS, Rebirths
from orchestration.connectors.sources.births import by_own_births, with_births
from orchestration.connectors.sparkplug_nodes import RECENT, Nodes, address_of
from silver.decoders.sparkplug_b import BIRTH, Payload, birth_in
from silver.measurements import measurements
from tests.binary_formats import shapes

DATA, NODE_BIRTH, DEVICE_BIRTH = "DDATA/edge/press", "NBIRTH/edge", "DBIRTH/edge/press"


def message(seq: int | None = None, *metrics: dict[str, Any], **more: Any) -> bytes:
    payload = Payload(seq=seq, **more)
    for metric in metrics:
        payload.metrics.add(**metric)
    content: bytes = payload.SerializeToString()
    return content


def birth(seq: int, *names: str) -> bytes:
    return message(seq, *({"name": name, "alias": alias, "datatype": 3} for alias, name in enumerate(names)))


def node_birth(session: int = 1) -> bytes:
    return message(0, {"name": "bdSeq", "long_value": session})


def data(seq: int | None, alias: int = 0, **more: Any) -> bytes:
    return message(seq, {"alias": alias, "int_value": 2**32 - 12}, **more)


def named(nodes: Nodes, *messages: tuple[str, bytes]) -> list[str | None]:
    """What the first alias of each message is called; `?` where it waits for a birth, None where the message needs none."""
    names = list[str | None]()
    for number, (topic, content) in enumerate(messages):
        address = address_of(f"spBv1.0/plant/{topic.split('/')[0]}/{topic.partition('/')[2]}")
        assert address is not None
        payload = Payload.FromString(content)
        found = nodes.read(address, payload, f"{topic}/s/{number}", 1_000)
        text = nodes.texts[found] if found else None
        names.append(birth_in(text)[payload.metrics[0].alias][0] if text else found and "?")
    return names


def test_data_are_named_by_the_newest_birth_of_their_device() -> None:
    births = [(NODE_BIRTH, node_birth()), (DEVICE_BIRTH, birth(1, "a", "b")), ("DBIRTH/edge/oven", birth(2, "c"))]
    later = [(DATA, data(3, 1)), ("DDATA/edge/oven", data(4)), (DEVICE_BIRTH, birth(5, "b", "a")), (DATA, data(6, 1))]
    assert named(Nodes(is_strict=True), *births, *later) == [None, None, None, "b", "c", None, "a"]


def test_the_number_of_a_sequence_begins_again_behind_255() -> None:
    births = [(NODE_BIRTH, node_birth()), (DEVICE_BIRTH, birth(1, "a"))]
    assert named(Nodes(is_strict=True), *births, *((DATA, data(n % 256)) for n in range(2, 600))) == [None, None, *["a"] * 598]


@pytest.mark.parametrize(("is_strict", "name"), [(True, "?"), (False, "a")])
def test_a_missing_message_may_have_been_a_birth_so_data_wait_unless_conf_forbids_to_ask(is_strict: bool, name: str) -> None:
    nodes = Nodes(is_strict)
    births = [(NODE_BIRTH, node_birth()), (DEVICE_BIRTH, birth(1, "a"))]
    assert named(nodes, *births, (DATA, data(2)), (DATA, data(2)), (DATA, data(5)), (DATA, data(6))) == [None, None, "a", "a", name, name]
    assert named(nodes, (NODE_BIRTH, node_birth()), (DEVICE_BIRTH, birth(1, "a")), (DATA, data(2))) == [None, None, "a"]


def test_data_that_a_broker_sends_again_in_a_new_session_are_read_by_the_birth_of_theirs_and_miss_nothing() -> None:
    nodes, first, second = Nodes(is_strict=True), data(2, timestamp=1_000), data(3, timestamp=2_000)
    births = [(NODE_BIRTH, node_birth(1)), (DEVICE_BIRTH, birth(1, "a", "b"))]
    assert named(nodes, *births, (DATA, first), (DATA, second)) == [None, None, "a", "a"]
    again = Nodes(is_strict=True, nodes=nodes.nodes, texts=nodes.texts, recent=dict(nodes.recent))
    session = [(NODE_BIRTH, node_birth(2)), (DEVICE_BIRTH, birth(1, "b", "a"))]
    assert named(again, (DATA, first), (DATA, second), *session, (DATA, first), (DATA, data(2, timestamp=3_000))) == [
        *("a", "a", None, None, "a", "b")
    ]


def test_no_more_than_the_newest_data_are_kept_to_know_them_again() -> None:
    nodes = Nodes(is_strict=True)
    named(nodes, *((DATA, data(n % 256, timestamp=n)) for n in range(1_500)))
    assert len(nodes.recent) == RECENT


def test_sequence_numbers_of_a_node_whose_own_birth_is_not_subscribed_to_do_not_count() -> None:
    assert named(Nodes(is_strict=True), (DEVICE_BIRTH, birth(3, "a")), (DATA, data(7)), (DATA, data(9))) == [None, "a", "a"]


def test_the_next_birth_answers_what_waits_unless_the_device_has_died_in_between() -> None:
    for death in ([], [("DDEATH/edge/press", message(2, timestamp=5))], [("NDEATH/edge", node_birth())]):
        nodes = Nodes(is_strict=True)
        assert named(nodes, (DATA, data(1)), *death, (DEVICE_BIRTH, birth(3, "a")), (DATA, data(4)))[-1] == "a"
        assert len(nodes.answers) == (0 if death else 1)


def test_a_death_is_known_until_the_next_birth_and_that_of_an_earlier_session_changes_nothing() -> None:
    nodes = Nodes(is_strict=True)
    named(nodes, (NODE_BIRTH, node_birth(7)), (DEVICE_BIRTH, birth(1, "a")), ("NDEATH/edge", node_birth(6)))
    assert nodes.nodes["plant/edge"].down == {}
    named(nodes, ("DDEATH/edge/press", message(2, timestamp=5)))
    assert nodes.nodes["plant/edge"].down == {"press": 5}
    assert named(nodes, (DATA, data(3)), (DEVICE_BIRTH, birth(4, "a")), ("NDEATH/edge", node_birth(7)), (DATA, data(5))) == [
        "?",
        None,
        None,
        "?",
    ]
    assert nodes.nodes["plant/edge"].down == {"": 1_000, "press": 1_000}


def test_metrics_that_have_names_need_no_birth() -> None:
    assert named(Nodes(is_strict=True), (DATA, message(1, {"name": "a", "alias": 1, "int_value": 3}))) == [None]


@pytest.mark.parametrize("topic", ["spBv1.0/plant/NCMD/edge", "spBv1.0/STATE/host", "plant/oven", "spBv1.0/a/DDATA/b/c/d", "spBv1.0", ""])
def test_other_topics_are_of_no_node(topic: str) -> None:
    assert address_of(topic) is None


def test_a_node_is_asked_once_in_a_while_as_long_as_its_birth_is_missing() -> None:
    rebirths, topic = Rebirths(), f"spBv1.0/plant/{DATA}"
    command = "spBv1.0/plant/NCMD/edge"
    assert [rebirths.command(topic, data(1), now) for now in (0, 1, PAUSE_SECONDS - 0.1, PAUSE_SECONDS)] == [command, None, None, command]
    assert rebirths.command(topic, b"\xff", 99) is None
    assert rebirths.command(f"spBv1.0/plant/{DEVICE_BIRTH}", birth(2, "a"), 100) is None
    assert rebirths.command(topic, data(3), 200) is None


def test_a_topic_that_kafka_has_in_its_key_or_a_header_names_the_birth_and_the_payload_stays() -> None:
    topics = [f"spBv1.0/plant/{kind}".encode() for kind in (DEVICE_BIRTH, DATA)]
    for columns in ({"key": topics}, {"headers": [[{"key": "mqtt.topic", "value": topic}] for topic in topics]}):
        payloads = [birth(1, "a"), data(2)]
        rows = [{"payload": payload, "source": "edge", "position": f"plant/0/{n}"} for n, payload in enumerate(payloads)]
        rows = [row | {name: values[n] for name, values in columns.items()} for n, row in enumerate(rows)]
        events = pa.Table.from_pylist(rows, ARRIVED)
        named_events, shape = by_own_births(events, shapes()["sparkplug"])
        assert named_events["payload"].to_pylist() == payloads
        assert BIRTH in [header["key"] for header in named_events["headers"].to_pylist()[1]]
        readings = pa.concat_tables(measurements(named_events, shape, 1_000))
        assert (readings["metric"].to_pylist()[-1], readings["number"].to_pylist()[-1]) == ("a", -12.0)


def test_payloads_that_are_none_of_sparkplug_get_no_birth_and_keep_their_neighbours() -> None:
    position = f"spBv1.0/plant/{DATA}/s/1"
    rows = [{"payload": payload, "source": "edge", "position": position} for payload in (b"\xff", b"", data(1))]
    headers = with_births(pa.Table.from_pylist(rows, ARRIVED), Nodes(is_strict=True))["headers"].to_pylist()
    assert headers[:2] == [None, None]
    assert headers[2][0]["value"].startswith(b"plant/edge/press")
