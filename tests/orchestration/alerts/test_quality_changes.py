"""Channels of `quality.channels` hear of expectations that fail or hold again, and of gates that close or open: each once."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from expectations.suite import Expectation, Severity, suite
from orchestration.alerts import delivery
from orchestration.alerts.records import SILENCES, NotedSilence
from orchestration.conf.channel_settings import AddressSettings, ChannelSettings
from orchestration.conf.model import GateMode, Quality
from orchestration.connectors.channels.channel import Channel
from orchestration.connectors.channels.webhook import WebhookChannel
from orchestration.engine.lake import Lake
from orchestration.quality import suites
from orchestration.quality.history import append_results
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult
from orchestration.quality.quality_tables import release_version
from orchestration.storage.commit import create
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA
from orchestration.supervisor.quality_gate import QualityGate
from tests.http_server import receiving
from tests.lakes import bare_conf, write
from tests.orchestration.alerts.alert_lake import Recorder, at
from tests.orchestration.quality.test_quality import DEVICE
from tests.rows import INGESTED_AT
from tests.rows import at as at_time

READINGS = "silver.readings"
GOOD, BAD, NOTHING = Outcome(True, "none of 10 rows", 0.0), Outcome(False, "3 of 10 rows", 30.0), Outcome(None, "not checked")


def lake_of(folder: Path, **quality: Any) -> Lake:
    return Lake(bare_conf(folder, quality=Quality(channels=("pager",), **quality)))


def check(lake: Lake, seconds: float, outcomes: Sequence[Outcome], cause: Cause = Cause.ASKED) -> None:
    """Keep a run of the suite `readings`, whose expectations are numbered."""
    results = (
        Result("readings", Expectation("expect", f"Rule {n} holds.", Severity.CRITICAL, {"column": "value"}), outcome)
        for n, outcome in enumerate(outcomes)
    )
    table = TableResult(READINGS, 3, "id", 10, tuple(results))
    append_results(lake.conf.lake, Run(f"r{seconds}", at(seconds), "plant", cause, (table,)))


def tell(lake: Lake, channel: Channel, seconds: float, name: str = "pager") -> None:
    while delivery.tell(lake.conf, name, channel, at(seconds)):
        pass


def test_an_expectation_is_told_when_it_begins_to_fail_and_when_it_holds_again(tmp_path: Path) -> None:
    lake, pager = lake_of(tmp_path), Recorder()
    for n, outcome in enumerate((GOOD, BAD, BAD, NOTHING, GOOD, GOOD)):
        check(lake, 10 * n, [outcome])
        tell(lake, pager, 10 * n + 1)
    failed, holds = pager.messages
    assert pager.states() == [f"{state} silver.readings: Rule 0 holds. (readings)" for state in ("firing", "normal")]
    assert (failed.alert, failed.severity, failed.changed_at) == ("quality.expectation", "critical", at(10))
    assert failed.summary == "silver.readings: Rule 0 holds. (readings) Found: 3 of 10 rows"
    assert (holds.changed_at, holds.summary.endswith("It holds again.")) == (at(40), True)


def test_what_fails_at_once_in_one_table_is_one_message(tmp_path: Path) -> None:
    lake, pager = lake_of(tmp_path), Recorder()
    check(lake, 0, [BAD, GOOD, BAD])
    tell(lake, pager, 1)
    (message,) = pager.messages
    assert message.entities == ("silver.readings: Rule 0 holds. (readings)", "silver.readings: Rule 2 holds. (readings)")
    assert message.summary.startswith("quality.expectation: 2 in silver.readings are firing: ")


def test_runs_on_a_snapshot_and_channels_that_are_not_named_tell_nothing(tmp_path: Path) -> None:
    lake, pager, other = lake_of(tmp_path), Recorder(), Recorder()
    check(lake, 0, [BAD], Cause.SNAPSHOT)
    tell(lake, pager, 1)
    check(lake, 2, [BAD])
    tell(lake, other, 3, "other")
    assert (pager.messages, other.messages) == ([], [])


def test_what_failed_long_before_somebody_was_there_to_tell_is_told_if_it_still_fails(tmp_path: Path) -> None:
    lake, pager = lake_of(tmp_path), Recorder()
    check(lake, 0, [BAD, BAD])
    check(lake, 10, [BAD, GOOD])
    tell(lake, pager, timedelta(days=2).total_seconds())
    assert [(message.state, len(message.entities)) for message in pager.messages] == [("firing", 1), ("digest", 1)]


def test_a_silence_holds_for_quality_too(tmp_path: Path) -> None:
    lake, pager = lake_of(tmp_path), Recorder()
    SILENCES.append(
        lake.conf.lake, [NotedSilence("s1", "quality.*", "*", at(-9), at(50), author="kim", reason="calibration", noted_at=at(-9))]
    )
    check(lake, 0, [BAD])
    tell(lake, pager, 1)
    assert pager.messages == []
    tell(lake, pager, 60)
    assert len(pager.messages) == 1


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    lake, pager = lake_of(tmp_path), Recorder()
    check(lake, 0, [Outcome(False, "x" * 2**20)])
    tell(lake, pager, 1)
    assert len(pager.messages[0].summary) < 1_000


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose gate of silver.readings holds."""
    lake = lake_of(tmp_path, gates={READINGS: GateMode.HOLD})
    monkeypatch.setattr(suites, "packaged", lambda: [suite("readings", {"table": READINGS, "expectations": [DEVICE]})])
    create(lake.table_path(LEDGER), LEDGER_SCHEMA)
    add(lake, None)
    return lake


def add(lake: Lake, device_id: str | None) -> None:
    columns = {"metric": "temperature", "event_time": at_time("11:59:00"), "value": 1.0, "ingested_at": INGESTED_AT, "bronze_batch": 0}
    write(lake, READINGS, columns | {"device_id": device_id})


def looked(lake: Lake) -> QualityGate:
    gate = QualityGate(lake, threading.Event(), lambda _: None)
    gate.is_open()
    gate.warn()
    return gate


def test_a_gate_is_told_when_it_closes_when_it_is_released_and_when_it_closes_again(gated: Lake) -> None:
    pager, now = Recorder(), INGESTED_AT
    for n in range(2):
        looked(gated)
        for _ in range(2):
            tell(gated, pager, 10 * n)
        release_version(gated, READINGS, n, "calibration", now)
        if n == 1:
            tell(gated, pager, 10 * n + 5)
        add(gated, None)
    assert pager.states() == [f"{state} {READINGS}" for state in ("firing", "normal", "firing", "normal")]
    assert "tidemark quality release --table silver.readings --version 0" in pager.messages[0].summary
    assert {message.alert for message in pager.messages} == {"quality.gate"}


def test_a_gate_that_warns_is_told_once_for_as_long_as_its_table_fails(tmp_path: Path, gated: Lake) -> None:
    lake, pager = Lake(replace(gated.conf, quality=Quality(gates={READINGS: GateMode.WARN}, channels=("pager",)))), Recorder()
    for n, device in enumerate((None, None, "oven", None)):
        add(lake, device)
        looked(lake)
        tell(lake, pager, n)
    assert pager.states() == [f"{state} {READINGS}" for state in ("firing", "normal", "firing")]


def test_a_failed_expectation_comes_to_a_real_address(tmp_path: Path) -> None:
    with receiving() as receiver:
        settings = ChannelSettings(webhook=AddressSettings(url=receiver.url))
        lake = Lake(replace(lake_of(tmp_path).conf, channels={"pager": settings}))
        check(lake, 0, [BAD])
        assert settings.webhook is not None
        tell(lake, WebhookChannel(settings.webhook), 1)
    (body,) = receiver.documents
    assert (body["alert"], body["state"], body["severity"]) == ("quality.expectation", "firing", "critical")
