"""The shell, on a terminal and without one."""

import _thread
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Answer, Limits
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.session import Session, interruptible
from orchestration.serving.sql.shell import script
from tests.lakes import conf
from tests.orchestration.serving.sql.edges import edges
from tests.orchestration.serving.sql.shell_terminal import PROMPT, ROOT, Terminal, command, environment

ENTER, TAB, UP, CTRL_C, CTRL_D = "\r", "\t", "\x1b[A", "\x03", "\x04"
ENDLESS = "select count(*) from " + ", ".join(f"ops.edges e{n}" for n in range(14)) + " where e0.id + e13.id > 1;"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shell")
    edges(made)
    return made


@pytest.fixture
def session(folder: Path) -> Session:
    made = conf(folder)
    return Session(DuckDbEngine(made, Limits()), made)


def piped(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    """A shell that reads the text, and no terminal."""
    return subprocess.run(command(folder), input=text, capture_output=True, text=True, env=environment(folder), cwd=ROOT, check=False)


def test_tables_columns_and_answers(folder: Path) -> None:
    with Terminal(folder) as terminal:
        assert "ops.edges         0              10" in terminal.answers("\\d")
        assert "map(varchar, bigint)" in terminal.answers("\\d ops.edges")
        terminal.types("select id, s from ops.edges" + ENTER)
        terminal.reads("->")  # no semicolon yet
        assert re.search(r"Oven.*1 row in \d", terminal.answers("where id = 1;"), re.DOTALL)
        assert 'column "nope" not found' in terminal.answers("select nope from ops.edges;")
        terminal.answers("\\format json")
        assert "\\u001b[31mred" in terminal.answers("select e'\\x1b[31mred' as x;")
        terminal.answers("\\o " + str(folder / "answer.parquet"))
        assert "written to" in terminal.answers("select id from ops.edges;")
        terminal.answers("\\timing")
        assert "row" not in terminal.answers("select 1;")
        assert "there is no snapshot yet" in terminal.answers("\\snapshot")
        assert "there is no command \\formt; did you mean '\\format'?" in terminal.answers("\\formt csv")
        terminal.types(CTRL_D)
        assert terminal.left() == 0
    assert pq.read_table(folder / "answer.parquet").num_rows == 10


def test_tab_completes_tables_columns_and_words(folder: Path) -> None:
    with Terminal(folder) as terminal:
        terminal.types("select e.id as x from ops.ed" + TAB)
        terminal.reads("ops.edges")
        terminal.types(" e where e.i" + TAB + TAB + TAB)  # the second of e.i and e.id
        terminal.reads("e.id")
        terminal.types(" = 3 ord" + TAB)
        terminal.reads("order")
        assert "1 row in" in terminal.answers(" by e.id;")
        terminal.types("\\q" + ENTER)
        assert terminal.left() == 0


def test_ctrl_c_ends_the_query_and_not_the_shell(folder: Path) -> None:
    with Terminal(folder) as terminal:
        terminal.types(ENDLESS + ENTER)
        terminal.reads("1;\n")
        terminal.works()
        terminal.types(CTRL_C)
        assert "cancelled" in terminal.reads(PROMPT)
        terminal.types("half a que" + CTRL_C)
        terminal.reads(PROMPT)
        assert "42" in terminal.answers("select 6 * 7 as answer;")
        terminal.types(CTRL_D)
        assert terminal.left() == 0


@pytest.fixture
def interruption() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, whatever a command of an earlier test has made of it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("interruption")
def test_a_query_that_was_cancelled_has_let_go_before_the_next() -> None:
    cancelled, has_let_go = threading.Event(), threading.Event()

    def ask() -> Answer:
        _thread.interrupt_main()
        cancelled.wait()
        time.sleep(0.5)
        has_let_go.set()
        raise TidemarkError("the query was cancelled.")

    with pytest.raises(KeyboardInterrupt):
        interruptible(ask, cancelled.set)
    assert has_let_go.is_set()


def test_a_query_that_does_not_end_when_its_time_is_over_is_left_alone() -> None:
    forever = threading.Event()

    def ask() -> Answer:
        forever.wait()
        raise AssertionError

    with pytest.raises(TidemarkError, match="the query has not ended within its time limit"):
        interruptible(ask, forever.set, seconds=0.3)
    assert not forever.is_set()
    forever.set()


def test_what_was_entered_is_there_at_the_next_start_and_for_its_owner_only(folder: Path, tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with Terminal(folder, **state) as terminal:
        terminal.types("select 6 *" + ENTER)
        assert "42" in terminal.answers("7 as answer;")
    history = tmp_path / "state" / "tidemark" / "history"
    assert history.stat().st_mode & 0o777 == 0o600
    with Terminal(folder, **state) as terminal:
        terminal.types(UP)
        terminal.reads("7 as answer;")
        assert "42" in terminal.answers("")


def test_what_is_longer_than_the_screen_goes_through_the_pager(folder: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\nhead -n 5 > {tmp_path}/paged\n")  # leaves before the end
    pager.chmod(0o755)
    with Terminal(folder, PAGER=str(pager)) as terminal:
        shown = terminal.answers("select a.id, b.s from ops.edges a, ops.edges b order by 1, 2;")
        assert "Oven" not in shown
        assert "100 rows in" in shown
        assert "Oven" in terminal.answers("select s, 1 as one from ops.edges where id = 1;")
    assert "id" in (tmp_path / "paged").read_text()


def test_without_a_terminal_statements_are_answered_without_prompts(folder: Path) -> None:
    ended = piped(folder, "\\format json\nselect 1 as a; -- one; two\nselect ';' as b;\n\\d ops.edges\nselect 2 as c")
    answers = [json.loads(line) for line in ended.stdout.replace(",\n", ",").splitlines()]
    assert [answers[0], answers[1], answers[3]] == [[{"a": 1}], [{"b": ";"}], [{"c": 2}]]
    assert {"column": "id", "type": "integer"} in answers[2]
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_first_error_ends_a_script_with_its_exit_code(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert script(session, ["select 1 as a; select a from nowhere; select 3;"]) == 2
    out, err = capsys.readouterr()
    assert ("there is no table nowhere" in err, "3" in out) == (True, False)


def test_a_snapshot_that_is_not_there_is_refused_and_the_one_before_stays(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    for line, sentence in (("\\snapshot 7", "there is no snapshot 7"), ("\\at noon", "\\at takes an instant")):
        assert script(session, [line]) == 2
        assert sentence in capsys.readouterr().err
        assert (session.snapshot_id, session.at) == (None, None)
