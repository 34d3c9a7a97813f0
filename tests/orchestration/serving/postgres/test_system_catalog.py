"""system_catalog.json has what a PostgreSQL 15 has; a catalog shows it, and what the columns of the lake mean."""

from pathlib import Path

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


def test_a_column_has_the_comment_that_its_table_declares(tmp_path: Path) -> None:
    location = Location(tmp_path / "readings")
    create(location, READINGS)
    database = catalog(columns_of([View("silver.readings", (Part(location),))]), DEFAULTS | {"database": "lake", "user": "me"})
    rows = database.sql("""
        select attname, col_description(attrelid, attnum) from pg_attribute where attrelid = to_regclass('silver.readings')""")
    assert dict(rows.fetchall()) == {field.name: field.metadata[b"comment"].decode() for field in READINGS}


def test_system_tables_and_views_have_their_columns(server: Served) -> None:
    with server.connect() as connection:
        rows = connection.execute("""
            select attname, format_type(atttypid, atttypmod) from pg_catalog.pg_attribute
            where attrelid = 'information_schema.schemata'::regclass and attnum > 0 order by attnum limit 2""").fetchall()
    assert rows == [("catalog_name", "name"), ("schema_name", "name")]
