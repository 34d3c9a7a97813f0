"""Rows of gold.alerts become messages that each channel gets once, whatever fails, is killed, compacted or replayed."""

import json
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gold.alerts.spec import DEFAULT_SUMMARY, Alert, NoticePolicy, Signal
from orchestration.alerts import delivery, outbox
from orchestration.alerts.delivery import Told
from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS, first_sent, state_file
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES, Acknowledgement, NotedSilence, silences
from orchestration.connectors.channels.channel import RefusedError
from orchestration.errors import DownError, TidemarkError
from orchestration.storage import commit
from orchestration.storage.delta import LOG, version_of
from orchestration.storage.positions import ALERTS as TABLE
from orchestration.storage.positions import JudgedAhead, judged_ahead
from tests.http_server import receiving
from tests.orchestration.alerts.alert_lake import AlertLake, Recorder, at, changed

ROOT = Path(__file__).parents[3]


def resent(lake: AlertLake, channel: Recorder, seconds: float) -> Told:
    return delivery.resend(lake.conf, "pager", channel, at(seconds))


def test_each_change_is_told_once_and_noted(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "pending"), changed(60, "firing", previous="pending")), Recorder()
    lake.tell(pager, 70)
    lake.write(changed(80, "normal", previous="firing")).tell(pager, 90)
    lake.write().tell(pager, 100)
    assert pager.states() == ["firing oven", "normal oven"]
    assert (pager.messages[0].value, pager.messages[0].changed_at, pager.messages[0].alert_ids) == (281.5, at(60), ("episode-oven",))
    assert lake.noted() == [("sent", "firing", 1, None), ("sent", "normal", 1, None)]


def test_what_a_run_has_judged_ahead_of_its_snapshot_is_told_once_all_alerts_are_equally_far(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder()
    lake.tell(pager, 1)
    lake.write_ahead(changed(5, "normal", previous="firing"))
    assert lake.tell(pager, 6).sent == 0
    judged_ahead(lake.conf.lake).write(JudgedAhead(1, version_of(lake.generation.table(lake.conf.lake, TABLE))))
    lake.tell(pager, 7)
    lake.write().tell(pager, 8)
    assert pager.states() == ["firing oven", "normal oven"]
    lake.replayed().write(changed(0, "firing"), changed(5, "normal", previous="firing")).write_ahead(changed(9, "firing")).tell(pager, 10)
    assert pager.states() == ["firing oven", "normal oven"]  # what was judged ahead is of the generation before


def test_a_lake_without_alerts_tells_nothing(tmp_path: Path) -> None:
    assert AlertLake(tmp_path).tell(Recorder(), 0).sent == 0


def test_two_channels_have_positions_of_their_own(tmp_path: Path) -> None:
    lake, pager, mail = AlertLake(tmp_path).write(changed(0, "firing")), Recorder(), Recorder([TidemarkError("away.")])
    assert lake.tell(pager, 1).sent == 1
    assert lake.tell(mail, 1, "mail").down == "away."
    lake.write(changed(5, "normal", previous="firing"))
    for seconds in (6, 7):
        lake.tell(pager, seconds)
        lake.tell(mail, seconds, "mail")
    assert (pager.states(), mail.states()) == (["firing oven", "normal oven"], ["over oven"])
    assert lake.noted("mail") == [("failed", "firing", 1, "away."), ("suppressed", "firing", 1, "over"), ("sent", "over", 1, None)]


def test_what_is_refused_for_good_is_a_dead_letter_and_the_others_go_on(tmp_path: Path) -> None:
    lake = AlertLake(tmp_path).write(*(changed(n, "firing", f"oven-{n}") for n in range(3)))
    bus = Recorder([RefusedError("answered 400."), RefusedError("answered 400.")], most=10)
    assert (lake.tell(bus, 10).sent, bus.states()) == (2, ["firing oven-1", "firing oven-2"])
    (letter,) = DEAD_LETTERS.rows(lake.conf.lake)
    assert json.loads(letter.message)["entities"] == ["oven-0"]
    assert ("dead", "firing", 1, "answered 400.") in lake.noted()
    assert lake.tell(bus, 11).sent == 0


def test_dead_letters_are_sent_again_when_somebody_says_so_each_until_it_is_taken(tmp_path: Path) -> None:
    lake = AlertLake(tmp_path).write(*(changed(n, "firing", f"oven-{n}") for n in range(3)))
    pager = Recorder([RefusedError("answered 404.")] * 3)
    lake.tell(pager, 10)
    pager.errors.append(TidemarkError("away."))
    assert resent(lake, pager, 20) == Told(0, 3, "away.")
    pager.errors.append(RefusedError("answered 404."))
    assert resent(lake, pager, 21) == Told(2, 1, "answered 404.")
    assert resent(lake, pager, 22) == Told(1, 0)
    assert resent(lake, pager, 23) == Told(0, 0)
    assert (pager.states(), lake.tell(pager, 24).sent) == (["firing oven-1", "firing oven-2", "firing oven-0"], 0)
    assert [state for state, *_ in lake.noted()] == ["dead"] * 3 + ["sent"] * 3


def test_a_kill_after_noting_sends_nothing_again(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([TidemarkError("away.")])
    lake.tell(pager, 1)
    state = state_file(lake.conf.lake, "pager").read()
    assert state is not None
    lake.tell(pager, 2)
    state_file(lake.conf.lake, "pager").write(state)  # as it was when the message had been noted, and the state had not
    assert (len(state.waiting), lake.tell(pager, 3).sent, pager.states()) == (1, 0, ["firing oven"])


def test_after_a_bounded_number_of_tries_it_is_a_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_TRIES", 3)
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([OSError("with a secret"), *[TidemarkError("away.")] * 3])
    told = [lake.tell(pager, seconds) for seconds in range(4)]
    assert [(of.sent, of.dead, of.down) for of in told] == [(0, 0, "OSError"), (0, 0, "away."), (0, 1, None), (0, 0, None)]
    assert lake.noted() == [("failed", "firing", 1, "OSError"), ("dead", "firing", 3, "away.")]


def test_a_replay_tells_only_what_is_new_in_it(tmp_path: Path) -> None:
    first = [changed(0, "firing"), changed(10, "normal", previous="firing"), changed(20, "firing", "fridge")]
    lake, pager = AlertLake(tmp_path, NoticePolicy(group_by="zone")).write(*first), Recorder()
    lake.tell(pager, 30)
    assert pager.states() == ["firing oven fridge", "normal oven"]
    lake.replayed().write(*first, changed(25, "firing", "press")).tell(pager, 40)
    lake.write(changed(50, "normal", "fridge", previous="firing")).tell(pager, 60)
    assert pager.states()[2:] == ["firing press", "normal fridge"]


def test_changes_at_one_instant_follow_each_other_however_they_lie_in_the_table(tmp_path: Path) -> None:
    at_once = [changed(9, "firing"), changed(9, "normal", previous="no data"), changed(9, "firing", previous="firing", severity="high")]
    lake, pager = AlertLake(tmp_path).write(*reversed(at_once), changed(5, "no data")), Recorder()
    lake.tell(pager, 10)
    assert pager.states() == ["over oven", "firing oven", "firing oven"]
    assert pager.messages[-1].severity == "high"


@pytest.mark.parametrize("is_log_there", [True, False])
def test_compaction_tells_nothing_again(tmp_path: Path, is_log_there: bool) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder()
    lake.tell(pager, 1)
    path = lake.generation.table(lake.conf.lake, TABLE)
    lake.write(changed(5, "firing", "fridge"))
    commit.compact(path, 10**9)
    lake.write(changed(6, "normal", previous="firing"))
    if not is_log_there:
        (path.local / LOG / f"{2:020d}.json").unlink()
    lake.tell(pager, 10)
    assert pager.states() == ["firing oven", "firing fridge", "normal oven"]


def test_a_silence_holds_back_until_it_is_ended_by_a_later_row(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder()
    silence = NotedSilence("s1", "*", "ov*", at(-9), at(999), author="kim", reason="cleaning", noted_at=at(-9))
    SILENCES.append(lake.conf.lake, [silence])
    for seconds in (1, 2):
        lake.tell(pager, seconds)
    assert lake.noted() == [("suppressed", "firing", 0, "silenced: silence s1")]
    (noted,) = silences(lake.conf.lake)
    SILENCES.append(lake.conf.lake, [replace(noted, ends_at=at(3), noted_at=at(3))])
    lake.tell(pager, 3)
    assert pager.states() == ["firing oven"]


def test_an_acknowledged_alert_is_not_repeated(tmp_path: Path) -> None:
    lake, pager = (
        AlertLake(tmp_path, NoticePolicy(repeat_seconds=60)).write(changed(0, "firing"), changed(0, "firing", "fridge")),
        Recorder(),
    )
    lake.tell(pager, 1)
    ACKNOWLEDGEMENTS.append(lake.conf.lake, [Acknowledgement("episode-oven", "kim", at(2), "on my way")])
    lake.tell(pager, 70)
    assert pager.states() == ["firing fridge", "firing oven", "firing fridge"]
    assert len({message.message_id for message in pager.messages}) == 3


def test_an_alarm_that_ended_while_its_channel_was_down_is_one_message(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([TidemarkError("away.")] * 2)
    lake.tell(pager, 1)
    lake.write(changed(60, "normal", previous="firing")).tell(pager, 61)
    lake.tell(pager, 62)
    (message,) = pager.messages
    assert (message.state, message.changed_at, message.ended_at) == ("over", at(0), at(60))
    assert message.summary.startswith("was true from 2026-01-05 12:00:00 to 2026-01-05 12:01:00 UTC: oven is firing")
    lake.replayed().write(changed(0, "firing"), changed(60, "normal", previous="firing")).tell(pager, 70)
    assert len(pager.messages) == 1


def test_a_message_says_when_the_channel_was_handed_it_and_so_does_its_row(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([TidemarkError("away.")])
    lake.tell(pager, 1)
    lake.tell(pager, 30)
    (message,) = pager.messages
    (row,) = NOTIFICATIONS.rows(lake.conf.lake, [("state", "=", "sent")])
    assert message.told_at == row.at
    assert (message.changed_at, message.known_at, at(30) <= row.at < at(31)) == (at(0), at(0), True)
    assert first_sent(lake.conf.lake, {"too_hot"}, at(0)) == {message.message_id: row.at, "episode-oven": row.at}


def test_a_channel_that_wants_no_request_for_a_while_gets_none_also_of_the_next_process(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([DownError("answered 429.", 600)])
    assert lake.tell(pager, 1).down == "answered 429."
    assert [lake.tell(pager, seconds).down for seconds in (2, 599)] == ["it wants no request before 2026-01-05T12:10:01Z."] * 2
    assert pager.messages == []
    assert lake.tell(pager, 602).sent == 1


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("The oven is on fire", "The oven is on fire: oven is firing: 281.5 degC, value > 280, since 2026-01-05 12:00:00 UTC, PAGE"),
        (DEFAULT_SUMMARY, "too_hot: oven is firing: 281.5 degC, value > 280, since 2026-01-05 12:00:00 UTC, PAGE"),
        ("{entity} burns", "oven burns"),
    ],
)
def test_a_summary_that_names_nothing_says_what_happened_by_itself(tmp_path: Path, summary: str, said: str) -> None:
    lake, pager = AlertLake(tmp_path), Recorder()
    alert = Alert("too_hot", Signal("reading", "temperature"), "value > 280", summary=summary)
    metrics = {"temperature": replace(lake.conf.metrics["temperature"], unit="degC")}
    lake.conf = replace(lake.conf, alerts={"too_hot": alert}, metrics=metrics)
    filled = summary.format(alert="too_hot", entity="oven", state="firing")
    lake.write(changed(0, "firing", summary=filled)).tell(pager, 1)
    assert pager.messages[0].summary == said.replace("PAGE", "http://127.0.0.1:8643/alerts")


def test_the_number_of_an_anomaly_is_its_score(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path), Recorder()
    lake.conf = replace(lake.conf, alerts={"too_hot": Alert("too_hot", Signal("anomaly", None, "kitchen", ("power",)), "is_anomaly")})
    lake.write(changed(0, "firing", summary="too_hot: oven is firing: power 9, expected 3", value=3.5)).tell(pager, 1)
    assert pager.messages[0].summary.startswith("too_hot: oven is firing: power 9, expected 3: score 3.5, is_anomaly, since ")


KILLED = """
import pickle, sys
from datetime import datetime
from orchestration.connectors.channels.all import channels
from orchestration.alerts.delivery import tell
conf = pickle.loads(open(sys.argv[1], "rb").read())
while tell(conf, "pager", channels(conf)["pager"], datetime.fromisoformat(sys.argv[2])):
    pass
"""


@pytest.mark.parametrize("point", ["messages-sent", "commit-due"])
def test_a_kill_between_sending_and_noting_sends_again_under_the_same_id_and_then_no_more(tmp_path: Path, point: str) -> None:
    with receiving() as receiver:
        lake = AlertLake(tmp_path, channels={"pager": {"webhook": {"url": receiver.url}}})
        lake.write(changed(0, "firing"), changed(0, "firing", "fridge"), changed(9, "normal", previous="firing"))
        (file := tmp_path / "conf.pickle").write_bytes(pickle.dumps(lake.conf))
        command = [sys.executable, "-c", KILLED, str(file), at(10).isoformat()]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        killed = subprocess.run(command, env=environment | {"TIDEMARK_CRASH_AT": point}, start_new_session=True, check=False)
        assert killed.returncode == -signal.SIGKILL
        for _ in range(2):
            assert subprocess.run(command, env=environment, check=False).returncode == 0
    bodies = [json.dumps(document | {"told_at": None}) for document in receiver.documents]
    assert (len(bodies), len({*receiver.keys}), len({*zip(receiver.keys, bodies, strict=True)})) == (4, 2, 2)
    assert sorted(state for state, *_ in lake.noted()) == ["sent"] * 2
