"""What a sink does not touch in Postgres, how everything comes again, and that no message holds a secret."""

from pathlib import Path

import pytest

from orchestration.connectors.sinks.sink_states import Request, read_state, request
from orchestration.errors import TidemarkError
from tests.orchestration.connectors.sinks.postgres_server import PASSWORD, PostgresServer
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, NOW, SmallLake, windows
from tests.orchestration.connectors.sinks.test_postgres import TO, assert_equal, lake_for

pytestmark = pytest.mark.postgres


def test_a_table_that_was_dropped_and_a_reset_bring_all_rows_again(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    snapshot = lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    postgres.rows("drop table received")
    snapshot = lake.pin(0)
    lake.step()
    assert_equal(postgres, lake, AGGREGATES, snapshot)
    postgres.rows("update received set value = 0; insert into received select 'stranger', metric, window_start, window_end from received")
    assert lake.step() is None
    request(lake.conf.lake, "warehouse", Request.RESET, NOW)
    lake.step()
    assert_equal(postgres, lake, AGGREGATES, snapshot)
    assert lake.step() is None


def test_a_table_of_somebody_else_is_left_as_it_is(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    postgres.rows("create table received (mine int)")
    postgres.rows("insert into received values (1)")
    with pytest.raises(TidemarkError, match=r"table public.received was not made by this sink; name another table, or drop that one"):
        lake.step()
    other = SmallLake(tmp_path, {"other": {"table": AGGREGATES, "postgres": TO | {"table": "elsewhere"}}})
    other.step()
    third = SmallLake(tmp_path, {"third": {"table": AGGREGATES, "postgres": TO | {"table": "elsewhere"}}})
    with pytest.raises(TidemarkError, match=r"belongs to sink test/other"):
        third.step()
    assert postgres.rows("select * from received") == [(1,)]


def test_a_table_with_other_columns_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    lake.step()
    postgres.rows("alter table received add column mine int")
    lake.write(AGGREGATES, [*windows(1, [6])]).pin(1)
    with pytest.raises(TidemarkError, match=r"has other columns than gold.kitchen_aggregates \(mine\); drop it, and it is made anew"):
        lake.step()
    postgres.rows("alter table received drop column mine")
    assert lake.step() is not None


def test_no_message_holds_any_part_of_the_connection_string(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_for(tmp_path, AGGREGATES)
    lake.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    wrong = (
        f"{PASSWORD} nonsense",
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/x",
        postgres.dsn.replace(PASSWORD, f"{PASSWORD}x"),
        f"a={PASSWORD}",
    )
    for dsn in wrong:
        monkeypatch.setenv("PG_DSN", dsn)
        with pytest.raises(TidemarkError) as raised:
            lake.step()
        assert PASSWORD not in str(raised.value)
        assert raised.value.__suppress_context__
    monkeypatch.delenv("PG_DSN")
    with pytest.raises(TidemarkError, match=r"\$\{env:PG_DSN\}, which pipeline.yml names, is missing or empty"):
        lake.step()
    monkeypatch.setenv("PG_DSN", postgres.dsn)
    lake.step()
    assert read_state(lake.conf, "warehouse").sent is not None
    holding = [file for file in tmp_path.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    assert holding == []
