"""DuckDB over files of a real store: few requests, the guard's limits, NaN, threads, and a store that fails."""

import math
import threading
from collections.abc import Iterable, Iterator
from io import BytesIO
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.serving.sql.duckdb_engine import lock
from orchestration.storage.duckdb_files import TableFiles
from tests.object_store import Store, client_at
from tests.s3_proxy import Fault, Proxy

ROWS = 60_000
"""Of a file: 3 MB, in two row groups."""


class Table:
    """Four large files and a small one behind a proxy, and a file that no query may read."""

    def __init__(self, store: Store, proxy: Proxy) -> None:
        self.bucket, self.proxy = store.bucket(), proxy
        values = [math.nan if n == 17 else float(n % 100) for n in range(ROWS)]
        random = Random(7)
        texts = pa.array([random.randbytes(24).hex() for _ in range(ROWS)])
        made = {
            f"t/{file}.parquet": parquet({"n": range(file * ROWS, (file + 1) * ROWS), "value": values, "text": texts}) for file in range(4)
        }
        made["t/4 [x].parquet"] = parquet({"n": [4 * ROWS], "value": [1.0], "text": ["small"]})
        store.put(self.bucket, made | {"secret.parquet": made["t/4 [x].parquet"]})
        self._client = client_at(proxy.endpoint)
        self.sizes = {f"s3://{self.bucket}/{key}": len(content) for key, content in made.items()}
        self.files = TableFiles(self._read_range, self.sizes)

    def _read_range(self, path: str, start: int, count: int) -> bytes:
        key = path.removeprefix(f"s3://{self.bucket}/")
        answer = self._client.get_object(Bucket=self.bucket, Key=key, Range=f"bytes={start}-{start + count - 1}")
        content: bytes = answer["Body"].read()
        return content

    def connect(self, **config: int) -> duckdb.DuckDBPyConnection:
        made = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False, **config})
        made.register_filesystem(self.files)
        made.execute(f"create view t as from read_parquet({[*self.sizes]}, can_have_nan = true, union_by_name = true)")
        return made


def parquet(columns: dict[str, Iterable[object]]) -> bytes:
    pq.write_table(pa.table({name: [*values] for name, values in columns.items()}), content := BytesIO(), row_group_size=ROWS // 2)
    return content.getvalue()


@pytest.fixture(scope="module")
def table(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with Proxy(tmp_path_factory.mktemp("proxy"), store.endpoint).running() as proxy:
        yield Table(store, proxy)


@pytest.fixture
def connection(table: Table) -> Iterator[duckdb.DuckDBPyConnection]:
    table.proxy.set_faults()
    with table.connect() as made:
        lock(made, ["main"], [*table.sizes])
        yield made


def requests(table: Table, connection: duckdb.DuckDBPyConnection, query: str) -> tuple[object, int]:
    table.proxy.forget()
    return connection.sql(query).fetchall()[0], sum(table.proxy.counts().values())


def test_a_query_asks_for_what_it_needs_alone_and_nothing_is_listed(table: Table, connection: duckdb.DuckDBPyConnection) -> None:
    assert table.proxy.counts() == {"GET": 5}  # the end of each file, and the small one as a whole
    assert requests(table, connection, "select count(*) from t") == ((4 * ROWS + 1,), 0)
    assert requests(table, connection, f"select text from t where n = {4 * ROWS}") == (("small",), 0)
    in_a_row_group = f"select max(n) from t where n between {ROWS} and {ROWS + 10}"
    assert requests(table, connection, in_a_row_group) == ((ROWS + 10,), 1)
    assert requests(table, connection, in_a_row_group) == ((ROWS + 10,), 0)  # kept by DuckDB


def test_nan_is_found_in_each_file(connection: duckdb.DuckDBPyConnection) -> None:
    assert connection.sql("select count(*) from t where isnan(value)").fetchall() == [(4,)]
    assert connection.sql("select count(*) from t where value > 1000").fetchall() == [(4,)]  # NaN is the greatest


@pytest.mark.parametrize(
    "query",
    [
        "from read_parquet('s3://{bucket}/secret.parquet')",
        "from read_parquet('s3://{bucket}/t/*.parquet')",
        "from glob('s3://{bucket}/**')",
        "from read_blob('s3://{bucket}/**')",
        "copy (select 1) to 's3://{bucket}/new.parquet'",
        "copy (select 1) to 's3://{bucket}/t/0.parquet'",
        "attach 's3://{bucket}/new.duckdb' as other",
    ],
)
def test_nothing_but_the_files_of_the_tables_is_read_and_nothing_is_written(
    query: str, table: Table, connection: duckdb.DuckDBPyConnection
) -> None:
    table.proxy.forget()
    with pytest.raises(duckdb.Error):
        connection.sql(query.format(bucket=table.bucket)).fetchall()
    assert not table.proxy.counts()


def test_threads_whose_queries_are_interrupted_get_right_answers_or_none(table: Table) -> None:
    table.proxy.set_faults(seconds=0.05)  # more than a timer waits
    answers, expected = list[object](), sum(range(4 * ROWS + 1))

    def ask(number: int) -> None:
        for turn in range(6):
            with table.connect(threads=1 + number % 3, enable_external_file_cache=False) as own:
                timer = threading.Timer(0.02 if turn % 3 == 0 else 600, own.interrupt)
                timer.start()
                try:
                    answers.extend(own.sql("select sum(n), count(distinct text) > 1 from t").fetchall()[0])
                except duckdb.InterruptException:
                    answers.append("interrupted")
                finally:
                    timer.cancel()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*answers} == {expected, True, "interrupted"}


def test_threads_of_duckdb_that_share_an_open_file_read_each_from_where_it_looked(table: Table) -> None:
    table.proxy.set_faults()
    file = table.files.open(f"s3://{table.bucket}/t/4 [x].parquet")
    whole, read = file.read(), list[bytes]()
    file.seek(10)
    other = threading.Thread(target=lambda: read.append(file.read(4)))
    other.start()
    other.join()
    assert (read, file.read(4)) == ([whole[:4]], whole[10:14])


def test_a_store_that_fails_ends_the_query_with_its_words_and_the_next_one_is_answered(table: Table) -> None:
    table.proxy.set_faults()
    with table.connect() as own:
        table.proxy.set_faults(Fault("refuse"))
        with pytest.raises(duckdb.Error, match=r"ClientError: .*503"):
            own.sql("select sum(length(text)) from t").fetchall()
        table.proxy.set_faults()
        assert own.sql("select sum(length(text)) > 0 from t").fetchall() == [(True,)]
