"""Attacks on DuckDB: what tries more than to ask ends in a sentence, by the command as over HTTP; nothing is told and nothing changes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.duckdb_guard import CALLED, TABLE_FUNCTIONS, checked
from tests.commands import Tidemark
from tests.orchestration.serving.sql.attacks import ATTACKS, aimed, attacked, files, tells
from tests.orchestration.serving.sql.questions import QUESTIONS

REPOSITORY = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacked")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[DuckDbEngine]:
    """Afterwards no file may have changed."""
    made = attacked(folder)
    shutil.copytree(REPOSITORY / "conf", folder / "conf", ignore=shutil.ignore_patterns("__*"))
    before = files(folder)
    yield DuckDbEngine(made, Limits(seconds=20, rows=1000))
    assert files(folder) == before


def test_there_are_many_attacks() -> None:
    assert len(set(ATTACKS)) >= 200


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda query: repr(query[:100]))
def test_what_tries_more_is_refused_and_tells_nothing(engine: DuckDbEngine, folder: Path, attack: str, tidemark: Tidemark) -> None:
    query = aimed(attack, folder)
    said = tidemark("--conf", folder / "conf", "sql", "--", query)
    assert (said.code, said.out) == (2, ""), said
    assert not tells(said.err, query, folder)


FRAMES = (
    "{0}",
    "select * from ({0}) t",
    "with x as ({0}) select * from x",
    "with x as ({1}), y as ({0}) select * from x, y",
    "({0}) union all ({1})",
    "select * from silver.readings where exists ({0})",
    "select ({0}) as x",
    "explain analyze {0}",
    "select /* {1} */ * from ({0})",
    "{0} ; {1}",
    "describe {0}",
    "summarize {0}",
    "from silver.readings r, lateral ({0}) t",
    "pivot ({0}) on x",
    "select [({0})], {{'a': ({1})}}",
)
PIECES = st.sampled_from([*ATTACKS, *(query for query, _ in QUESTIONS)]).filter(lambda query: len(query) < 1_000)
BETWEEN = st.sampled_from(("", '"', "'", "/**/", "\t", "\u00a0", "--\n", "(", ")", ",", ".", ";", "\\", "\u0000", "$", "$$", "`", "e'"))


@given(st.tuples(st.sampled_from(FRAMES), PIECES, PIECES, st.integers(0, 200), BETWEEN, st.booleans()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_change_of_an_attack_comes_through(engine: DuckDbEngine, folder: Path, changed: tuple[str, str, str, int, str, bool]) -> None:
    frame, first, second, cut, between, is_upper = changed
    query = frame.format(first, second)
    query = aimed(query[:cut] + between + query[cut:], folder)
    try:
        answer = str(engine.ask(Question(query.upper() if is_upper else query)).rows.to_pydict())
    except TidemarkError as error:
        answer = str(error)
    assert not tells(answer, query, folder)


def duckdb_functions(columns: str, condition: str) -> list[tuple[str, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"select distinct {columns} from duckdb_functions() where {condition}").fetchall()


def is_refused(query: str) -> bool:
    """Tell whether a query names what is hidden; it need not be one that DuckDB understands."""
    with duckdb.connect() as connection:
        try:
            checked(connection, query)
        except RefusedError as error:
            return "cannot be used here: a query reads the tables" in str(error)
        except duckdb.Error:
            pass
    return False


def test_every_function_of_duckdb_that_is_called_as_a_table_is_known() -> None:
    called = {name for (name,) in duckdb_functions("lower(function_name)", "function_type in ('table', 'table_macro')")}
    assert {name for name in called if name not in TABLE_FUNCTIONS and not CALLED.fullmatch(name)} == set()
    assert len(called) > 100


def test_no_macro_that_a_query_may_call_calls_what_a_query_may_not() -> None:
    macros = duckdb_functions("function_name, function_type, macro_definition", "macro_definition is not null")
    allowed = [(name, text if kind == "table_macro" else f"select {text}") for name, kind, text in macros if not is_refused(f"{name}()")]
    assert [name for name, text in allowed if is_refused(text)] == []
    assert {name for name, kind, _ in macros if kind == "table_macro"} & {name for name, _ in allowed} == set()
    assert (len(macros) > 100, len(allowed) > 50) == (True, True)


STEADY_OR_HARMLESS = {
    *(
        "current_connection_id",
        "current_database",
        "current_date",
        "current_query",
        "current_query_id",
        "current_schema",
        "current_schemas",
    ),
    *("current_transaction_id", "currval", "error", "gen_random_uuid", "get_current_time", "get_current_timestamp", "in_search_path"),
    *("nextval", "now", "random", "setseed", "setval", "sleep_ms", "stats", "today", "transaction_timestamp", "txid_current", "uuid"),
    *("uuidv4", "uuidv7", "vector_type"),
}
"""Functions of values that depend on more than their arguments, and show only clock, dice and the query's own empty database."""


def test_every_function_of_values_that_depends_on_more_than_its_arguments_is_known() -> None:
    unsteady = duckdb_functions(
        "lower(function_name)", "function_type in ('scalar', 'aggregate') and (has_side_effects or stability <> 'CONSISTENT')"
    )
    assert {name for (name,) in unsteady if not CALLED.fullmatch(name)} == STEADY_OR_HARMLESS
