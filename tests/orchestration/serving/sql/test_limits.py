"""What one query may take: time, memory, rows, bytes, length, depth; and it can be ended."""

import threading
from pathlib import Path

import pytest

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from tests.lakes import conf
from tests.orchestration.serving.sql.bombs import MEMORY_BOMBS
from tests.orchestration.serving.sql.edges import edges
from tests.sample import all_of

MEANS_TOO_MUCH = r"needs more memory than a query may use|took longer than 5 s|maximum supported string size|Lists larger than"
ENDLESS = "select count(*) from " + ", ".join(f"ops.edges e{n}" for n in range(14)) + " where e0.id + e13.id > 1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return edges(tmp_path_factory.mktemp("limits"))


def test_rows_beyond_the_limit_are_cut_off_and_that_is_said(made: Conf) -> None:
    few = DuckDbEngine(made, Limits(rows=4))
    answer = few.ask(Question("select id from ops.edges order by id desc"))
    assert (answer.rows["id"].to_pylist(), answer.is_cut_off) == ([10, 9, 8, 7], True)
    answer = few.ask(Question("select id from ops.edges order by id limit 4"))
    assert (answer.rows.num_rows, answer.is_cut_off) == (4, False)
    assert not DuckDbEngine(made, Limits(rows=10)).ask(Question("select id from ops.edges")).is_cut_off


def test_bytes_beyond_the_limit_are_cut_off_and_that_is_said(made: Conf) -> None:
    answer = DuckDbEngine(made, Limits(result_bytes=25_000)).ask(Question("select repeat('x', 10000) as x from ops.edges"))
    assert answer.is_cut_off
    assert 1 <= answer.rows.num_rows <= 2


def test_a_row_that_is_larger_than_an_answer_is_told_and_not_left_out(made: Conf) -> None:
    with pytest.raises(RefusedError, match=r"a row is larger than 25,000 bytes, the most of an answer: select fewer columns"):
        DuckDbEngine(made, Limits(result_bytes=25_000)).ask(Question("select repeat('x', 30000) as x"))


@pytest.mark.parametrize("bomb", all_of(MEMORY_BOMBS, MEMORY_BOMBS[::4]))  # test_server.py has all of them
def test_a_query_that_needs_too_much_memory_ends_in_a_sentence(made: Conf, bomb: str) -> None:
    with pytest.raises(RefusedError, match=MEANS_TOO_MUCH):
        DuckDbEngine(made, Limits(seconds=5)).ask(Question(bomb))
    assert DuckDbEngine(made, Limits()).ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_an_endless_query_ends_and_the_next_one_is_answered(made: Conf) -> None:
    engine = DuckDbEngine(made, Limits(seconds=2))
    with pytest.raises(TidemarkError, match=r"took longer than 2 s and was cancelled\."):
        engine.ask(Question(ENDLESS))
    assert engine.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_query_that_is_cancelled_ends_and_the_next_one_is_answered(made: Conf) -> None:
    engine = DuckDbEngine(made, Limits())
    threading.Timer(1.5, engine.cancel).start()
    with pytest.raises(TidemarkError, match=r"was cancelled\."):
        engine.ask(Question(ENDLESS))
    assert engine.ask(Question("select 6 * 7 as n")).rows.to_pydict() == {"n": [42]}


def test_a_lake_that_is_not_there_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"there is no table bronze\.events"):
        DuckDbEngine(conf(tmp_path), Limits()).ask(Question("select * from bronze.events"))
    with pytest.raises(TidemarkError, match="there are no marts yet: build them with `tidemark dbt build`"):
        DuckDbEngine(conf(tmp_path), Limits()).ask(Question("select * from marts.hourly"))
    assert DuckDbEngine(conf(tmp_path), Limits()).ask(Question("select 1 as n")).rows.to_pydict() == {"n": [1]}
