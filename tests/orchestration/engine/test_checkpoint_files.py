"""Files of checkpoints in an object store: created once, whatever the network does to the requests, and by few of them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.object_store import Store
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

pytestmark = pytest.mark.spark
STATE, ENTRY = True, False
"""Whether a file may be overwritten."""


class Checkpoint:
    """A checkpoint in a bucket of its own, as a query of Spark writes it."""

    def __init__(self, spark: SparkSession, store: Store, proxy: Proxy) -> None:
        self.bucket, self._store = store.bucket(), store
        jvm: Any = spark._jvm
        self._paths: Any = jvm.org.apache.hadoop.fs.Path
        hadoop: Any = spark._jsparkSession.sessionState().newHadoopConf()
        hadoop.set("fs.s3a.endpoint", proxy.endpoint)
        managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
        self.files = managers.create(self._paths(f"s3://{self.bucket}/query"), hadoop)
        proxy.forget()

    def path(self, name: str) -> Any:
        return self._paths(f"s3://{self.bucket}/query/{name}")

    def write(self, name: str, content: bytes, kind: bool) -> None:
        stream = self.files.createAtomic(self.path(name), kind)
        stream.write(content)
        stream.close()

    def content(self, name: str) -> bytes:
        answer: bytes = self._store.client.get_object(Bucket=self.bucket, Key=f"query/{name}")["Body"].read()
        return answer

    def names(self) -> list[str]:
        return [listed["Key"] for listed in self._store.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]


@pytest.fixture
def checkpoint(spark_in_store: SparkSession, store: Store, proxy: Proxy) -> Checkpoint:
    return Checkpoint(spark_in_store, store, proxy)


def test_a_file_is_one_request(checkpoint: Checkpoint, proxy: Proxy) -> None:
    for name, kind in {"offsets/0": ENTRY, "state/0/0/1.delta": STATE}.items():
        checkpoint.write(name, b"content", kind)
        assert checkpoint.content(name) == b"content"
    assert proxy.counts() == {"PUT": 2}


def test_no_folder_is_made_or_asked_for_and_one_without_files_is_empty(checkpoint: Checkpoint, proxy: Proxy) -> None:
    for name in ("offsets", "state/0/0"):
        checkpoint.files.mkdirs(checkpoint.path(name))
    assert checkpoint.files.exists(checkpoint.path("offsets")) and not proxy.counts()
    assert not checkpoint.files.exists(checkpoint.path("offsets/0"))
    assert [*checkpoint.files.list(checkpoint.path("offsets"))] == []
    checkpoint.write("offsets/0", b"content", ENTRY)
    assert [entry.getPath().getName() for entry in checkpoint.files.list(checkpoint.path("offsets"))] == ["0"]
    assert checkpoint.names() == ["query/offsets/0"]


def test_an_entry_is_created_once_and_state_is_replaced(checkpoint: Checkpoint) -> None:
    for name, kind in {"offsets/0": ENTRY, "1.delta": STATE}.items():
        checkpoint.write(name, b"first", kind)
    with pytest.raises(Py4JJavaError, match=r"FileAlreadyExistsException: .*offsets/0 was written by another process"):
        checkpoint.write("offsets/0", b"second", ENTRY)
    checkpoint.write("1.delta", b"second", STATE)
    assert (checkpoint.content("offsets/0"), checkpoint.content("1.delta")) == (b"first", b"second")


def test_an_entry_whose_answer_is_lost_is_written_and_told_so(checkpoint: Checkpoint, proxy: Proxy) -> None:
    proxy.set_faults(Fault("lose", ["PUT"], most=1))
    checkpoint.write("offsets/0", b"mine", ENTRY)
    assert checkpoint.content("offsets/0") == b"mine"


def test_an_entry_on_its_way_arrives_in_vain_when_another_process_was_first(checkpoint: Checkpoint, proxy: Proxy, store: Store) -> None:
    proxy.set_faults(Fault("wait", ["PUT"], most=1))
    with ThreadPoolExecutor(1) as threads:
        on_its_way = threads.submit(checkpoint.write, "offsets/0", b"late", ENTRY)
        until(lambda: proxy.met() == 1)
        store.put(checkpoint.bucket, {"query/offsets/0": b"of another"})
        proxy.set_faults()
        assert isinstance(on_its_way.exception(), Py4JJavaError)
    assert checkpoint.content("offsets/0") == b"of another"


def test_what_is_given_up_leaves_nothing(checkpoint: Checkpoint) -> None:
    for kind in (ENTRY, STATE):
        stream = checkpoint.files.createAtomic(checkpoint.path("1"), kind)
        stream.write(b"half")
        stream.cancel()
        stream.close()
    assert checkpoint.names() == []
