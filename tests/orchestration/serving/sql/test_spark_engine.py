"""The Spark engine: one query over one snapshot is answered, commands are refused, mistakes are sentences."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.spark_engine import SparkEngine
from tests.lakes import conf
from tests.orchestration.serving.sql.attacks import files
from tests.orchestration.serving.sql.plant import plant

QUERIES = (
    "select count(*) as n from silver.readings;",
    "-- how many\nselect metric, count(*) as n from silver.readings group by metric /* by metric */",
    "with hot as (select * from silver.readings where value > 50) select count(*) as n from hot",
    "from silver.readings |> where value > 50 |> aggregate count(*) as n",
    "table ops.ledger",
    "values (1, 'a'), (2, 'b')",
    "select * from silver.readings r join bronze.events e using (bronze_batch, bronze_row) order by r.event_time limit 3",
    "(select 1 as one) union all (select 2)",
)
COMMANDS = (
    "set",
    "set spark.sql.ansi.enabled=false",
    "use silver",
    "show tables in silver",
    "explain select 1",
    "reset",
    "clear cache",
    "select 1; select 2",
    "select 1; drop view silver.readings",
    "select 1) union (select 2",
    "create table gold.x using delta location '{out}' as select 1 as a",
    "create view gold.v as select 1",
    "drop view silver.readings",
    "insert into delta.`{lake}/silver/readings` select * from silver.readings",
    "insert overwrite local directory '{out}' select 1",
    "from silver.readings insert overwrite directory '{out}' using csv select value",
    "with t as (select 1 as a) insert into gold.x select * from t",
    "delete from delta.`{lake}/silver/readings` where true",
    "update silver.readings set value = 0",
    "merge into silver.readings t using silver.readings s on t.value = s.value when matched then delete",
    "vacuum '{lake}/silver/readings' retain 0 hours",
    "optimize silver.readings",
    "cache table silver.readings",
    "begin select 1; end",
    "execute immediate 'select 1'",
    "call system.procedure()",
    "add jar '{out}'",
    "",
    "-- only a comment",
    ";",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a lake of two snapshots."""
    made = tmp_path_factory.mktemp("asked")
    plant(made)
    return made


@pytest.fixture(scope="module")
def engine(spark: SparkSession, folder: Path) -> Iterator[SparkEngine]:
    with SparkEngine(conf(folder), Limits(seconds=60, rows=1000), spark=spark) as made:
        yield made


def test_what_people_ask_is_answered(engine: SparkEngine) -> None:
    assert [engine.ask(Question(query)).rows.num_rows for query in QUERIES] == [1, 3, 1, 1, 3, 2, 3, 2]


def test_a_command_is_refused_and_nothing_changes(engine: SparkEngine, folder: Path) -> None:
    before, answered = files(folder / "lake"), []
    for command in COMMANDS:
        try:
            engine.ask(Question(command.replace("{lake}", str(folder / "lake")).replace("{out}", str(folder / "out"))))
            answered.append(command)
        except RefusedError as error:
            assert "at org.apache" not in str(error)
    assert answered == []
    assert files(folder / "lake") == before
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "select vlaue from silver.readings",
            "with name `vlaue`.*`value`.*line 1, column 8:\n  select vlaue from silver.readings\n         \\^",
        ),
        ("select *\nfrom silver.reading", "`silver`.`reading` cannot be found.*\n  line 2, column 6:\n"),
        ("selec 1", "Syntax error at or near 'selec'.\n  line 1, column 1:\n  selec 1\n  \\^"),
        ("select 1/0", "Division by zero. Use `try_divide`.*\n  line 1, column 8:\n  select 1/0\n         \\^"),
        ("select cast('x' as int)", 'cannot be cast to "INT"'),
        ("drop table silver.readings", "this is no query, or more than one"),
        ("select * from gold.kitchen_live", "gold.kitchen_live is not available in Spark; query it with `tidemark sql`"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_no_trace(engine: SparkEngine, query: str, message: str) -> None:
    with pytest.raises(TidemarkError) as refused:
        engine.ask(Question(query))
    assert re.search(message, str(refused.value), re.DOTALL), str(refused.value)
    assert "at org.apache" not in str(refused.value)


def test_an_answer_is_of_one_snapshot_also_of_an_older_one(engine: SparkEngine) -> None:
    def metrics(snapshot: int | None) -> tuple[int, set[str]]:
        answer = engine.ask(Question("select distinct metric from silver.readings", snapshot))
        assert answer.snapshot is not None
        return answer.snapshot.snapshot_id, set(answer.rows["metric"].to_pylist())

    assert metrics(0) == (0, {"temperature", "power"})
    assert metrics(None) == (1, {"temperature", "power", "vibration"})
    assert metrics(0) == (0, {"temperature", "power"})


def test_rows_above_the_limit_are_cut_off_and_the_answer_says_so(engine: SparkEngine) -> None:
    answer = engine.ask(Question("select id from range(1001)"))
    assert (answer.rows.num_rows, answer.is_cut_off) == (1000, True)
    answer = engine.ask(Question("select id from range(1000)"))
    assert (answer.rows.num_rows, answer.is_cut_off) == (1000, False)


def test_a_query_ends_with_its_time_and_the_next_is_answered(spark: SparkSession, folder: Path) -> None:
    with SparkEngine(conf(folder), Limits(seconds=2), spark=spark) as hasty:
        with pytest.raises(RefusedError, match="the query took longer than 2 s and was cancelled"):
            hasty.ask(Question("select count(*) from range(1000000000000)"))
        assert hasty.ask(Question("select 1 as one")).rows.to_pylist() == [{"one": 1}]
