"""The fast engine answers as Spark does: the same names, types, values, order."""

import random
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.fast.engine import NEWER, FastEngine
from orchestration.serving.sql.fast.expressions import SIGNS, function_of
from orchestration.serving.sql.fast.parser import parsed
from orchestration.serving.sql.fast.signatures import AGGREGATES, CASTS, FUNCTIONS, OF_WINDOWS, OPERATORS, signatures
from orchestration.storage.marts import Build, record, snapshot_for
from orchestration.storage.snapshots import all_snapshots
from orchestration.storage.views import views
from tests.orchestration.serving.sql.fast.answers import assert_same, chunks, listed
from tests.orchestration.serving.sql.fast.lake import edges, every_shape
from tests.orchestration.serving.sql.fast.questions import AGGREGATED, EXPRESSIONS, QUERIES, UNNAMED, WINDOWED

CHUNK = 60


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    conf = every_shape(tmp_path_factory.mktemp("fast"), spark)
    for name, rows in (("characters", characters()), ("instants", instants()), ("numbers", numbers())):
        write_deltalake(conf.lake.local / "ops" / name, rows)
    return conf


@pytest.fixture(scope="module")
def lake(made: Conf, spark: SparkSession) -> Lake:
    """With all tables shown, so that Spark can be asked without looking at their logs again."""
    opened = Lake(made, spark)
    opened.show(views(made, snapshot_for(made.lake, "")).values())
    return opened


@pytest.fixture(scope="module")
def engine(made: Conf) -> FastEngine:
    return FastEngine(made, Limits())


def characters() -> pa.Table:
    """Every character of the first plane that Python knows (see engine.NEWER), by itself and within a text."""
    codes = [code for code in range(1, 0x10000) if unicodedata.category(chr(code)) not in {"Cs", "Cn"} and not NEWER.match(chr(code))]
    texts = [chr(code) for code in codes]
    return pa.table({"n": pa.array(codes, pa.int32()), "c": texts, "w": [f"aB{text}z" for text in texts]})


def instants() -> pa.Table:
    """In all the centuries that DataFusion's clock has nanoseconds for, with and without a fraction of a second."""
    chance = random.Random(1)
    start, seconds = datetime(1700, 1, 1, tzinfo=UTC), int(timedelta(days=365 * 550).total_seconds())
    found = [
        start + timedelta(seconds=chance.randrange(seconds), microseconds=chance.choice((0, 1, 500_000, 999_999))) for _ in range(3000)
    ]
    return pa.table(
        {
            "n": pa.array(range(len(found)), pa.int32()),
            "t": pa.array(found, pa.timestamp("us", "UTC")),
            "u": pa.array([*found[1:], found[0]], pa.timestamp("us", "UTC")),
            "y": pa.array([each.date() for each in found], pa.date32()),
        }
    )


def numbers() -> pa.Table:
    """Half-way between what they may be rounded to, and of every size."""
    chance = random.Random(1)
    halves = [(chance.randrange(-(10**8), 10**8) * 10 + 5) / 10 ** chance.randrange(1, 9) for _ in range(2000)]
    sizes = [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300) for _ in range(1000)]
    whole = [chance.getrandbits(chance.randrange(1, 62)) * chance.choice((1, -1)) for _ in range(3000)]
    return pa.table({"n": pa.array(range(3000), pa.int32()), "x": pa.array(halves + sizes), "l": pa.array(whole, pa.int64())})


def asked(engine: FastEngine, query: str) -> pa.Table:
    return engine.ask(Question(query)).rows


def by_spark(lake: Lake, query: str) -> pa.Table:
    return lake.spark.sql(query.rstrip("; ")).toArrow()


def expressions() -> Iterator[str]:
    """All of EXPRESSIONS; those that the fast engine has no name for, with one."""
    for each in listed(EXPRESSIONS):
        yield f"{each} as x" if each in UNNAMED else each


@pytest.mark.parametrize("chunk", chunks([*expressions()], CHUNK), ids=lambda chunk: chunk[0])
def test_expressions_have_the_names_types_and_values_that_spark_gives_them(lake: Lake, engine: FastEngine, chunk: list[str]) -> None:
    query = f"select {', '.join(chunk)} from ops.edges order by id"
    assert_same(asked(engine, query), by_spark(lake, query), query)


@pytest.mark.parametrize("rows", ["", " where false", " group by f order by f"], ids=["all rows", "no rows", "groups"])
def test_aggregates_have_the_names_types_and_values_that_spark_gives_them(lake: Lake, engine: FastEngine, rows: str) -> None:
    query = f"select {', '.join(listed(AGGREGATED))} from ops.edges{rows}"
    assert_same(asked(engine, query), by_spark(lake, query), query)


def test_windows_have_the_values_that_spark_gives_them(lake: Lake, engine: FastEngine) -> None:
    query = f"select id, {', '.join(f'{each} as w{n}' for n, each in enumerate(listed(WINDOWED)))} from ops.edges order by id"
    assert_same(asked(engine, query), by_spark(lake, query), query)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_have_the_answers_of_spark_in_its_order(lake: Lake, engine: FastEngine, query: str) -> None:
    assert_same(asked(engine, query), by_spark(lake, query), query)


WIDE = (
    "select upper(c), lower(c), length(c), octet_length(c), trim(c), ltrim(w), reverse(w), c like '_', w like 'aB_z', c rlike '^.$', "
    r"c rlike '\\w', c rlike '\\s', c rlike '[^a-z]', c rlike 'x$', w ilike 'AB_Z', w ilike '%K%', left(w, 3), right(w, 2), "
    "substring(w, 2, 2), "
    "instr(w, 'z'), c < 'é', md5(w), lpad(w, 6, 'é'), replace(w, 'z', c), contains(w, c), cast(c as binary) from ops.characters order by n",
    "select year(t), quarter(t), month(t), day(t), dayofweek(t), weekday(y), dayofyear(t), weekofyear(t), hour(t), minute(t), second(t), "
    "date_trunc('year', t), date_trunc('quarter', t), date_trunc('month', t), date_trunc('week', t), date_trunc('day', t), "
    "date_trunc('hour', t), date_trunc('minute', t), date_trunc('second', t), trunc(y, 'quarter'), trunc(y, 'week'), date(t), "
    "cast(t as string), cast(y as string), date_format(t, 'yyyy-MM-dd HH:mm:ss'), unix_seconds(t), unix_millis(t), unix_micros(t), "
    "unix_timestamp(t), datediff(t, u), timestampdiff(second, t, u), timestampdiff(hour, u, t), timestampdiff(week, t, u), unix_date(y), "
    "t + interval 90 minutes as a, t + interval 1 month as b, t - interval 1 year as c, y + interval 5 months as d, date_add(y, 17), "
    "cast(y as timestamp), t < u from ops.instants order by n",
    "select round(x), round(x, 1), round(x, 2), round(x, 3), round(x, 4), x + 1, x * 3, x / 7, x % 3, abs(x), sign(x), -x, sqrt(x), ln(x), "
    "log10(x), log2(x), exp(x), pow(x, 3), cast(l as double), l / 3, l div 7, l % 1000, pmod(l, 7), abs(l), -l, cast(l as string), "
    "try_divide(x, l), greatest(x, l), x > l, isnan(x) from ops.numbers order by n",
    "select floor(x), ceil(x), cast(x as bigint) from ops.numbers where abs(x) < 1e15 order by n",
    "select sum(x), avg(x), min(x), max(x), median(x), percentile(x, 0.1), stddev(l), corr(x, l), count(distinct x) from ops.numbers "
    "where abs(x) < 1e9",
)


@pytest.mark.parametrize("query", WIDE, ids=["characters", "instants", "numbers", "whole numbers", "aggregates"])
def test_many_values_come_out_as_in_spark(lake: Lake, engine: FastEngine, query: str) -> None:
    assert_same(asked(engine, query), by_spark(lake, query), query)


def test_every_function_that_is_known_is_compared() -> None:
    everything = [*listed(EXPRESSIONS), *listed(AGGREGATED), *listed(WINDOWED)]
    nodes = [node for each in everything for node in parsed(f"select {each}").walk()]
    compared = {function_of(node) for node in nodes} | {SIGNS.get(type(node), "") for node in nodes} | {node.key for node in nodes}
    known = {name for table in (OPERATORS, FUNCTIONS, AGGREGATES, OF_WINDOWS, CASTS) for name in signatures(table)}
    others = {"isnull", "isnotnull", "istrue", "isfalse", "binary"}  # nodes of other names; EXPRESSIONS holds them
    assert known - compared == {"now", "current_timestamp", "current_date"} | others  # of these three none is twice the same


def test_rows_without_an_order_are_the_same_ones(lake: Lake, engine: FastEngine) -> None:
    for query in (
        "select * from silver.readings",
        "select device_id, value from silver.readings union select device_id, value from silver.late",
    ):
        assert_same(asked(engine, query), by_spark(lake, query), query, is_ordered=False)


def test_rows_that_are_deleted_by_vectors_and_columns_of_another_name_in_the_files(made: Conf, lake: Lake) -> None:
    path = made.lake / "ops" / "changed"
    lake.spark.sql(
        f"create table delta.`{path}` (i int, `old name` string, p int) using delta partitioned by (p) tblproperties "
        "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    lake.spark.sql(f"insert into delta.`{path}` values (1, 'one', 1), (2, 'two', 1), (3, 'three', 2), (4, null, null)")
    lake.spark.sql(f"alter table delta.`{path}` rename column `old name` to `new name`")
    lake.spark.sql(f"delete from delta.`{path}` where i = 2")
    query = "select a.*, b.i as other from ops.changed a join ops.changed b on a.i <= b.i order by 1, 4"
    expected = lake.spark.sql(query.replace("ops.changed", f"delta.`{path}`")).toArrow()
    assert_same(asked(FastEngine(made, Limits()), query), expected, query)


def test_columns_that_came_later_and_partitions_are_read_from_files_that_lack_them(tmp_path: Path) -> None:
    made = edges(tmp_path)
    path = made.lake / "ops" / "grown"
    write_deltalake(path.local, pa.table({"n": pa.array([1, 3], pa.int32()), "p": ["a b", "007"]}), partition_by=["p"])
    more = pa.table({"n": pa.array([2], pa.int32()), "p": pa.array([None], pa.string()), "x": [float("nan")]})
    write_deltalake(path.local, more, mode="append", schema_mode="merge")
    rows = asked(FastEngine(made, Limits()), "select n, p, isnan(x) as x from ops.grown order by n").to_pylist()
    assert rows == [{"n": 1, "p": "a b", "x": False}, {"n": 2, "p": None, "x": True}, {"n": 3, "p": "007", "x": False}]
    assert asked(FastEngine(made, Limits()), "select n from ops.grown where x > 1").to_pylist() == [{"n": 2}]


def test_it_answers_without_pyspark_and_pandas(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from orchestration.conf.model import Conf, Engine
from orchestration.location import Location
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.fast.engine import FastEngine
from orchestration.serving.sql.output import write
from silver.spec import Policy
folder = Path({str(tmp_path)!r})
conf = Conf(folder, "test", Location(folder / "lake"), Policy(600, 300, 10_000), Engine(), {{}}, {{}}, {{}}, {{}}, ())
answer = FastEngine(conf, Limits()).ask(Question("select i from ops.edges where t > '2026-01-01' order by i limit 1"))
write(answer, "csv")
print({{"pandas", "pyspark"}} & set(sys.modules))
"""
    edges(tmp_path)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("i\n-1\nset()\n", "")


# From here on Spark is shown other snapshots.


def test_a_question_is_over_the_snapshot_of_its_id_or_instant(lake: Lake, engine: FastEngine, made: Conf) -> None:
    query = "select (select count(*) from bronze.events) as events, count(*) as revisions from gold.kitchen_aggregates_history"
    first, second = all_snapshots(made.lake)
    for snapshot in (first, second):
        answer = engine.ask(Question(query, snapshot.snapshot_id))
        assert answer.snapshot == snapshot
        assert_same(answer.rows, lake.sql(query, snapshot.snapshot_id).toArrow(), query)
    assert engine.ask(Question(query, at=second.at - timedelta(microseconds=1))).snapshot == first
    assert asked(engine, query) != engine.ask(Question(query, first.snapshot_id)).rows


def test_marts_are_joined_with_gold_of_the_snapshot_that_they_were_built_of(made: Conf, lake: Lake, engine: FastEngine) -> None:
    with pytest.raises(TidemarkError, match="there are no marts yet"):
        asked(engine, "select * from marts.hourly")
    first, second = all_snapshots(made.lake)
    write_deltalake(made.lake.local / "marts" / "hourly", pa.table({"metric": ["power"], "n": pa.array([1], pa.int64())}))
    record(made.lake, Build(1, datetime.now(UTC), first.snapshot_id, first.generation, {"marts.hourly": 0}))
    write_deltalake(made.lake.local / "marts" / "hourly", pa.table({"metric": ["power"], "n": pa.array([2], pa.int64())}), mode="append")
    query = "select h.n, count(*) from marts.hourly h join gold.kitchen_aggregates_history using (metric) group by h.n"
    answer = engine.ask(Question(query))
    assert answer.snapshot is not None
    assert answer.snapshot.snapshot_id == first.snapshot_id
    assert_same(answer.rows, lake.sql(query).toArrow(), query)
    with pytest.raises(TidemarkError, match=f"^snapshot {second.snapshot_id} does not have all marts"):
        engine.ask(Question(query, second.snapshot_id))
