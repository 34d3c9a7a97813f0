"""What the fast engine refuses: what differs, with the way out; what is wrong, with its place; what tries more than to ask, always."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.fast.engine import FastEngine
from orchestration.serving.sql.refusal import RefusedError
from tests.lakes import conf
from tests.orchestration.serving.sql.attacks import ATTACKS
from tests.orchestration.serving.sql.fast.lake import edges
from tests.orchestration.serving.sql.fast.questions import REFUSED

SECRET = "the-secret-of-the-host"
ATTACKS_ON_THE_ENGINE = """
select * from '{file}'
select * from "{file}"
select * from `{file}`
select * from '{lake}/ops/edges/*.parquet'
select * from read_csv('{file}')
select * from read_parquet('{lake}')
select * from parquet_metadata('{file}')
select * from generate_series(1, 3)
select * from information_schema.tables
select * from information_schema.columns
select * from memory.main.t1
select * from main.t1
select * from duckdb_settings()
select * from duckdb_secrets()
select * from sqlite_master
select * from pragma_table_info('t1')
select * from glob('{lake}/*')
select * from read_text('{file}')
select * from read_blob('{file}')
select * from sniff_csv('{file}')
from '{file}'
from ops.edges
summarize ops.edges
pivot ops.edges on i
select columns('.*') from ops.edges
select getenv('HOME')
select current_setting('memory_limit')
select upper_of(s) from ops.edges
select upper_by_python(s) from ops.edges
select naive(t) from ops.edges
select error('x')
select query('select 1')
select * from query('select 1')
create macro m() as 1
create secret s (type s3)
set enable_external_access = true
set lock_configuration = false
reset memory_limit
use memory
detach memory
export database '{out}'
import database '{lake}'
checkpoint
force install httpfs
load httpfs
select * from t1
select * from public.t1
select c1 from ops.edges
select t1.id from ops.edges
create external table x stored as csv location '{file}'
create table x as select 1
create view x as select 1
create schema x
create function f() returns int return 1
drop table ops.edges
insert into ops.edges select * from ops.edges
update ops.edges set i = 1
delete from ops.edges
truncate table ops.edges
copy ops.edges to '{out}'
copy (select 1) to '{out}' stored as csv
show all
show tables
show columns from ops.edges
show functions
describe ops.edges
explain select 1
explain analyze select * from ops.edges
explain analyze verbose select 1
prepare p as select 1
execute p
deallocate p
begin
commit
analyze table ops.edges
select version()
select input_file_name() from ops.edges
select file_row_index() from ops.edges
select arrow_metadata(s) from ops.edges
select arrow_typeof(s) from ops.edges
select arrow_cast(s, 'Int64') from ops.edges
select current_database()
select current_catalog()
select current_user()
select $1
select :name
select ?
select * from ops.edges where $1 = 1
select 1; select 2
select 1;; drop table ops.edges
select 1 union all (copy ops.edges to '{out}')
with x as (insert into ops.edges select 1) select * from x
with x as (copy ops.edges to '{out}') select 1
select * from (show tables)
select (select * from '{file}')
select * from ops.edges, lateral (select * from '{file}')
select * from unnest(make_array(1, 2))
select unnest(a) from ops.edges
select * from ops.edges as t1 (select)
select "id" from ops.edges where "id" in (select * from `{file}`)
select * from ops.`edges') union select * from (select 1`
select * from ops.`edges" union select 1 --`
select * from `ops.edges`
select * from `../ops`.edges
select * from ops.`../../secret.txt`
select * from delta.`{lake}/ops/edges`
select * from csv.`{file}`
select `id"` from ops.edges
select s as `x" from t1; drop table t1; --` from ops.edges where 1
select 'a'' || (select 1) || ''' from ops.edges where s = 'it\\'s
select e'\\x41'
select x'41'
select U&'d\\0061t'
select $$ text $$
select 1 /* open
select 'open
select * from ops.edges for update
select * from ops.edges at timestamp '2026-01-01'
select * from ops.edges version as of 0
select * into x from ops.edges
select top 5 * from ops.edges
select cast(1 as struct<a int>)
select try_cast('x' as regclass)
select s from ops.edges where s similar to '%'
select s from ops.edges where s ~ '.*'
select @@version
load 'x'
attach '{file}' as x
install httpfs
pragma version
call x()
"""
"""Not one of them is a query of Spark's over the tables of the lake."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    folder = tmp_path_factory.mktemp("refused")
    (folder / "secret.txt").write_text(SECRET + "\n")
    return edges(folder)


@pytest.fixture(scope="module")
def engine(made: Conf) -> FastEngine:
    return FastEngine(made, Limits(seconds=60, rows=1000))


def aimed(query: str, folder: Path) -> str:
    """An attack, at files of this test."""
    for name, path in (("{file}", folder / "secret.txt"), ("{lake}", folder / "lake"), ("{out}", folder / "out")):
        query = query.replace(name, str(path))
    return query


def files(folder: Path) -> Mapping[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("query", REFUSED)
def test_what_may_mean_something_else_is_refused_with_the_way_out(engine: FastEngine, query: str) -> None:
    with pytest.raises(RefusedError, match=r"ask Spark: leave out --engine fast|; use |; rename"):
        engine.ask(Question(query))


@pytest.mark.parametrize("query", ATTACKS_ON_THE_ENGINE.strip().splitlines())
def test_duckdb_is_asked_nothing_but_queries_over_tables_of_the_lake(engine: FastEngine, made: Conf, query: str) -> None:
    before = files(made.folder)
    with pytest.raises(RefusedError):
        engine.ask(Question(aimed(query, made.folder)))
    assert files(made.folder) == before


def test_attacks_on_spark_get_nothing_from_the_fast_engine_either(engine: FastEngine, made: Conf) -> None:
    before = files(made.folder)
    for query in ATTACKS:
        try:
            answer = engine.ask(Question(aimed(query, made.folder)))
        except TidemarkError:
            continue
        assert SECRET not in str(answer.rows.to_pydict()), query
    assert files(made.folder) == before


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select valu from ops.edges", "there is no column valu.\n  line 1, column 8:\n  select valu from ops.edges\n         ^"),
        (
            "select i\nfrom ops.edgs",
            "there is no table ops.edgs; did you mean 'ops.edges'?\n  line 2, column 6:\n  from ops.edgs\n       ^",
        ),
        ("select i from edges", "there is no table edges; did you mean 'ops.edges'?"),
        ("select lenght(s) from ops.edges", "the fast engine knows no function lenght; did you mean 'length'?"),
        ("select e.i from ops.edges f", "there is no column e.i; did you mean 'f.i'?"),
        ("select i from ops.edges a join ops.edges b on a.i = b.i", "i may mean several columns; write the table before it"),
        ("select i, count(*) from ops.edges", "i is neither in GROUP BY nor in an aggregate"),
        ("select *, count(*) from ops.edges", "* is neither in GROUP BY nor in an aggregate.\n  line 1, column 8"),
        ("select f, i + 1 from ops.edges group by f", "i is neither in GROUP BY nor in an aggregate.\n  line 1, column 11"),
        ("select sum(count(*)) from ops.edges", "a count, sum or window stands where rows are not yet grouped"),
        ("select 1 from ops.edges having true", "HAVING without GROUP BY and aggregates as Spark would; use WHERE"),
        ("select i from ops.edges where count(*) > 1", "count answers many rows and cannot be asked of one"),
        ("select i from ops.edges where row_number() over (order by i) = 1", "a function with OVER can only stand in SELECT and ORDER BY"),
        ("select i from ops.edges order by 2", "ORDER BY takes names, or numbers of columns from 1 to 1"),
        ("select count(* except (a)) from ops.edges", "* can stand alone in SELECT and in count(*) only"),
        ("select rank() from ops.edges", "rank needs OVER"),
        ("select rank() over (partition by i) from ops.edges", "rank needs a window with ORDER BY"),
        ("select i from ops.edges union select i, l from ops.edges", "1 columns on the left of UNION, 2 on its right"),
        ("select case when i then 1 end from ops.edges", "int in a condition"),
        ("with a as (select 1), A as (select 2) select * from a", "WITH has two queries of the name a"),
        ("select t from ops.edges where t > '2026-02-30'", "there is no instant '2026-02-30'"),
        ("select 1 +", "'+' is not understood here; if Spark understands it, ask Spark: leave out --engine fast.\n  line 1, column 10"),
        ("select 'open", "what begins here is not closed"),
        ("", "the query ends here"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence_with_its_place(engine: FastEngine, query: str, told: str) -> None:
    with pytest.raises(RefusedError) as refused:
        engine.ask(Question(query))
    assert told in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select l / (i - i) from ops.edges", "it divides by zero"),
        ("select i % (i - i) from ops.edges", "it divides by zero"),
        ("select d % (d - d) from ops.edges where id = 1", "it divides by zero"),
        ("select 2147483647 + id from ops.edges", "a number is too large for its type"),
        ("select 9223372036854775807 * id from ops.edges", "a number is too large for its type"),
        ("select sum(9223372036854775807) from ops.edges", "a number is too large for its type"),
        ("select cast(4000000000 * id as int) from ops.edges", "a number is too large for its type"),
        ("select cast(d as int) from ops.edges", "a number is too large for its type"),
        ("select a[3] from ops.edges", "there is no index 3 in an array of 3"),
        ("select a[-1] from ops.edges where id = 1", "there is no index -1 in an array of 3"),
        ("select element_at(a, 4) from ops.edges where id = 1", "there is no index 3 in an array of 3"),
        ("select (select i from ops.edges)", "a query for one value finds several"),
        ("select cast(b as string) from ops.edges", "a binary value is no text in UTF-8"),
    ],
)
def test_what_ends_a_query_of_spark_ends_it_here_too(engine: FastEngine, query: str, told: str) -> None:
    with pytest.raises(RefusedError, match=told):
        engine.ask(Question(query))


@settings(deadline=None)
@given(st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_a_string_and_an_alias_come_out_as_they_were_written(text: str, name: str) -> None:
    engine = FastEngine(LAKELESS, Limits())
    escaped = "".join(f"\\{each}" if each in "'\\" else each for each in text).replace("\\%", "%")
    if any("\ud800" <= each <= "\udfff" for each in text + name):
        return  # half a character, which no text in UTF-8 holds
    if "marts." in (text + name).lower():
        return  # a question about marts, of which this lake has none
    rows = engine.ask(Question(f"select '{escaped}' as `{name.replace('`', '``')}`")).rows
    assert rows.to_pydict() == {name: [text]}


@settings(deadline=None)
@given(st.text(alphabet="select from where ops.edges i s 'x' (1) , * ; `\"\\-/ union|$\n", max_size=60))
def test_whatever_is_asked_gets_an_answer_or_a_sentence(query: str) -> None:
    try:
        FastEngine(LAKELESS, Limits(seconds=10, rows=10)).ask(Question(query))
    except TidemarkError as error:
        assert "Traceback" not in str(error)


LAKELESS = conf(Path("/nowhere"))
