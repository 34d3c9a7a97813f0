"""A client that asks too much is stopped, and the others are answered: time, result, scratch, memory, processes. `make bi` runs it."""

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from orchestration.serving.bi.inside import MAX_PROCESSES
from tests.orchestration.serving.bi.clients import FailedError, Notebook, Pyhive
from tests.orchestration.serving.bi.served import SECRET, Plant, Server, are_gone
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.bi, pytest.mark.bubblewrap, pytest.mark.slow, pytest.mark.spark]
LIMITED = ("--seconds", "8", "--scratch", "64")
ENDLESS = "select count(*) from range(1000000000) a join range(1000000) b on a.id % 7 = b.id % 3"
LARGE = "insert overwrite directory '/tmp/large' using csv select id, repeat(uuid(), 10) from range(10000000)"
LONG = "select id, repeat(uuid(), 100) as padding from range(0, 2000000, 1, 200)"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Plant:
    made = Plant(tmp_path_factory.mktemp("limits"))
    made.lake.mkdir()
    return made


@pytest.fixture(scope="module")
def thrift(plant: Plant) -> Iterator[Server]:
    with Server(plant, "thrift-server", *LIMITED) as server:
        yield server


@pytest.fixture(scope="module")
def connect(plant: Plant) -> Iterator[Server]:
    with Server(plant, "connect-server", *LIMITED) as server:
        yield server


def refused(client: Pyhive | Notebook, query: str) -> str:
    with pytest.raises(Exception) as error:
        client.rows(query)
    return str(error.value)


def test_jdbc(thrift: Server) -> None:
    with Pyhive(thrift) as greedy, Pyhive(thrift) as other:
        assert re.search("timed ?out", refused(greedy, ENDLESS), re.IGNORECASE)
        assert "No space left on device" in refused(greedy, LARGE)
        assert greedy.rows("select transform(1) using 'ulimit -u; ulimit -c' as (line string)") == [[str(MAX_PROCESSES)], ["0"]]
        assert other.rows("select 1") == greedy.rows("select 1") == [[1]]


def test_a_notebook(connect: Server) -> None:
    with Notebook(connect) as greedy, Notebook(connect) as other:
        assert "OPERATION_CANCELED" in refused(greedy, ENDLESS)
        assert "maxResultSize" in refused(greedy, LONG)
        with pytest.raises(FailedError, match="MemoryError"):
            greedy.asked(program="answer = len(bytearray(64 << 30))")
        assert other.rows("select 1") == greedy.rows("select 1") == [[1]]


def test_a_server_that_a_client_ends_says_so(plant: Plant) -> None:
    with Server(plant, "thrift-server") as server:
        family = server.family()
        with pytest.raises(Exception, match=r".+"), Pyhive(server) as client:
            client.rows("select transform(1) using 'kill -9 -1' as (line string)")
        assert server.process.wait(PATIENCE_SECONDS) == 4
        assert are_gone(family)
    assert server.said[-1].startswith("tidemark: the server ended by itself, with exit code ")


def test_an_archive_that_is_not_there_tells_nothing_and_ends_the_answers_of_its_server_alone(plant: Plant, connect: Server) -> None:
    """Spark keeps it in its list, and fails every later task of the server; `kill` may end it as well. Another server goes on."""
    with Server(plant, "thrift-server") as server:
        with Pyhive(server) as client:
            said = refused(client, f"add archive '{plant.folder}/secret'") + refused(client, "select count(*) from range(10)")
        assert SECRET not in said
    with Notebook(connect) as other:
        assert other.rows("select 1") == [[1]]


def test_without_the_sandbox_it_serves_too_and_ends_with_all_its_processes(spark: SparkSession, plant: Plant) -> None:
    """It does not need bubblewrap for that. Then clients can read whatever its user can."""
    with Server(plant, "connect-server", "--without-sandbox") as server:
        family = server.family()
        with Notebook(server) as client:
            assert client.rows(f"select * from text.`{plant.folder}/secret`") == [[SECRET]]
        server.end(9)
        assert are_gone(family)
