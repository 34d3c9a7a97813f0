"""system_catalog.json has what a PostgreSQL 15 has; a catalog shows it, and what the columns of the lake mean."""

import subprocess
from pathlib import Path

import psycopg
import pytest

from orchestration.location import Location
from orchestration.serving.postgres.catalog import catalog, columns_of
from orchestration.serving.postgres.settings import DEFAULTS
from orchestration.storage.commit import create
from orchestration.storage.views import Part, View
from silver.schema import READINGS
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.serving.postgres.served import Served
from tests.orchestration.serving.postgres.write_system_catalog import FILE, system_catalog


@pytest.mark.postgres
def test_the_file_is_what_a_postgresql_15_has() -> None:
    with PostgresServer().running() as postgres:
        assert system_catalog(postgres) == FILE.read_text()


def test_a_table_has_its_grain_and_a_column_the_comment_that_the_table_declares(tmp_path: Path) -> None:
    location = Location(tmp_path / "readings")
    create(location, READINGS)
    database = catalog(columns_of([View("silver.readings", (Part(location),))]), DEFAULTS | {"database": "lake", "user": "me"})
    rows = database.sql("""
        select attname, col_description(attrelid, attnum) from pg_attribute where attrelid = to_regclass('silver.readings')""")
    grain = database.sql("select obj_description(to_regclass('silver.readings'), 'pg_class')")
    assert grain.fetchall() == [("One accepted measurement.",)]
    assert dict(rows.fetchall()) == {field.name: field.metadata[b"comment"].decode() for field in READINGS}


def test_system_tables_and_views_have_their_columns(server: Served) -> None:
    with server.connect() as connection:
        rows = connection.execute("""
            select attname, format_type(atttypid, atttypmod) from pg_catalog.pg_attribute
            where attrelid = 'information_schema.schemata'::regclass and attnum > 0 order by attnum limit 2""").fetchall()
    assert rows == [("catalog_name", "name"), ("schema_name", "name")]


def test_psql_describes_all_kinds_of_objects(server: Served) -> None:
    letters = ("", "t", "n+", "u", "l+", "f", "f+", "v", "i", "T", "TS", "x", "b", "dp", "F", "p", "Rp", "C", "L", "A", "o", "S+")
    asked = [word for letter in (*letters, "t+ silver.readings") for word in ("-c", rf"\d{letter}".replace(r"\dl", r"\l"))]
    answered = subprocess.run(["psql", "-XAt", server.url(), *asked], capture_output=True, text=True, check=True)
    assert "ERROR" not in answered.stderr
    assert answered.stdout.splitlines()[-1].endswith("|One accepted measurement.")


def test_a_user_ends_an_own_connection_that_pg_stat_activity_names(server: Served) -> None:
    with server.connect() as own, server.connect(application_name="other") as other, server.connect("bob") as bob:
        other.execute("select 1")  # its name is noted with a query
        (pid,) = own.execute("select pid from pg_stat_activity where application_name = 'other'").fetchone() or (0,)
        with pytest.raises(psycopg.Error):
            bob.execute("select pg_terminate_backend(%s::int)", [pid])
        other.execute("select 1")
        assert own.execute("select pg_terminate_backend(%s::int)", [pid]).fetchone() == (True,)
        with pytest.raises(psycopg.OperationalError):
            for _ in range(1000):  # the answer comes before the signal has arrived
                other.execute("select 1")
