"""What one query of the fast engine may take: time, memory, rows, bytes, length, depth; and a process of its own that can be ended."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.query.fast.engine import FastEngine
from orchestration.query.fast.process import FastProcess
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.refusal import RefusedError
from tests.lakes import conf
from tests.orchestration.query.fast.lake import edges

ENDLESS = "select count(*) from " + ", ".join(f"ops.edges e{n}" for n in range(14)) + " where e0.id + e13.id > 1"
BOMBS = {
    "long": "select '" + "x" * 70_000 + "'",
    "deep": "select " + "(" * 2_000 + "1" + ")" * 2_000,
    "nested queries": "select * from " + "(select * from " * 300 + "ops.edges" + ")" * 300,
    "many sums": "select " + " + ".join(["1"] * 3_000),
    "divisions in divisions": "select " + "1 / (i + " * 60 + "i" + ")" * 60 + " from ops.edges",
    "twice in twice": "with a0 as (select * from ops.edges), "
    + ", ".join(f"a{n} as (select * from a{n - 1} union all select * from a{n - 1})" for n in range(1, 30))
    + " select * from a29",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return edges(tmp_path_factory.mktemp("limits"))


@pytest.fixture
def process(made: Conf) -> Iterator[FastProcess]:
    with FastProcess(made, Limits(seconds=2)) as started:
        yield started


def test_rows_beyond_the_limit_are_cut_off_and_that_is_said(made: Conf) -> None:
    few = FastEngine(made, Limits(rows=4))
    answer = few.ask(Question("select id from ops.edges order by id desc"))
    assert (answer.rows["id"].to_pylist(), answer.is_cut_off) == ([10, 9, 8, 7], True)
    answer = few.ask(Question("select id from ops.edges order by id limit 4"))
    assert (answer.rows.num_rows, answer.is_cut_off) == (4, False)
    assert not FastEngine(made, Limits(rows=10)).ask(Question("select id from ops.edges")).is_cut_off


def test_bytes_beyond_the_limit_are_cut_off_and_that_is_said(made: Conf) -> None:
    answer = FastEngine(made, Limits(result_bytes=25_000)).ask(Question("select repeat('x', 10000) as x from ops.edges"))
    assert answer.is_cut_off
    assert 1 <= answer.rows.num_rows <= 2


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_query_that_is_too_large_is_refused_before_it_runs(made: Conf, bomb: str) -> None:
    with pytest.raises(RefusedError, match="ask it in parts"):
        FastEngine(made, Limits()).ask(Question(bomb))


def test_a_query_that_needs_too_much_memory_ends_in_a_sentence(made: Conf) -> None:
    wide = "repeat(a.s || b.s || c.s, 10000)"
    query = f"select {wide} as x from ops.edges a, ops.edges b, ops.edges c, ops.edges d order by x, a.id, b.id, c.id, d.id"
    with pytest.raises(RefusedError, match="needs more than 1 GB of memory"):
        FastEngine(made, Limits()).ask(Question(query))


def test_an_endless_query_ends_and_the_next_one_is_answered(process: FastProcess) -> None:
    with pytest.raises(TidemarkError, match=r"did not end within 2 s\."):
        process.ask(Question(ENDLESS))
    assert process.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_query_that_is_cancelled_ends_and_the_next_one_is_answered(made: Conf) -> None:
    with FastProcess(made, Limits()) as process:
        process.ask(Question("select 1"))
        threading.Timer(0.5, process.cancel).start()
        began = time.monotonic()
        with pytest.raises(TidemarkError, match=r"was cancelled\."):
            process.ask(Question(ENDLESS))
        assert time.monotonic() - began < 60
        assert process.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_refusal_of_the_process_is_that_of_the_engine(process: FastProcess, made: Conf) -> None:
    for query in ("select nope from ops.edges", "select * from marts.hourly", "select 1 /"):
        with pytest.raises(TidemarkError) as here:
            FastEngine(made, Limits()).ask(Question(query))
        with pytest.raises(TidemarkError) as there:
            process.ask(Question(query))
        assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))


def test_a_lake_that_is_not_there_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"there is no table bronze\.events"):
        FastEngine(conf(tmp_path), Limits()).ask(Question("select * from bronze.events"))
    assert FastEngine(conf(tmp_path), Limits()).ask(Question("select 1 as n")).rows.to_pydict() == {"n": [1]}
