"""Transactions, settings, cursors, several statements and errors of a session, as PostgreSQL has them."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.orchestration.serving.postgres.served import Served

NUMBERS = "select i from generate_series(1, 25000) as g(i)"
Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(server: Served) -> Iterator[Connection]:
    with server.connect() as opened:
        yield opened


def one(connection: Connection, query: str) -> Any:
    (value,) = connection.execute(query).fetchone() or (None,)
    return value


def problem_of(connection: Connection, query: str, *parameters: object) -> tuple[str | None, str | None]:
    """SQLSTATE, and the text from the place of the mistake on."""
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(query, parameters or None)
    place = raised.value.diag.statement_position
    return raised.value.sqlstate, query[int(place) - 1 :] if place else None


def test_a_setting_of_a_transaction_ends_with_it_and_one_that_is_rolled_back_is_undone(connection: Connection) -> None:
    connection.execute("set timezone = 'Europe/Berlin'")
    with suppress(psycopg.Rollback), connection.transaction():
        connection.execute("set local timezone = 'Asia/Tokyo'")
        assert one(connection, "show timezone") == "Asia/Tokyo"
        connection.execute("set timezone = 'UTC'")
        raise psycopg.Rollback
    assert one(connection, "show timezone") == "Europe/Berlin"
    connection.execute("reset timezone")
    assert one(connection, "show timezone") == "UTC"


def test_a_wrong_value_of_a_setting_is_refused_and_the_old_one_stays(connection: Connection) -> None:
    assert problem_of(connection, "set timezone = 'Mars/Olympus'") == ("22023", None)
    assert problem_of(connection, "set tidemark.snapshot = 4711") == ("22023", None)
    assert one(connection, "show timezone") == "UTC"


def test_after_an_error_a_transaction_takes_nothing_but_its_end_or_a_savepoint(connection: Connection) -> None:
    connection.execute("begin; savepoint before")
    assert problem_of(connection, "select nope from silver.readings") == ("42703", "nope from silver.readings")
    assert problem_of(connection, "select 1") == ("25P02", None)
    connection.execute("rollback to before")
    assert one(connection, "select 2") == 2
    connection.execute("commit")


@pytest.mark.parametrize(
    ("query", "state", "rest"),
    [
        ("select * from silver.nope", "42P01", "silver.nope"),
        ("select 'ü', nope(1)", "42883", "nope(1)"),
        ("select 1 +", "42601", None),
        ("select 'x'::int", "22P02", None),
        ("select 1 / 0", "22012", None),
        ("select 300::tinyint", "22003", None),
        ("create temp table t(a int)", "25006", None),
        ("copy silver.readings from stdin", "25006", None),
        ("copy silver.readings to '/tmp/rows.csv'", "42501", None),
        ("set nope.nope.", "42601", None),
        ("declare c cursor for select 1", "25P01", None),
        ("fetch all from nope", "34000", None),
        ("listen told", "0A000", None),
    ],
)
def test_a_mistake_has_the_state_of_postgresql_and_its_place(connection: Connection, query: str, state: str, rest: str | None) -> None:
    told, where = problem_of(connection, query)
    assert told == state
    if rest:
        assert where == rest


def test_the_place_of_a_mistake_is_that_in_the_text_before_its_parameters(connection: Connection) -> None:
    assert problem_of(connection, "select %s::text, nope from silver.readings", "a long text that stands before")[0] == "42703"
    with pytest.raises(psycopg.Error) as raised:
        connection.execute("select %s::text, nope from silver.readings", ("a long text that stands before",))
    assert raised.value.diag.statement_position == str(len("select $1::text, ") + 1)


def test_a_cursor_goes_on_while_other_queries_come_and_one_with_hold_outlives_its_transaction(connection: Connection) -> None:
    with connection.transaction():
        connection.execute(f"declare numbers cursor for {NUMBERS}")
        connection.execute(f"declare kept cursor with hold for {NUMBERS}")
        assert connection.execute("fetch 2 from numbers").fetchall() == [(1,), (2,)]
        assert one(connection, "select count(*) from silver.readings") > 0
        connection.execute("move 10 in numbers")
        assert connection.execute("fetch forward 1 from numbers").fetchall() == [(13,)]
        assert len(connection.execute("fetch all from numbers").fetchall()) == 25000 - 13
        assert connection.execute("fetch next from numbers").fetchall() == []
    assert problem_of(connection, "fetch 1 from numbers") == ("34000", None)
    assert connection.execute("fetch 1 from kept").fetchall() == [(1,)]
    connection.execute("close kept")
    assert problem_of(connection, "fetch 1 from kept") == ("34000", None)


def test_statements_of_one_message_are_answered_up_to_the_first_mistake(connection: Connection) -> None:
    raw = connection.pgconn
    raw.send_query(b"select 1 as a; select 2 as b; select nope; select 3")
    answers = []
    while (result := raw.get_result()) is not None:
        answers.append(result.get_value(0, 0) or result.error_field(psycopg.pq.DiagnosticField.SQLSTATE))
    assert answers == [b"1", b"2", b"42703"]
    assert one(connection, "select 4") == 4


def test_columns_have_the_names_that_postgresql_gives_them(connection: Connection) -> None:
    query = """select count(*), 1, 1::int8, 'a' || 'b', max(value) as "MAX(value)", coalesce(max(value), 0), case when true then 1 end,
      count(distinct device_id) as "CountStar()" from silver.readings"""
    names = [column.name for column in connection.execute(query).description or ()]
    assert names == ["count", "?column?", "int8", "?column?", "MAX(value)", "coalesce", "case", "CountStar()"]
    counted = connection.execute("with n as (select device_id, count(*) from silver.readings group by 1) select sum(count) from n")
    assert counted.fetchone() == connection.execute("select count(*) from silver.readings").fetchone()


@pytest.mark.parametrize(("options", "separator"), [("csv header", ","), ("(format csv, header true, delimiter ';')", ";")])
def test_copy_writes_csv_that_a_reader_of_csv_understands(connection: Connection, options: str, separator: str) -> None:
    query = """select * from (values (1, 'a,b;"c"', null), (2, '', 'x')) as v(i, t, n) order by i"""
    with connection.cursor().copy(f"copy ({query}) to stdout {options}") as blocks:
        written = b"".join(map(bytes, blocks)).decode()
    assert [*csv.reader(io.StringIO(written), delimiter=separator)] == [["i", "t", "n"], ["1", 'a,b;"c"', ""], ["2", "", "x"]]
    assert written.splitlines()[2] == f'2{separator}""{separator}x', "an empty text is no null"


def test_a_plan_is_one_column_of_lines_or_one_value_of_json(connection: Connection) -> None:
    with connection.cursor(row_factory=dict_row) as cursor:
        lines = cursor.execute("explain (analyze false, verbose true, costs true) select count(*) from silver.readings").fetchall()
        assert len(lines) > 1
        assert [*lines[0]] == ["QUERY PLAN"]
        [plan] = cursor.execute("explain (format json) select count(*) from silver.readings").fetchall()
    assert plan["QUERY PLAN"][0]["name"]
