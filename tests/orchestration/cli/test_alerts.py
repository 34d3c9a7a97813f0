"""`tidemark alerts` says what fires, who has seen it and what is silent, from tables alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gold.alerts.messages import Message
from orchestration.alerts.changes import LastChange, last_change
from orchestration.alerts.firing import fast_file
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.notifications import DEAD, Outcome, record
from orchestration.conf.load import load
from tests.commands import Rows, Tidemark
from tests.http_server import http_server
from tests.orchestration.alerts.alert_lake import at, changed, write_changes

NOT_JUDGED = "not judged yet: `tidemark run` judges alerts\n"
DEFAULT = Path(__file__).parents[3] / "conf"
ROWS = [
    changed(0, "pending"),
    changed(60, "firing", previous="pending"),
    changed(60, "firing", previous="firing", severity="critical"),
    changed(30, "firing", "fridge"),
    changed(90, "normal", "fridge", previous="firing"),
    changed(70, "no data", "mixer"),
    changed(80, "pending", "lamp"),
]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    shutil.copytree(DEFAULT, tmp_path / "conf", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "conf" / "alerts.yml").write_text("alerts:\n  too_hot: {reading: temperature, when: value > 280}\n")
    lake = load(tmp_path / "conf").lake
    write_changes(lake, 0, *ROWS)
    return str(tmp_path / "conf")


def seen_by_watch(entity: str, seconds: float, state: str) -> LastChange:
    return last_change(changed(seconds, state, entity, alert_id=f"fast-{entity}", known_at=at(seconds + 1)), None)


def asked(tidemark: Tidemark, folder: str, *arguments: str) -> Rows:
    said = tidemark("--conf", folder, "alerts", *arguments, "--format", "json")
    assert said.code == 0, said.err
    return said.rows


def told(tidemark: Tidemark, folder: str, *arguments: str) -> tuple[int, str]:
    code, _, err = tidemark("--conf", folder, "alerts", *arguments)
    return code, err


def test_what_fires_is_listed_since_it_left_normal(folder: str, tidemark: Tidemark) -> None:
    rows = asked(tidemark, folder)
    assert [(row["entity"], row["state"], row["severity"], row["since"], row["id"]) for row in rows] == [
        ("oven", "firing", "critical", "2026-01-05T12:00:00Z", "episode-oven"),
        ("mixer", "no data", "warning", "2026-01-05T12:01:10Z", "episode-mixe"),
    ]
    assert {row["acknowledged_by"] for row in rows} == {row["silenced_by"] for row in rows} == {None}


def test_what_the_watch_sees_is_listed_and_acknowledged_before_the_run_has_judged_it(
    folder: str, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "kim")
    (Path(folder) / "alerts.yml").write_text("alerts:\n  too_hot: {reading: temperature, when: value > 280, fast: true}\n")
    lake = load(Path(folder)).lake
    seen = [seen_by_watch("stove", 95, "firing"), seen_by_watch("oven", 100, "normal"), seen_by_watch("fridge", 10, "firing")]
    fast_file(lake).write({f"too_hot/{row['entity']}": row for row in seen})
    rows = asked(tidemark, folder)
    assert [(row["entity"], row["state"], row["is_fast"], row["known_at"]) for row in rows] == [
        ("mixer", "no data", False, "2026-01-05T12:01:10Z"),
        ("stove", "firing", True, "2026-01-05T12:01:36Z"),
    ]
    assert told(tidemark, folder, "ack", rows[1]["id"]) == (0, "too_hot of stove is acknowledged\n")
    write_changes(lake, 1, changed(95, "firing", "stove", alert_id="fast-stove"))
    rows = asked(tidemark, folder)
    assert [(row["entity"], row["is_fast"], row["acknowledged_by"]) for row in rows] == [("mixer", False, None), ("stove", False, "kim")]


def test_an_alert_that_conf_has_no_more_fires_no_more(folder: str, tidemark: Tidemark) -> None:
    (Path(folder) / "alerts.yml").write_text("alerts:\n  other: {reading: temperature, when: value > 280}\n")
    assert asked(tidemark, folder) == []
    assert len(asked(tidemark, folder, "history")) == len(ROWS)


def test_dead_letters_go_to_the_channel_once_it_takes_them(folder: str, tidemark: Tidemark) -> None:
    message = Message("5f0c", "too_hot", "firing", "warning", ("oven",), at(0), at(1), "it is hot", 285.0, ("episode",))
    record(load(Path(folder)).lake, "shift", [Outcome(Waiting(message, ("5f0c",)), DEAD, "answered 404.")], at(2))
    answers = [(404, b"no such address"), (200, b"")]
    with http_server(lambda asked: answers.pop(0)) as url:
        with (Path(folder) / "alerts.yml").open("a") as file:
            file.write(f'channels:\n  shift: {{webhook: {{url: "{url}"}}}}\n')
        code, error = told(tidemark, folder, "resend", "shift")
        assert (code, error.splitlines()[0]) == (4, "sent 0 of 1 message")
        assert "1 message left in ops.dead_letters: " in error
        assert told(tidemark, folder, "resend", "shift") == (0, "sent 1 of 1 message\n")
        assert told(tidemark, folder, "resend", "shift") == (0, "sent 0 of 0 messages\n")
    assert told(tidemark, folder, "resend", "nobody")[0] == 2


def test_history_is_every_change_the_latest_first(folder: str, tidemark: Tidemark) -> None:
    assert [row["entity"] for row in asked(tidemark, folder, "history")][:3] == ["fridge", "lamp", "mixer"]
    assert [row["state"] for row in asked(tidemark, folder, "history", "--since", "2026-01-05T12:01:20", "--limit", "5")] == [
        "normal",
        "pending",
    ]


def test_who_has_seen_it_is_named_by_the_beginning_of_its_id(folder: str, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kim")
    assert told(tidemark, folder, "ack", "episode-o", "--note", "on my way") == (0, "too_hot of oven is acknowledged\n")
    assert [row["acknowledged_by"] for row in asked(tidemark, folder)] == ["kim", None]
    for id, count in (("episode", "2"), ("episode-fridge", "no")):
        code, said = told(tidemark, folder, "ack", id)
        assert (code, f"{count} firing alerts have an id that begins with '{id}'" in said) == (2, True)


def test_a_silence_is_shown_until_it_is_ended(folder: str, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kim")
    assert told(tidemark, folder, "silence", "too_*", "ov*", "--for", "2h", "--reason", "cleaning")[0] == 0
    (row,) = asked(tidemark, folder, "silences")
    assert [row[name] for name in ("alert", "entity", "hours", "author", "reason")] == ["too_*", "ov*", None, "kim", "cleaning"]
    assert [row["silenced_by"] for row in asked(tidemark, folder)] == [row["id"], None]
    assert told(tidemark, folder, "unsilence", row["id"]) == (0, f"silence {row['id']} is over\n")
    assert asked(tidemark, folder, "silences") == []
    assert [row["author"] for row in asked(tidemark, folder, "silences", "--all")] == ["kim"]
    assert {row["silenced_by"] for row in asked(tidemark, folder)} == {None}
    assert told(tidemark, folder, "unsilence", row["id"])[0] == 2


def test_a_silence_of_a_week_is_shown_as_it_was_said(folder: str, tidemark: Tidemark) -> None:
    week = ("--hours", "22:00-06:00", "--days", "sat,sun", "--zone", "Europe/Berlin", "--until", "2099-12-31")
    assert told(tidemark, folder, "silence", "*", *week, "--reason", "no shift")[0] == 0
    (row,) = asked(tidemark, folder, "silences")
    assert (row["entity"], row["hours"], row["ends_at"]) == ("*", "22:00-06:00 sat,sun Europe/Berlin", "2099-12-31T00:00:00Z")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("to_hot", "--for", "2h"), "no alert has the name 'to_hot'; alerts.yml declares too_hot"),
        (("too_hot",), "say when it ends, by --until or by --for"),
        (("too_hot", "--for", "2h", "--until", "2099-01-01"), "say when it ends, by --until or by --for"),
        (("too_hot", "--until", "2020-01-01"), "the silence would end before it begins, or before now; choose a later --until"),
        (("too_hot", "--for", "2 hours"), "'2 hours' is no duration; write for example 90m, 2h or 1d"),
        (("too_hot", "--for", "2h", "--hours", "22-6"), "--hours 22-6 are no hours"),
        (("too_hot", "--for", "2h", "--days", "sat,so"), "--days names so; days are mon, tue"),
        (("too_hot", "--for", "2h", "--days", "sat", "--zone", "Mars/Base"), "--zone is 'Mars/Base', which is no time zone"),
    ],
)
def test_a_silence_that_means_nothing_is_refused(folder: str, tidemark: Tidemark, arguments: tuple[str, ...], said: str) -> None:
    code, error = told(tidemark, folder, "silence", *arguments, "--reason", "cleaning")
    assert (code, said in error) == (2, True), error
    assert asked(tidemark, folder, "silences", "--all") == []


def test_it_answers_without_a_jvm(folder: str) -> None:
    program = f"import sys; from orchestration.cli.app import exit_code; exit_code(['--conf', {folder!r}, 'alerts'])"
    program = f"{program}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
