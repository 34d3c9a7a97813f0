"""The proxy before a store: each client goes through it unchanged, and meets what a test asks for."""

import subprocess
import sys
from typing import Any, Literal

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError
from deltalake import DeltaTable, write_deltalake

from tests.object_store import ACCESS_KEY, SECRET_KEY, Store, client_at
from tests.s3_proxy import ROOT, Fault, Proxy
from tests.waiting import until

LARGE = bytes(range(256)) * 40_000
"""Ten megabytes: boto3 sends the parts of it, and the head of each before its body."""


@pytest.fixture
def client(proxy: Proxy) -> Any:
    return client_at(proxy.endpoint)


def test_requests_are_counted_by_kind_and_key_and_their_bytes_arrive(proxy: Proxy, client: Any, store: Store) -> None:
    bucket = store.bucket()
    client.put_object(Bucket=bucket, Key="a/one", Body=b"1" * 1000)
    client.put_object(Bucket=bucket, Key="a/b c", Body=LARGE)
    assert client.get_object(Bucket=bucket, Key="a/b c")["Body"].read() == LARGE
    client.head_object(Bucket=bucket, Key="a/one")
    client.copy_object(Bucket=bucket, Key="a/two", CopySource=f"{bucket}/a/one")
    assert client.list_objects_v2(Bucket=bucket, Prefix="a/")["KeyCount"] == 3
    client.delete_object(Bucket=bucket, Key="a/one")
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a/two"}]})
    assert proxy.counts() == {"PUT": 2, "GET": 1, "HEAD": 1, "COPY": 1, "LIST": 1, "DELETE": 2}
    assert proxy.counts("a/b c$") == {"PUT": 1, "GET": 1}
    assert proxy.counts(r"\?a/$") == {"LIST": 1}
    assert [request.received_bytes for request in proxy.requests() if request.kind == "GET"] == [len(LARGE)]


def test_delta_tables_and_files_of_arrow_go_through_it(proxy: Proxy, store: Store) -> None:
    bucket = store.bucket()
    options = {"AWS_ENDPOINT_URL": proxy.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    options |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    rows = pa.table({"n": [*range(1000)]})
    write_deltalake(f"s3://{bucket}/table", rows, storage_options=options)
    assert DeltaTable(f"s3://{bucket}/table", storage_options=options).to_pyarrow_table() == rows
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
    files = pafs.S3FileSystem(endpoint_override=proxy.endpoint.removeprefix("http://"), scheme="http", **keys)
    with files.open_output_stream(f"{bucket}/large") as stream:
        stream.write(LARGE)
    with files.open_input_stream(f"{bucket}/large") as read:
        assert read.read() == LARGE
    assert proxy.counts("_delta_log/0+.json$")["PUT"] == 1


def test_a_lost_answer_is_that_of_a_request_that_was_done(proxy: Proxy, client: Any, store: Store) -> None:
    bucket = store.bucket()
    proxy.set_faults(Fault("lose", kinds=["PUT"], key="log/", every=2, most=1))
    client.put_object(Bucket=bucket, Key="log/1", Body=b"1")
    with pytest.raises(ConnectionClosedError):
        client.put_object(Bucket=bucket, Key="log/2", Body=b"2")
    for key in ("log/3", "log/4", "log/5"):  # it has happened once
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    assert client.get_object(Bucket=bucket, Key="log/2")["Body"].read() == b"2"
    assert [(request.key, request.status) for request in proxy.requests() if request.done_to_it] == [(f"{bucket}/log/2", 0)]


@pytest.mark.parametrize("content", [b"x" * 100, LARGE])
def test_a_refused_request_is_not_done_and_the_connection_stays(proxy: Proxy, client: Any, store: Store, content: bytes) -> None:
    bucket = store.bucket()
    proxy.set_faults(Fault("refuse", kinds=["PUT"], most=1))
    with pytest.raises(ClientError, match="503"):
        client.put_object(Bucket=bucket, Key="one", Body=content)
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="one", Body=content)


@pytest.mark.parametrize("content", [b"x" * 100, LARGE])
def test_a_request_that_is_cut_half_way_leaves_no_object(proxy: Proxy, client: Any, store: Store, content: bytes) -> None:
    bucket = store.bucket()
    proxy.set_faults(Fault("cut", kinds=["PUT"], most=1))
    with pytest.raises(BotoCoreError):
        client.put_object(Bucket=bucket, Key="one", Body=content)
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    client.put_object(Bucket=bucket, Key="one", Body=content)
    assert client.get_object(Bucket=bucket, Key="one")["Body"].read() == content


def test_every_request_has_the_latency_that_is_asked_for(proxy: Proxy, client: Any, store: Store) -> None:
    bucket = store.bucket()
    proxy.set_faults(Fault("lose", kinds=["GET"]), seconds=0.001)
    client.put_object(Bucket=bucket, Key="one", Body=b"1")
    with pytest.raises(ConnectionClosedError):
        client.get_object(Bucket=bucket, Key="one")
    assert [[*request.done_to_it] for request in proxy.requests()] == [["delay"], ["lose", "delay"]]


@pytest.mark.parametrize(("does", "is_done"), [("hold", False), ("stall", True)])
def test_a_request_whose_client_is_killed_while_it_waits_is_done_or_not(
    does: Literal["hold", "stall"], is_done: bool, proxy: Proxy, client: Any, store: Store
) -> None:
    bucket = store.bucket()
    proxy.set_faults(Fault(does, kinds=["PUT"], every=2, most=1))
    puts = f"[client.put_object(Bucket={bucket!r}, Key=key, Body=b'x') for key in ('first', 'second')]"
    code = f"from tests.object_store import client_at; client = client_at({proxy.endpoint!r}); {puts}"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as killed:
        until(lambda: proxy.met() == 1 or killed.poll() is not None)
        killed.kill()
    assert [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["first", "second"][: 1 + is_done]
