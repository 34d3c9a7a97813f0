"""A lake goes from a disk to a store and back: it answers the same and goes on. A copy that was cut is no lake, and is gone on with."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.conf.load import load
from orchestration.location import lake_at
from orchestration.storage import store_lease
from orchestration.storage.lease import sole_writer
from orchestration.stores.object_store import ObjectStore
from tests.collectors import write_conf
from tests.commands import Tidemark
from tests.lakes import copy_tree, event, land, minutes, run
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.rows import at
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

COMMANDS = (
    *(
        ("status", "--format", "json"),
        ("status", "sources", "--format", "json"),
        ("ledger", "--format", "json"),
        ("verify", "--everything"),
    ),
    ("sql", "--format", "json", "select * from silver.readings order by bronze_batch, bronze_row"),
)
NEW = event("oven", "temperature", 3.0, at("2026-01-05T18:00:00"))
COUNT = "select (select count(*) from bronze.events) as events, count(*) as readings from silver.readings"


@pytest.fixture
def bucket(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {"KEY": ACCESS_KEY, "SECRET": SECRET_KEY, "XDG_STATE_HOME": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(store_lease, "STILL_SECONDS", 1.5)
    return store.bucket()


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The folder of a lake with two bronze batches, a duplicate and a row in quarantine."""
    folder = tmp_path_factory.mktemp("plant")
    written = load(write_conf(folder, plant="path: ./landing, settle_seconds: 0"))
    lines = [event("oven", "temperature", 4.0, instant) for instant in minutes(at("2026-01-05T00:00:00"), 90)]
    for name, content in (("1.jsonl", [*lines, lines[3], "rubbish"]), ("2.jsonl", [lines[0]])):
        land(folder, name, content)
        run(written, spark)
    return folder


@pytest.fixture
def conf(plant: Path, bucket: str, proxy: Proxy, tmp_path: Path) -> Path:
    """The conf of a copy of it, which knows a store."""
    copy_tree(plant, tmp_path)
    with (tmp_path / "conf/pipeline.yml").open("a") as file:
        file.write(f"store: {{endpoint: '{proxy.endpoint}', access_key: '${{env:KEY}}', secret_key: '${{env:SECRET}}'}}\n")
    return tmp_path / "conf"


def moved(conf: Path, lake: str) -> Path:
    """The conf, which names another lake now."""
    file = conf / "pipeline.yml"
    file.write_text("".join(f"lake: {lake}\n" if line.startswith("lake:") else line for line in file.read_text().splitlines(keepends=True)))
    return conf


def files(lake: Path) -> dict[str, bytes]:
    """What a copy has of a lake, but for proofs, which each lake gets of its own."""
    names = {file.relative_to(lake).as_posix(): file for file in lake.rglob("*") if file.is_file()}
    made_anew = r"landing/|intake/[^/]+/host.json|mapped/|spark.log|ops/[.]?proofs|(.*/)?writer[.]|.*[.](lock|seal)$|(.*/)?[.][^/]*[.]crc$"
    return {name: file.read_bytes() for name, file in names.items() if not re.match(made_anew, name)}


def test_a_lake_that_went_to_a_store_and_back_answers_the_same_and_goes_on(
    conf: Path, bucket: str, tmp_path: Path, tidemark: Tidemark, spark: SparkSession
) -> None:
    def answers() -> list[tuple[int, str]]:
        said = [tidemark("--conf", conf, *words) for words in COMMANDS]
        return [(answer.code, answer.out if "verify" not in words else "") for answer, words in zip(said, COMMANDS, strict=True)]

    before, source = answers(), tmp_path / "lake"
    assert [code for code, _ in before] == [0] * len(COMMANDS)
    copied = tidemark("--conf", conf, "lake", "copy", "lake", f"s3://{bucket}/plant")
    assert copied.code == 0 and "have the versions" in copied.out and "`tidemark verify --everything`" in copied.out, copied
    moved(conf, f"s3://{bucket}/plant")
    assert answers() == before
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "another host"))
        assert "plant are claimed by host" in tidemark("--conf", conf, "run", "--once").err.replace("\n", " ")
    assert tidemark("--conf", conf, "lake", "copy", f"s3://{bucket}/plant", "back").code == 0
    moved(conf, "./back")
    assert answers() == before
    was, now = files(source), files(tmp_path / "back")
    assert was == now
    claim = "intake/plant/000000000000-*/1.jsonl"
    assert next((tmp_path / "back").glob(claim)).samefile(next(source.glob(claim)))
    land(tmp_path, "3.jsonl", [NEW])
    (counted,) = tidemark("--conf", conf, "sql", "--format", "json", COUNT).rows
    for _ in range(2):
        run(load(conf), spark)
    (after,) = tidemark("--conf", conf, "sql", "--format", "json", COUNT).rows
    assert after == {name: count + 1 for name, count in counted.items()}
    assert tidemark("--conf", conf, "ledger").code == 0


def test_a_copy_that_was_killed_is_no_lake_and_is_gone_on_with(
    conf: Path, bucket: str, proxy: Proxy, tidemark: Tidemark, store: Store
) -> None:
    address = f"s3://{bucket}/plant"
    words = ("--conf", conf, "lake", "copy", "lake", address)
    proxy.set_faults(Fault("delay", ["PUT"], "_delta_log/", seconds=60))
    process = subprocess.Popen([sys.executable, "-m", "orchestration.cli.app", *map(str, words)])

    def keys() -> list[str]:
        return [entry["Key"] for entry in store.client.list_objects_v2(Bucket=bucket).get("Contents", ())]

    until(lambda: proxy.counts().get("PUT", 0) > 0 and any(".parquet" in key for key in keys()))
    process.kill()
    process.wait()
    proxy.set_faults()
    assert not any("_delta_log" in key for key in keys())
    moved(conf, address)
    refused = tidemark("--conf", conf, "run", "--once")
    assert refused.code == 4 and "is a part of a copy" in refused.err
    resumed = tidemark(*words)
    assert resumed.code == 0 and "were there" in resumed.out, resumed
    assert tidemark("--conf", conf, "ledger").code == 0


def test_one_of_two_copies_is_refused_and_so_is_one_onto_something(conf: Path, bucket: str, tmp_path: Path, tidemark: Tidemark) -> None:
    target = lake_at(f"s3://{bucket}/plant", ObjectStore(load(conf).store.endpoint, None, "${env:KEY}", "${env:SECRET}"))
    copy = ("--conf", conf, "lake", "copy", "lake", target)
    with sole_writer(load(conf).lake):
        assert (held := tidemark(*copy)).code == 3 and "writes the lake at" in held.err
    with sole_writer(load(conf).lake / "spool/hall", doing="collects"):
        assert (held := tidemark(*copy)).code == 3 and "spool/hall" in held.err
    (target / "mine.txt").write(b"")
    assert (refused := tidemark(*copy)).code == 2 and "is not empty: there is s3://" in refused.err
    assert (refused := tidemark("--conf", conf, "lake", "copy", "lake", "lake/in")).code == 2 and "are not apart" in refused.err
    assert (refused := tidemark("--conf", conf, "lake", "copy", "lake", "s3://no/LAKE$")).code == 2


def test_a_damaged_file_is_not_copied_as_if_it_were_whole(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    file = next((tmp_path / "lake/silver/readings").rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    said = tidemark("--conf", conf, "lake", "copy", "lake", "copy")
    assert said.code == 4 and f"{file} holds other bytes than were written" in said.err.replace("\n", "")
