"""The DuckDB engine: what people ask is answered with the right rows of one snapshot, mistakes in a sentence with their place."""

import math
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.rendering import plain, values
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from tests.lakes import conf
from tests.orchestration.serving.sql.edges import EDGES, edges
from tests.orchestration.serving.sql.plant import minute, plant
from tests.orchestration.serving.sql.questions import QUESTIONS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """With `ops.edges`, and a folder of a name that SQL would read otherwise."""
    folder = tmp_path_factory.mktemp("asked") / "a plant's 50% lake"
    edges(folder)
    return plant(folder)


@pytest.fixture(scope="module")
def engine(made: Conf) -> DuckDbEngine:
    return DuckDbEngine(made, Limits(seconds=60, rows=1000))


def asked(engine: DuckDbEngine, query: str, snapshot: int | None = None) -> list[list[Any]]:
    rows = engine.ask(Question(query, snapshot)).rows
    return [plain(list(row)) for row in zip(*map(values, rows.columns), strict=True)]


@pytest.mark.parametrize(("query", "expected"), QUESTIONS, ids=[query for query, _ in QUESTIONS])
def test_what_people_ask_is_answered_with_these_rows(engine: DuckDbEngine, query: str, expected: list[list[Any]]) -> None:
    assert asked(engine, query) == expected


def test_a_question_is_over_the_snapshot_of_its_id_or_instant(engine: DuckDbEngine) -> None:
    highest = "select max(value) from gold.kitchen_aggregates_history"
    query = f"select (select count(*) from bronze.events), ({highest}), max(value) from silver.readings"
    assert asked(engine, query) == asked(engine, query, 1) == [[12, 30.0, 30.0]]
    assert asked(engine, query, 0) == [[5, 21.0, 22.0]]
    before = engine.ask(Question(query, at=minute(120) - timedelta(microseconds=1)))
    assert before.snapshot is not None
    assert before.snapshot.snapshot_id == 0
    with pytest.raises(TidemarkError, match="there is no snapshot 7"):
        asked(engine, query, 7)


def test_rows_that_came_after_the_snapshot_are_in_no_table(engine: DuckDbEngine, made: Conf) -> None:
    tables = [name for (name,) in asked(engine, "select schema || '.' || name from (show all tables) where name <> 'ledger'")]
    assert "silver.readings" in tables
    for table in (name for name in tables if not name.startswith("ops.")):
        assert "99.0" not in str(engine.ask(Question(f"from {table}")).rows.to_pydict())
    assert 99.0 in DeltaTable(made.lake.local / "silver" / "readings").to_pyarrow_table()["value"].to_pylist()


def test_marts_are_joined_with_gold_of_the_snapshot_that_they_were_built_of(engine: DuckDbEngine) -> None:
    query = "select h.n, a.value from marts.hourly h join gold.kitchen_aggregates a using (device_id)"
    assert asked(engine, query) == asked(engine, query, 0) == [[3, 21.0]]
    with pytest.raises(TidemarkError, match=r"^snapshot 1 does not have all marts"):
        asked(engine, query, 1)


def test_every_type_of_column_comes_out_as_it_was_written(engine: DuckDbEngine) -> None:
    found = engine.ask(Question("from ops.edges order by id")).rows
    assert [str(kind) for kind in found.schema.types[:8]] == [
        "int32",
        "int64",
        "int64",
        "double",
        "double",
        "string",
        "string",
        "list<l: double>",
    ]
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert [str(row) for row in rows] == [str(row).replace("datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')") for row in EDGES]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from ops.edges where isnan(d) or isnan(e) order by id", [[3], [6]]),
        ("select id from ops.edges where d > 1e300 order by id", [[3], [4]]),
        ("select id from ops.edges where t < '1970-01-01' and t >= '1969-12-31 23:30:00.000001Z'", [[2]]),
        ("select extract(hour from t), t::varchar from ops.edges where id = 2", [[23, "1969-12-31 23:30:00.000001+00"]]),
        ("select sum(l)::varchar, sum(9223372036854775807::hugeint) > 9223372036854775807 from ops.edges", [["4000000024", True]]),
        ("select sum(9223372036854775807) as s from range(2)", [[18446744073709551614]]),
        ("select u - t from ops.edges where id = 7", [["00:00:00.001"]]),
        ("select id from ops.edges where s like '%ß%' or s ilike 'ärger%' order by id", [[6], [10]]),
        ("select v['k'], map_keys(v) from ops.edges where id = 3", [[None, ["k", "j"]]]),
        ("select 340282366920938463463374607431768211455::uhugeint, 5::uhugeint", [["340282366920938463463374607431768211455", "5"]]),
        ("select time '24:00:00', '24:00:00+00'::timetz, [time '24:00:00']", [["24:00:00", "24:00:00+00", "['24:00:00']"]]),
        ("select '12345678901234567890'::bignum::bignum, '0101'::bit, '1'::variant", [["12345678901234567890", "0101", "1"]]),
        ("select {'time': 1, 'uhugeint': 2} as a, 1 as a, map {'k': 1}", [[{"time": 1, "uhugeint": 2}, 1, {"k": 1}]]),
    ],
)
def test_numbers_instants_and_texts_at_the_edges(engine: DuckDbEngine, query: str, expected: list[list[Any]]) -> None:
    assert asked(engine, query) == expected


def test_questions_over_no_snapshot_see_what_came_between_them(tmp_path: Path) -> None:
    edges(tmp_path)
    engine, query = DuckDbEngine(conf(tmp_path), Limits()), "select count(*) as n from ops.edges"

    def counted(beside: str) -> Any:
        return engine.ask(Question(query, beside=beside)).rows["n"].to_pylist()

    assert counted("ops.edges") == counted("ops.edges") == [10]
    with pytest.raises(RefusedError, match="Could not convert"):
        engine.ask(Question("select 'x'::int from ops.edges", beside="ops.edges"))
    assert counted("ops.edges") == [10]
    table = tmp_path / "lake/ops/edges"
    write_deltalake(str(table), DeltaTable(str(table)).to_pyarrow_table().slice(0, 3), mode="append")
    assert counted("ops.edges") == counted("") == counted("ops.edges") == [13]


def test_an_instant_before_the_year_1_can_be_asked(tmp_path: Path) -> None:
    made, year_0 = edges(tmp_path), -62_135_600_400_000_000
    times = pa.array([year_0, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    write_deltalake(made.lake.local / "ops" / "old", pa.table({"n": [1, 2], "t": times}))
    engine = DuckDbEngine(made, Limits())
    assert asked(engine, "select n, epoch_us(t) from ops.old where t < '0001-01-01'::timestamptz") == [[1, year_0]]
    assert len(asked(engine, "select t from ops.old")) == 2


def test_columns_that_came_later_and_partitions_are_read_from_files_that_lack_them(tmp_path: Path) -> None:
    made = edges(tmp_path)
    path = made.lake.local / "ops" / "grown"
    write_deltalake(path, pa.table({"n": pa.array([1, 3], pa.int32()), "p": ["a b", "007"]}), partition_by=["p"])
    more = pa.table({"n": pa.array([2], pa.int32()), "p": pa.array([None], pa.string()), "x": [math.nan]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    engine = DuckDbEngine(made, Limits())
    assert asked(engine, "select n, p, isnan(x) from ops.grown order by n") == [[1, "a b", None], [2, None, True], [3, "007", None]]
    assert asked(engine, "select n from ops.grown where x > 1") == [[2]]


def test_rows_that_are_deleted_by_vectors_and_columns_of_another_name_in_the_files(tmp_path: Path, spark: SparkSession) -> None:
    made = edges(tmp_path)
    name = f"delta.`{made.lake / 'ops' / 'changed'}`"
    spark.sql(
        f"create table {name} (i int, `old name` string, p int) using delta partitioned by (p) tblproperties "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"insert into {name} values (1, 'one', 1), (2, 'two', 1), (3, 'three', 2), (4, null, null)")
    spark.sql(f"alter table {name} rename column `old name` to `new name`")
    spark.sql(f"delete from {name} where i = 2")
    rows = engine_rows(made, 'select i, "new name", p from ops.changed order by i')
    assert rows == [[1, "one", 1], [3, "three", 2], [4, None, None]]
    with pytest.raises(RefusedError, match="only reads"):
        engine_rows(made, "with x as (delete from ops.changed returning *) select * from x")


def engine_rows(made: Conf, query: str) -> list[list[Any]]:
    return asked(DuckDbEngine(made, Limits()), query)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select vlaue\nfrom silver.readings", 'column "vlaue" not found.*\nCandidate bindings: "value".*\nLINE 1: select vlaue\n {15}\\^'),
        (
            "select *\nfrom silver.reading",
            "^there is no table silver.reading; did you mean silver.readings\\?\nLINE 2: from silver.reading\n {13}\\^",
        ),
        ("select * from gold.readings", "there is no table gold.readings; did you mean silver.readings\\?"),
        ("select * from nowhere.x", "there is no table nowhere.x; SHOW ALL TABLES lists them"),
        ("select lenght(metric) from silver.readings", 'name lenght does not exist!\nDid you mean "length"\\?\nLINE 1: .*\n {15}\\^'),
        (
            "pivot silver.reading on metric",
            "there is no table silver.reading; did you mean silver.readings\\?\nLINE 1: pivot silver.reading",
        ),
        ("selec 1", 'syntax error at or near "selec"\nLINE 1: selec 1\n {8}\\^'),
        ("select 'open", "unterminated string literal"),
        ("select metric, count(*) from silver.readings", '"metric" must appear in the GROUP BY clause'),
        ("select 1 // 0", "Division by zero .*Use TRY\\(...\\) to return NULL for this expression\\.$"),
        ("select 'x'::int", "Could not convert string 'x' to INT32\nLINE 1: select 'x'::int"),
        ("select (select device_id from silver.readings)", "More than one row returned by a subquery"),
        ("select ?", "Values were not provided"),
        ("drop table silver.readings", "^DROP cannot be used here: a query only reads, by SELECT, DESCRIBE, SUMMARIZE or EXPLAIN\\.$"),
        ("select 1; select 2", "^give one statement at a time\\.$"),
        ("-- nothing", "^the query is empty\\.$"),
        ("select '" + "x" * 70_000 + "'", "^the query is longer than 65,536 bytes: split it\\.$"),
        ("select * from duckdb_settings()", "^duckdb_settings cannot be used here.*\n  line 1, column 15:\n  select .*\n {16}\\^"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_hint(engine: DuckDbEngine, query: str, told: str) -> None:
    with pytest.raises(RefusedError, match=told) as refused:
        engine.ask(Question(query))
    assert refused.value.exit_code == 2


def test_a_file_that_is_gone_is_told_without_its_path(tmp_path: Path) -> None:
    made = edges(tmp_path)
    for file in (made.lake.local / "ops" / "edges").glob("*.parquet"):
        file.unlink()
    with pytest.raises(TidemarkError, match="DuckDB cannot answer this query") as broken:
        engine_rows(made, "select * from ops.edges")
    assert str(tmp_path) not in str(broken.value)


def test_a_plan_names_no_file(engine: DuckDbEngine, made: Conf) -> None:
    for query in (
        "explain analyze from silver.readings",
        "explain (analyze, format json) from silver.readings",
        "explain from bronze.events",
    ):
        shown = str(asked(engine, query))
        assert "parquet" not in shown.replace("READ_PARQUET", "")
        assert "50%" not in shown
        assert str(made.lake.parent.parent) not in shown


def test_it_answers_without_pyspark_sqlglot_and_pandas(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from orchestration.conf.place import Place
from orchestration.location import Location
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.output import write
engine = DuckDbEngine(Place(Location(Path({str(tmp_path)!r}) / "lake"), {{}}, {{}}, dict), Limits())
write(engine.ask(Question("select i from ops.edges where t > '2026-01-01' order by i limit 1")), "csv")
print({{"pandas", "pyspark", "sqlglot"}} & set(sys.modules))
"""
    edges(tmp_path)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("i\n-1\nset()\n", "")


@given(st.text(alphabet="select from where ops.edges i s 'x' (1) , * ; `\"\\-/ union|$\n\u00a0", max_size=60))
def test_whatever_is_asked_gets_an_answer_or_a_sentence(query: str) -> None:
    try:
        DuckDbEngine(conf(Path("/nowhere")), Limits(seconds=10, rows=10)).ask(Question(query))
    except TidemarkError as error:
        assert "Traceback" not in str(error)
