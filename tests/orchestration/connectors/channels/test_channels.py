"""Each kind of channel over a real server: what arrives, under which id, and what a refusal is."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.channel_settings import AddressSettings, BrokerSettings
from orchestration.connectors import channels
from orchestration.connectors.channels.alertmanager import AlertmanagerChannel
from orchestration.connectors.channels.apprise import AppriseChannel
from orchestration.connectors.channels.channel import Message, RefusedError, as_json, message_id
from orchestration.connectors.channels.kafka import KafkaChannel
from orchestration.connectors.channels.webhook import WebhookChannel
from orchestration.errors import DownError, TidemarkError
from tests.broker import Broker, impatient
from tests.http_server import Receiver, receiving
from tests.orchestration.connectors.sinks.test_kafka import messages
from tests.prometheus import Alertmanager

NOW = datetime.now(UTC).replace(microsecond=0)
CANARY = "canary-2718-secret"
FIRING = Message("id-1", "too_hot", "firing", "warning", ("oven-1",), NOW, NOW + timedelta(seconds=2), "oven-1 is hot", 281.5, ("e1",))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def settings(receiver: Receiver, **more: Any) -> AddressSettings:
    return AddressSettings(url=f"{receiver.url}/{CANARY}", **more)


def test_the_id_of_a_change_is_that_of_its_episode_state_and_instant() -> None:
    one = message_id("e1", "firing", NOW)
    assert one == message_id("e1", "firing", NOW.astimezone(UTC))
    others = [message_id("e2", "firing", NOW), message_id("e1", "normal", NOW), message_id("e1", "firing", NOW + timedelta(microseconds=1))]
    assert len({one, *others}) == 4


def test_requests_share_a_connection_and_a_refusal_does_not_end_it(receiver: Receiver) -> None:
    channel, receiver.answers = WebhookChannel(settings(receiver)), [204, 503]
    for is_taken in (True, False, True):
        with nullcontext() if is_taken else pytest.raises(TidemarkError):
            channel.send([FIRING])
    assert len(receiver.requests) == 3
    assert len({asked.connection for asked in receiver.requests}) == 1


def test_requests_go_by_the_proxy_of_the_environment(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", receiver.url)
    WebhookChannel(AddressSettings(url="http://pager.invalid/it")).send([FIRING])
    assert [asked.path for asked in receiver.requests] == ["http://pager.invalid/it"]


def test_a_webhook_gets_each_message_as_json_under_its_id(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    WebhookChannel(settings(receiver, token="${env:TOKEN}")).send([FIRING, replace(FIRING, message_id="id-2", value=math.nan)])
    assert receiver.documents[1]["value"] is None
    assert receiver.keys == ["id-1", "id-2"]
    assert receiver.requests[0].headers["Authorization"] == f"Bearer {CANARY}"
    assert receiver.documents[0] == {
        "message_id": "id-1",
        "alert": "too_hot",
        "state": "firing",
        "severity": "warning",
        "entities": ["oven-1"],
        "changed_at": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
        "known_at": f"{NOW + timedelta(seconds=2):%Y-%m-%dT%H:%M:%SZ}",
        "summary": "oven-1 is hot",
        "value": 281.5,
        "alert_ids": ["e1"],
        "told_at": None,
        "ended_at": None,
    }


def test_the_page_of_channels_shows_a_message_as_it_is_posted() -> None:
    (shown,) = re.findall(r"```json\n(.*?)\n```", (Path(channels.__file__).parent / "README.md").read_text(), re.DOTALL)
    posted = json.loads(as_json(replace(FIRING, told_at=NOW)))
    assert {key: type(value) for key, value in json.loads(shown).items()} == {key: type(value) for key, value in posted.items()}


@pytest.mark.parametrize(
    ("code", "is_final"), [(302, False), (400, True), (404, True), (408, False), (429, False), (500, False), (503, False)]
)
def test_a_refusal_is_lasting_or_passing_and_names_no_secret(receiver: Receiver, code: int, is_final: bool) -> None:
    for channel in (WebhookChannel(settings(receiver)), AlertmanagerChannel(settings(receiver), {})):
        receiver.answers = [code]
        with pytest.raises(TidemarkError, match=f"answered {code}") as error:
            channel.send([FIRING])
        assert isinstance(error.value, RefusedError) == is_final
        assert CANARY not in str(error.value)


@pytest.mark.parametrize(("header", "least", "most"), [("7", 7, 7), ("in a while", 0, 0), ("999999", 3600, 3600), ("date", 20, 30)])
def test_an_address_says_for_how_long_it_wants_no_request(receiver: Receiver, header: str, least: float, most: float) -> None:
    receiver.answers, receiver.retry_after = (
        [503],
        format_datetime(datetime.now(UTC) + timedelta(seconds=30)) if header == "date" else header,
    )
    with pytest.raises(DownError) as error:
        WebhookChannel(settings(receiver)).send([FIRING])
    assert least <= error.value.retry_after <= most


@pytest.mark.parametrize(("code", "is_final"), [(200, None), (403, True), (500, False)])
def test_apprise_brings_title_and_summary_to_a_real_server(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, code: int, is_final: bool | None
) -> None:
    monkeypatch.setenv("PAGER", f"json://user:{CANARY}@{receiver.url.removeprefix('http://')}/")
    receiver.answers = [code]
    if is_final is None:
        AppriseChannel("${env:PAGER}").send([replace(FIRING, entities=("oven-1", "oven-2"))])
    else:
        with pytest.raises(TidemarkError, match=f"answered {code}") as error:
            AppriseChannel("${env:PAGER}").send([FIRING])
        assert isinstance(error.value, RefusedError) == is_final
        assert CANARY not in str(error.value)
    document = receiver.documents[0]
    assert (document["title"], document["type"]) == ("warning: too_hot is firing", "failure")
    lines = document["message"].splitlines()
    assert lines[:-1] == (["oven-1 is hot", "oven-1, oven-2"] if is_final is None else ["oven-1 is hot"])
    assert lines[-1].endswith("UTC, message id-1")


def test_what_apprise_cannot_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", CANARY)
    with pytest.raises(RefusedError, match=r"\$\{env:PAGER\}, which alerts.yml names, holds no address") as error:
        AppriseChannel("${env:PAGER}").send([FIRING])
    assert CANARY not in str(error.value)


@pytest.mark.usefixtures("patient")
def test_a_topic_gets_each_message_under_alert_and_entity_with_its_id(running: Broker, topic: str) -> None:
    channel = KafkaChannel(BrokerSettings(servers=running.servers, topic=topic))
    channel.send([FIRING, replace(FIRING, message_id="id-2", entities=("oven-1", "oven-2"))])
    came = messages(running, topic)
    assert [(message.key(), message.headers()) for message in came] == [
        (b"too_hot/oven-1", [("message_id", b"id-1")]),
        (b"too_hot", [("message_id", b"id-2")]),
    ]
    assert json.loads(came[1].value() or b"")["entities"] == ["oven-1", "oven-2"]


def test_a_topic_that_is_not_there_is_an_error_that_passes(running: Broker) -> None:
    with impatient(), pytest.raises(TidemarkError, match="topic nowhere is not there") as error:
        KafkaChannel(BrokerSettings(servers=running.servers, topic="nowhere")).send([FIRING])
    assert not isinstance(error.value, RefusedError)


@pytest.mark.alertmanager
def test_alertmanager_has_what_fires_with_its_newest_severity_until_it_is_normal(tmp_path: Path) -> None:
    server = Alertmanager(tmp_path)
    with server.running():
        channel = AlertmanagerChannel(AddressSettings(url=server.url), {"too_hot": ["warning", "critical"]})
        channel.send([replace(FIRING, entities=("oven-1", "oven-2"))])
        found = [(alert["labels"], alert["annotations"]["message_id"]) for alert in server.active()]
        labels = [{"alertname": "too_hot", "severity": "warning", "entity": entity} for entity in ("oven-1", "oven-2")]
        assert sorted(found, key=str) == [(labels[0], "id-1"), (labels[1], "id-1")]
        channel.send([replace(FIRING, severity="critical", changed_at=NOW - timedelta(days=1000))])
        assert {(alert["labels"]["entity"], alert["labels"]["severity"]) for alert in server.active()} == {
            ("oven-1", "critical"),
            ("oven-2", "warning"),
        }
        channel.send([replace(FIRING, severity="critical", state="normal", entities=("oven-1", "oven-2"))])
        assert server.active() == []


@pytest.mark.alertmanager
def test_alertmanager_takes_a_digest_that_has_no_entity_and_what_is_over(tmp_path: Path) -> None:
    server = Alertmanager(tmp_path)
    with server.running():
        AlertmanagerChannel(AddressSettings(url=server.url), {}).send([replace(FIRING, state="digest", changed_at=NOW - timedelta(days=9))])
        (alert,) = server.active()
        assert alert["labels"] == {"alertname": "too_hot", "severity": "warning", "state": "digest"}
        AlertmanagerChannel(AddressSettings(url=server.url), {}).send([replace(FIRING, state="over", ended_at=NOW)])
        assert {"alertname": "too_hot", "severity": "warning", "state": "over", "entity": "oven-1"} in [
            a["labels"] for a in server.active()
        ]
