"""`tidemark alerts watch` beside a collector, and on a broker: who is told of what, also after kills, garbage and repeats."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestration.alerts.delivery import tell
from orchestration.alerts.firing import firing
from orchestration.alerts.notifications import NOTIFICATIONS
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES, Acknowledgement, NotedSilence
from orchestration.alerts.watch import Watch
from orchestration.conf.load import load
from orchestration.errors import ConfError
from orchestration.service.parts import parts_of
from orchestration.storage.delta import rows_of
from tests.broker import Broker
from tests.collectors import Collector, collecting, write_conf
from tests.orchestration.alerts.alert_lake import Recorder, changed, write_changes
from tests.orchestration.connectors.collector.test_web import LINES
from tests.waiting import until
from tests.watching import Told, Watcher, receiver

ALERTS = """
alerts:
  hot: {{reading: temperature, group: kitchen, when: value > 280, recover_when: value < 260, severity: critical, fast: true}}
  silent: {{reading: temperature, when: value > 10000, no_data: {{after_seconds: {seconds}, then: fire}}, fast: true}}
channels:
  shift: {{webhook: {{url: "{url}"}}}}
"""


@pytest.fixture
def told() -> Iterator[Told]:
    with receiver() as told:
        yield told


def conf_of(folder: Path, told: Told, seconds: int = 3600, **sources: str) -> Path:
    conf = write_conf(folder, **(sources or {"plant": "http: {port: 0}"}))
    (conf / "alerts.yml").write_text(ALERTS.format(url=told.url, seconds=seconds))
    return conf


def event(value: float, device: str = "oven") -> bytes:
    return json.dumps({"device": device, "metric": "temperature", "value": value, "ts": datetime.now(UTC).isoformat()}).encode()


def send(collector: Collector, *events: bytes) -> None:
    status, _ = collector.ask(b"\n".join(events), LINES, "plant")
    assert status == 202


def test_a_receiver_is_told_of_what_a_collector_takes_and_of_nothing_that_is_garbage(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, b"no JSON", b"\xff{", b"[" * 2000, event(300, "stranger"), b"{}", event(200))
        fires = event(300)
        send(collector, fires)
        until(lambda: bool(told.messages), lambda: watcher.log)
        send(collector, fires, event(290), event(270))
        send(collector, event(250))
        until(lambda: len(told.messages) > 1, lambda: watcher.log)
        assert watcher.end() == 0
        assert told.states == [("hot", "oven", "firing"), ("hot", "oven", "normal")]
        message = told.messages[0][1]
        assert (message["severity"], message["value"]) == ("critical", 300.0)
        assert message["summary"].startswith("hot: oven is firing: 300 ")
        assert abs(told.messages[0][0] - datetime.fromisoformat(message["told_at"]).timestamp()) < 10
        assert datetime.fromisoformat(message["changed_at"]) == datetime.fromisoformat(json.loads(fires)["ts"])
        assert len({message["alert_ids"][0] for _, message in told.messages}) == 1


def test_what_was_told_is_not_told_again_behind_gold(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(300))
        until(lambda: len(told.messages) == 1, lambda: watcher.log)
        send(collector, event(250))
        until(lambda: len(told.messages) == 2, lambda: watcher.log)
        assert watcher.end() == 0
    made, (_, message) = load(conf), told.messages[0]
    began = datetime.fromisoformat(message["changed_at"])
    of_gold = dict.fromkeys(("changed_at", "since", "known_at"), began)
    fires = changed(0, "firing", alert="hot", alert_id=message["alert_ids"][0]) | of_gold
    new = changed(0, "firing", "fridge", alert="hot") | of_gold
    write_changes(made.lake, 0, fires, new)
    pager = Recorder()
    while tell(made, "shift", pager, datetime.now(UTC)):
        pass
    assert pager.states() == ["firing fridge"]
    rows = rows_of(NOTIFICATIONS.path(made.lake))
    assert sorted((row["state"], row["alert_state"], *row["entities"]) for row in rows) == [
        ("sent", "firing", "fridge"),
        ("sent", "firing", "oven"),
        ("sent", "normal", "oven"),
    ]


def test_what_fires_is_listed_and_acknowledged_at_once_and_its_zone_is_one_message(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    ovens = "devices:\n" + "".join(f"  {name}: {{groups: [kitchen], zone: hall}}\n" for name in ("oven", "stove"))
    (conf / "devices.yml").write_text(ovens)
    (conf / "alerts.yml").write_text((conf / "alerts.yml").read_text().replace("fast: true", "fast: true, group_by: zone"))
    made = load(conf)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(300), event(310, "stove"))
        until(lambda: len(firing(made, datetime.now(UTC))) == 2, lambda: watcher.log)
        row, _ = rows = sorted(firing(made, datetime.now(UTC)), key=lambda row: row["entity"])
        assert [(row["entity"], row["state"], row["is_fast"]) for row in rows] == [("oven", "firing", True), ("stove", "firing", True)]
        until(lambda: all(row["told_at"] for row in firing(made, datetime.now(UTC))), lambda: watcher.log)
        ACKNOWLEDGEMENTS.append(made.lake, [Acknowledgement(row["alert_id"], "kim", datetime.now(UTC), "on my way")])
        assert {row["entity"]: row["seen"] is not None for row in firing(made, datetime.now(UTC))} == {"oven": True, "stove": False}
        send(collector, event(200), event(200, "stove"), event(300, "stove"), event(200, "stove"))
        until(lambda: firing(made, datetime.now(UTC)) == [], lambda: watcher.log)
        assert watcher.end() == 0
    assert [(message["state"], message["entities"]) for _, message in told.messages] == [
        *(("firing", ["oven", "stove"]), ("normal", ["oven", "stove"]), ("over", ["stove"])),
    ]


def test_what_came_while_it_was_killed_is_told_and_repeats_have_the_ids_of_the_first(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(300))
        until(lambda: len(told.messages) == 1, lambda: watcher.log)
        watcher.kill()
        send(collector, event(250))
        send(collector, event(310))
        watcher.start()
        until(lambda: len(set(told.ids)) == 3, lambda: watcher.log)
        first = dict(zip(told.ids, told.states, strict=True))
        assert list(first.values()) == [("hot", "oven", state) for state in ("firing", "normal", "firing")]
        assert len(told.ids) <= 4


def test_a_silence_is_told_by_the_clock_also_across_a_kill(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told, seconds=3)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(20))
        sent = time.time()
        time.sleep(1.5)  # its file is written once a second
        watcher.kill()
        watcher.start()
        until(lambda: bool(told.messages), lambda: watcher.log)
        assert told.states == [("silent", "oven", "firing")]
        assert told.messages[0][0] - sent >= 3
        send(collector, event(20))
        until(lambda: len(told.messages) == 2, lambda: watcher.log)
        assert told.states[1] == ("silent", "oven", "normal")


def test_what_a_receiver_refuses_for_a_while_is_sent_again_also_by_the_next_process(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    told.answers = [503] * 1000
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(300))
        until(lambda: "channel shift is down" in watcher.log, lambda: watcher.log)
        assert watcher.end() == 0
        told.answers.clear()
        watcher.start()
        until(lambda: bool(told.messages), lambda: watcher.log)
        assert told.states == [("hot", "oven", "firing")]


def test_a_silence_of_people_holds_here_too_and_an_end_is_told_to_who_was_told_of_the_begin(tmp_path: Path, told: Told) -> None:
    conf = conf_of(tmp_path, told)
    now = datetime.now(UTC)
    hour = NotedSilence("s", "hot", "o*", now, now + timedelta(hours=1), author="tester", reason="a new oven", noted_at=now)
    with collecting(conf) as collector, Watcher(conf).running() as watcher:
        send(collector, event(300))
        until(lambda: len(told.messages) == 1, lambda: watcher.log)
        watcher.end()
        SILENCES.append(load(conf).lake, [hour])
        watcher.start()
        send(collector, event(200), event(310), event(200))
        until(lambda: len(told.messages) == 2, lambda: watcher.log)
        watcher.end()
        assert told.states == [("hot", "oven", "firing"), ("hot", "oven", "normal")]


def test_messages_of_kafka_are_told_and_it_goes_on_where_it_was_killed(tmp_path: Path, told: Told, running: Broker) -> None:
    running.create("fast-alerts", 2)
    running.send("fast-alerts", [event(300)])  # before it watched for the first time
    conf = conf_of(tmp_path, told, plant=f"kafka: {{servers: '{running.servers}', subscribe: [fast-alerts]}}")
    with Watcher(conf).running() as watcher:
        until(lambda: '"fast-alerts/1"' in (tmp_path / "lake" / "fast_alerts" / "state.json").read_text(), lambda: watcher.log)
        running.send("fast-alerts", [None, b"no JSON", event(300)], partition=1)
        until(lambda: bool(told.messages), lambda: watcher.log)
        watcher.kill()
        running.send("fast-alerts", [event(250)], partition=1)
        watcher.start()
        until(lambda: len(set(told.ids)) == 2, lambda: watcher.log)
        assert sorted(set(told.states)) == [("hot", "oven", "firing"), ("hot", "oven", "normal")]


def test_up_has_a_part_for_it_where_conf_has_fast_alerts_and_a_source_for_them(tmp_path: Path, told: Told) -> None:
    def parts(conf: Path) -> list[str]:
        return [part.name for part in parts_of(load(conf))]

    assert "alerts" in parts(conf_of(tmp_path / "a", told))
    of_files = conf_of(tmp_path / "b", told, plant="path: ./landing")
    assert "alerts" not in parts(of_files)
    with pytest.raises(ConfError, match="no source that is pushed"):
        Watch(load(of_files), print)
