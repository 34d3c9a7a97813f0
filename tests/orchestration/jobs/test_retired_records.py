"""Logs that only grow lose what is old, and keep what somebody still needs; nothing is sent again for it."""

from datetime import timedelta
from pathlib import Path

from gold.alerts.messages import Change, Message
from orchestration.alerts.delivery import resend
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS, SENT, ChannelState, Outcome, record, state_file
from orchestration.alerts.stages import EntityState
from orchestration.connectors.channels.channel import RefusedError
from orchestration.jobs.maintenance import NOTES_RETAINED, retire_records
from orchestration.location import Location
from orchestration.storage.log import RETAINED
from orchestration.storage.ops_tables import NOTES, RUNS, Note, RunOfJob
from tests.orchestration.alerts.alert_lake import START, AlertLake, Recorder, at, changed

LONG_AFTER = START + RETAINED + timedelta(days=2)


def notified(lake: AlertLake) -> list[tuple[str, ...]]:
    return [(*row.entities, row.alert_state, row.state) for row in NOTIFICATIONS.rows(lake.conf.lake)]


def test_old_notifications_go_but_for_those_of_an_alert_that_still_fires(tmp_path: Path) -> None:
    lake, pager = AlertLake(tmp_path).write(changed(0, "firing"), changed(0, "firing", "fridge")), Recorder()
    lake.tell(pager, 1)
    lake.write(changed(2, "normal", "fridge", "firing")).tell(pager, 3)
    retire_records(lake.conf.lake, START + timedelta(days=1))
    assert len(notified(lake)) == 3
    retire_records(lake.conf.lake, LONG_AFTER)
    assert notified(lake) == [("oven", "firing", "sent")]


def test_notifications_of_data_quality_stay_as_long_as_a_channel_knows_that_it_fails(tmp_path: Path) -> None:
    failing = Change("quality.gate", "silver.readings", "firing", "critical", START, START, None, "it is closed", "gate-1")
    message = Message(
        "m1", failing.alert, failing.state, failing.severity, (failing.entity,), START, START, "it is closed", None, ("gate-1",)
    )
    lake = Location(tmp_path)
    record(lake, "pager", [Outcome(Waiting(message, ("c1",)), SENT)], START)
    state_file(lake, "pager").write(ChannelState(standings={"gate": EntityState(failing)}))
    retire_records(lake, LONG_AFTER)
    assert len(NOTIFICATIONS.rows(lake)) == 1
    state_file(lake, "pager").write(ChannelState())
    retire_records(lake, LONG_AFTER)
    assert NOTIFICATIONS.rows(lake) == []


def test_what_was_retired_is_not_sent_again_after_a_replay_and_what_fires_is_known(tmp_path: Path) -> None:
    changes = changed(0, "firing"), changed(1, "firing", "fridge"), changed(2, "normal", "fridge", "firing")
    lake, pager = AlertLake(tmp_path).write(*changes), Recorder()
    assert lake.tell(pager, 3).sent == 2
    retire_records(lake.conf.lake, LONG_AFTER)
    replayed = lake.replayed().write(*changes)
    assert replayed.tell(pager, (LONG_AFTER - START).total_seconds()).sent == 0


def test_a_dead_letter_stays_until_it_is_sent_with_the_row_that_says_which_changes_it_has(tmp_path: Path) -> None:
    lake, refusing = AlertLake(tmp_path).write(changed(0, "firing")), Recorder([RefusedError("answered 400.")] * 2)
    lake.tell(refusing, 1)
    lake.write(changed(1, "normal", previous="firing")).tell(refusing, 2)
    assert [state for *_, state in notified(lake)] == ["dead", "dead"]
    retire_records(lake.conf.lake, LONG_AFTER)
    assert (len(DEAD_LETTERS.rows(lake.conf.lake)), len(notified(lake))) == (2, 2)
    assert resend(lake.conf, "pager", Recorder(), LONG_AFTER).sent == 2
    retire_records(lake.conf.lake, LONG_AFTER)
    assert (DEAD_LETTERS.rows(lake.conf.lake), [state for *_, state in notified(lake)]) == ([], ["sent", "sent"])


def test_the_last_run_of_each_job_stays_and_notes_stay_for_years(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    runs = [RunOfJob(job, at(seconds), at(seconds), 1.0, "done") for job, seconds in (("nightly", 0), ("yearly", 1), ("nightly", 2))]
    young = RunOfJob("nightly", LONG_AFTER, LONG_AFTER, 1.0, "done")
    RUNS.append(lake, [*runs, young])
    NOTES.append(lake, [Note(START, START, "a new oven", "kim", START)])
    retire_records(lake, LONG_AFTER)
    assert RUNS.rows(lake) == [runs[1], young]
    assert len(NOTES.rows(lake)) == 1
    retire_records(lake, START + NOTES_RETAINED + timedelta(days=2))
    assert NOTES.rows(lake) == []
