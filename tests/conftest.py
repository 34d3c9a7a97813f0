"""What several tests need: one Spark session, made when the first test asks for it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.session import session
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.broker import Broker
    from tests.object_store import Store
    from tests.s3_proxy import Proxy

PROGRAMS = {
    "alertmanager": "prometheus-alertmanager",
    "chromium": "chromium",
    "mosquitto": "mosquitto",
    "postgres": "postgres",
    "prometheus": "prometheus",
}
"""By marker: what a test cannot do without, and no package brings."""
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))])
"""Debian keeps servers away from it."""

# A machine that is busy with another test is no mistake. `make slow` takes all examples.
settings.register_profile("all", deadline=None, max_examples=300)
settings.register_profile("few", deadline=None, max_examples=25)
settings.load_profile("few")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Counts and seeds; what a test is left out or taken by is a marker."""
    options = parser.getgroup("tidemark")
    options.addoption("--hostile", type=int, default=10_000, help="hostile payloads of the topic `fuzz`")
    options.addoption("--minutes", type=float, default=3.0, help="how long the topic `soak` disturbs a plant")
    options.addoption("--room", type=Path, help="folder with the three files of README's walk-through")
    options.addoption("--seed", type=int, help="of what a test makes at random; without it each test has its own")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the fixture `spark`, itself or by another one, has the marker; without its program a test is left out.

    Files that start Spark come first: they take minutes, and what takes seconds fills up the end where processes share the files.
    """
    missing = {marker: program for marker, program in PROGRAMS.items() if shutil.which(program, path=PATH) is None}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        for marker, program in missing.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=f"{program} is missing: `make servers` installs it"))
    of_spark = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in of_spark)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int | None:
    chosen: int | None = pytestconfig.getoption("seed")
    return chosen


@pytest.fixture(scope="session", autouse=True)
def same_priority() -> Iterator[None]:
    """Keep the priority of the process: what a replay gives up would be lost to all tests after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what lakes in a store leave on their host out of the home of whoever runs tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker for all tests, each with topics of its own. A test that kills it starts it again."""
    from tests.broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka")).running() as started:
        yield started


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test starts in its process waits for the broker as long as it takes."""
    from orchestration.connectors import kafka_client
    from orchestration.connectors.sinks import kafka_producer

    for module in (kafka_client, kafka_producer):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def topic(running: Broker, patient: None) -> str:
    """Of one partition, with a name of its own."""
    running.create(name := f"t-{uuid4().hex[:8]}")
    return name


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3-compatible store for all tests, each with buckets of its own. A test that kills it starts it again."""
    from tests.object_store import Store

    with Store(tmp_path_factory.mktemp("s3")).running() as started:
        yield started


@pytest.fixture(scope="module")
def _started_proxy(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    from tests.s3_proxy import Proxy

    with Proxy(tmp_path_factory.mktemp("proxy"), store.endpoint).running() as started:
        yield started


@pytest.fixture
def proxy(_started_proxy: Proxy) -> Proxy:
    """A proxy before the store, which has counted nothing and does nothing to requests."""
    _started_proxy.set_faults()
    _started_proxy.forget()
    return _started_proxy


@pytest.fixture
def spark_in_store(spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The session, which knows the store: the driver by settings, workers of Python by their environment."""
    from orchestration.engine.checkpoint_jar import CLASS
    from orchestration.engine.s3a import FILE_MANAGER, s3a
    from orchestration.stores.object_store import ObjectStore
    from tests.store_lakes import ENVIRONMENT

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
        spark.sparkContext.environment[name] = value
    for name, value in s3a(ObjectStore(store.endpoint, None, "${env:STORE_KEY}", "${env:STORE_SECRET}")).settings.items():
        spark.sparkContext._jsc.hadoopConfiguration().set(name.removeprefix("spark.hadoop."), value)
    on_disk = str(spark.conf.get(FILE_MANAGER))
    spark.conf.set(FILE_MANAGER, CLASS)
    yield spark
    spark.conf.set(FILE_MANAGER, on_disk)


@pytest.fixture(scope="module", autouse=True)
def _forget_logs() -> Iterator[None]:
    """Delta keeps for an hour what it knows of every table that it met, 4 MB each: lakes of many tests fill the memory (measured)."""
    yield
    if "pyspark" in sys.modules and (jvm := sys.modules["pyspark"].SparkContext._jvm) is not None:
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
