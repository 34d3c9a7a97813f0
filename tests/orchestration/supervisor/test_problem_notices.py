"""Channels with `problems: true` hear of each problem once, of a worse severity again, and of its end."""

import threading
from datetime import timedelta
from pathlib import Path

from gold.alerts.messages import Change
from gold.alerts.states import FIRING, NORMAL
from orchestration.alerts.notifications import NOTIFICATIONS
from orchestration.alerts.stages import EntityState
from orchestration.conf.channel_settings import AddressSettings, ChannelSettings
from orchestration.conf.load import load
from orchestration.connectors.outages import begin_outage, current_outage, end_outage
from orchestration.engine.progress import Progress
from orchestration.service.parts import parts_of
from orchestration.supervisor.problem import Problem, Severity
from orchestration.supervisor.problem_notices import ALERTS, ProblemSender, changes_of
from tests.collectors import write_conf
from tests.http_server import receiving
from tests.lakes import bare_conf
from tests.rows import at

NOW = at("12:00:00")
DOWN = Problem(Severity.CRITICAL, "source plant", "source plant is down: it is away", at("11:59:00"), "/runs")
SILENT = Problem(Severity.WARNING, "device PMP-07", "Device 'PMP-07' is silent.", at("11:58:00"), "/devices?device=PMP-07")
SETTING = Problem(Severity.NOTICE, "conf plant.unit", "plant.unit was C, and is K", None, "/runs", "tidemark replay")


def told(listed: list[Problem], standings: dict[str, EntityState], minutes: int = 0) -> list[Change]:
    """What changes at that time, and `standings` as they are when it was told."""
    changes = [*changes_of(listed, standings, NOW + timedelta(minutes=minutes))]
    for change in changes:
        standings[f"{change.alert}/{change.entity}"] = EntityState(change)
    return changes


def test_a_problem_is_told_when_it_begins_and_when_it_ends_and_not_between() -> None:
    standings = dict[str, EntityState]()
    begun = told([DOWN, SILENT, SETTING], standings)
    assert {(change.alert, change.entity, change.state, change.changed_at) for change in begun} == {
        ("problem.runs", "source plant", FIRING, at("11:59:00")),
        ("problem.devices", "device PMP-07", FIRING, at("11:58:00")),
    }
    assert told([DOWN, SILENT], standings, 1) == []
    (ended,) = told([DOWN], standings, 2)
    assert (ended.entity, ended.state, ended.summary) == ("device PMP-07", NORMAL, "It is over: Device 'PMP-07' is silent.")
    (again,) = told([DOWN, SILENT], standings, 3)
    assert again.alert_id not in {change.alert_id for change in begun}


def test_two_problems_of_one_subject_are_two_and_a_worse_one_is_told_again_as_the_same_episode() -> None:
    standings = dict[str, EntityState]()
    late = Problem(Severity.WARNING, "source plant", "All 12 readings of source plant are late.")
    (first, second) = told([DOWN, late], standings)
    assert {first.alert, second.alert} == {"problem.runs", "problem.overview"} <= {*ALERTS}
    disk = Problem(Severity.WARNING, "lake disk", "The disk has 1.0 GiB left.", NOW, "/runs", "tidemark maintain")
    (change,) = told([DOWN, late, disk], standings)
    worse = Problem(Severity.CRITICAL, "lake disk", "The disk has 0.0 GiB left.", NOW, "/runs", "tidemark maintain")
    (again,) = told([DOWN, late, worse], standings)
    assert (again.severity, again.alert_id == change.alert_id) == ("critical", True)
    assert again.summary == "The disk has 0.0 GiB left. Fix: tidemark maintain"


def test_a_real_address_hears_of_an_outage_and_its_end_though_nothing_writes_the_lake(tmp_path: Path) -> None:
    with receiving() as receiver:
        channels = {
            "pager": ChannelSettings(webhook=AddressSettings(url=receiver.url), tells_problems=True),
            "other": ChannelSettings(webhook=AddressSettings(url="http://127.0.0.1:1/x")),
        }
        conf = bare_conf(tmp_path, channels=channels)
        begin_outage(conf.lake, "channel", "other", "it is away", NOW)
        begin_outage(conf.lake, "channel", "pager", "of itself nobody hears", NOW)
        for _ in range(2):
            ProblemSender(conf, Progress([]), threading.Event()).run_to_end()
        end_outage(conf.lake, "channel", "other")
        ProblemSender(conf, Progress([]), threading.Event()).run_to_end()
    bodies = [(body["alert"], body["state"], body["severity"], body["summary"].partition(":")[0]) for body in receiver.documents]
    assert bodies == [
        ("problem.runs", "firing", "warning", "Nothing writes the lake now"),
        ("problem.alerts", "firing", "critical", "channel other is down"),
        ("problem.alerts", "normal", "critical", "It is over"),
    ]
    assert {row.channel for row in NOTIFICATIONS.rows(conf.lake)} == {"pager"}
    assert current_outage(conf.lake, "channel", "pager") is not None  # that is for the run to say


def test_up_has_a_part_for_problems_only_where_a_channel_is_to_hear_of_them(tmp_path: Path) -> None:
    written = write_conf(tmp_path, plant="path: ./landing")
    for setting, is_part in (("", False), (", problems: true", True)):
        text = f"channels: {{pager: {{webhook: {{url: 'http://127.0.0.1:1/x'}}{setting}}}}}\nalerts: {{}}\n"
        (written / "alerts.yml").write_text(text)
        assert ("problems" in [part.name for part in parts_of(load(written))]) is is_part
