"""What one query of the fast engine may take: time, memory, rows, bytes, length, depth; and it can be ended."""

import threading
from pathlib import Path

import duckdb
import pytest

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.fast.engine import FastEngine
from orchestration.serving.sql.fast.tables import Tables
from orchestration.serving.sql.refusal import RefusedError
from tests.lakes import conf
from tests.orchestration.serving.sql.fast.lake import edges

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
    with pytest.raises(RefusedError, match="split it"):
        FastEngine(made, Limits()).ask(Question(bomb))


def test_a_query_that_needs_too_much_memory_ends_in_a_sentence(made: Conf) -> None:
    wide = "repeat(a.s || b.s || c.s, 10000)"
    query = f"select {wide} as x from ops.edges a, ops.edges b, ops.edges c, ops.edges d order by x, a.id, b.id, c.id, d.id"
    with pytest.raises(RefusedError, match="needs more than 1 GB of memory"):
        FastEngine(made, Limits()).ask(Question(query))


def test_an_endless_query_ends_and_the_next_one_is_answered(made: Conf) -> None:
    engine = FastEngine(made, Limits(seconds=2))
    with pytest.raises(TidemarkError, match=r"did not end within 2 s\."):
        engine.ask(Question(ENDLESS))
    assert engine.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_query_that_is_cancelled_ends_and_the_next_one_is_answered(made: Conf) -> None:
    engine = FastEngine(made, Limits())
    threading.Timer(1.5, engine.cancel).start()
    with pytest.raises(TidemarkError, match=r"was cancelled\."):
        engine.ask(Question(ENDLESS))
    assert engine.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_query_that_is_cancelled_before_it_runs_does_not_run(made: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FastEngine(made, Limits())
    opened = FastEngine._opened

    def cancelled(self: FastEngine, tables: Tables, sql: str) -> duckdb.DuckDBPyConnection:
        self.cancel()
        return opened(self, tables, sql)

    monkeypatch.setattr(FastEngine, "_opened", cancelled)
    with pytest.raises(TidemarkError, match=r"was cancelled\."):
        engine.ask(Question(ENDLESS))


def test_a_lake_that_is_not_there_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"there is no table bronze\.events"):
        FastEngine(conf(tmp_path), Limits()).ask(Question("select * from bronze.events"))
    assert FastEngine(conf(tmp_path), Limits()).ask(Question("select 1 as n")).rows.to_pydict() == {"n": [1]}
