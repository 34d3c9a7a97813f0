"""The SQL guard of Spark: queries are answered, what does more than read is refused, whatever it looks like."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.refusal import RefusedError
from orchestration.serving.sql.spark_engine import SparkEngine
from tests.lakes import conf, event, land, minutes, run
from tests.orchestration.serving.sql.attacks import SECRET, files
from tests.orchestration.serving.sql.legitimate import LEGITIMATE
from tests.orchestration.serving.sql.spark_attacks import ATTACKS
from tests.rows import at

START = at("2026-01-05T00:00:00")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a lake of two snapshots, and a file that no query may read."""
    made = tmp_path_factory.mktemp("guarded")
    for number, devices in enumerate((("oven", "fridge"), ("press",))):
        metric = {"press": "vibration"}
        lines = [
            event(device, metric.get(device, "temperature"), n, time) for device in devices for n, time in enumerate(minutes(START, 90))
        ]
        land(made, f"{number}.json", [*lines, "{broken"])
        run(conf(made), spark)
    (made / "secret.txt").write_text(SECRET + "\n")
    return made


@pytest.fixture(scope="module")
def engine(spark: SparkSession, folder: Path) -> Iterator[SparkEngine]:
    with SparkEngine(conf(folder), Limits(seconds=60, rows=1000), spark=spark) as made:
        yield made


def aimed(query: str, folder: Path) -> str:
    """An attack, at files of this test."""
    for name, path in (("{file}", folder / "secret.txt"), ("{lake}", folder / "lake"), ("{out}", folder / "out")):
        query = query.replace(name, str(path))
    return query


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_what_people_ask_is_answered(engine: SparkEngine, every: int) -> None:
    refused = {}
    for query in LEGITIMATE[::every]:
        try:
            engine.ask(Question(query))
        except TidemarkError as error:
            refused[query] = str(error)
    assert refused == {}
    assert len(LEGITIMATE) >= 60


def test_what_tries_more_is_refused_and_nothing_changes(engine: SparkEngine, folder: Path) -> None:
    before, through = files(folder / "lake"), {}
    for query in ATTACKS:
        try:
            through[query] = str(engine.ask(Question(aimed(query, folder))).rows)
        except RefusedError as error:
            assert SECRET not in str(error)
    assert through == {}
    assert len(ATTACKS) >= 150
    assert files(folder / "lake") == before
    assert not (folder / "out").exists()


FRAMES = (
    "{0}",
    "select * from ({0}) t",
    "with x as ({0}) select * from x",
    "with x as ({1}), y as ({0}) select * from x, y",
    "({0}) union all ({1})",
    "select * from silver.readings where exists ({0})",
    "select ({0}) as x",
    "select /* {1} */ * from ({0})",
    "{0} ; {1}",
    "select * from silver.readings r, lateral ({0}) t",
    "from ({0}) |> where true",
    "values (({0}))",
    "select explode(array(({0})))",
    "from silver.readings |> where exists ({0})",
    "from silver.readings |> select device_id, ({0}) as x |> limit 1",
    "from silver.readings |> join ({0}) t on true |> select *",
    "from silver.readings |> union all ({0})",
)


REFUSED_ALONE = (
    "select * from text.`{file}`",
    "select reflect('java.lang.System', 'getProperty', 'user.home')",
    "select identifier('reflect')('java.lang.System', 'getProperty', 'user.home')",
)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("attack", REFUSED_ALONE)
def test_an_attack_is_seen_wherever_it_stands(engine: SparkEngine, folder: Path, frame: str, attack: str) -> None:
    query = frame.format(attack, "select 1 as one")
    with pytest.raises(RefusedError, match=r"cannot be used here|there is no table|extra input"):
        engine.ask(Question(aimed(query, folder)))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "select vlaue from silver.readings",
            "with name `vlaue`.*`value`.*line 1, column 8:\n  select vlaue from silver.readings\n         \\^",
        ),
        ("select *\nfrom silver.reading", "there is no table silver.reading; did you mean silver.readings\\?\n  line 2, column 6:\n"),
        ("select cuont(*) from silver.readings", "the function cuont cannot be used here; did you mean count\\?\n  line 1, column 8"),
        ("selec 1", "Syntax error at or near 'selec'.\n  line 1, column 1:\n  selec 1\n  \\^"),
        ("select 1/0", "Division by zero. Use `try_divide`.*\n  line 1, column 8:\n  select 1/0\n         \\^"),
        ("select cast('x' as int)", 'cannot be cast to "INT"'),
        ("drop table silver.readings", "DROP TABLE cannot be used here"),
        ("select * from marts.hourly", "there are no marts yet: build them with `tidemark dbt build`"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_a_suggestion(engine: SparkEngine, query: str, message: str) -> None:
    with pytest.raises(TidemarkError) as refused:
        engine.ask(Question(query))
    assert re.search(message, str(refused.value), re.DOTALL), str(refused.value)
    assert "at org.apache" not in str(refused.value)


def test_an_answer_is_of_one_snapshot_also_of_an_older_one(engine: SparkEngine) -> None:
    def groups(snapshot: int | None) -> tuple[int, set[str]]:
        answer = engine.ask(Question("select distinct metric from silver.readings", snapshot))
        assert answer.snapshot is not None
        return answer.snapshot.snapshot_id, set(answer.rows["metric"].to_pylist())

    assert groups(0) == (0, {"temperature"})
    assert groups(None) == (1, {"temperature", "vibration"})
    assert groups(0) == (0, {"temperature"})


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
