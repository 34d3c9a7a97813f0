"""A lake in an object store has one host for each landing folder and each spool, as these are files there; others are refused."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.sources.all import sources
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.errors import TidemarkError
from orchestration.flow import Intake
from orchestration.location import lake_at
from orchestration.storage.delta import rows_of
from orchestration.storage.lease import sole_writer
from orchestration.stores.object_store import ObjectStore
from orchestration.supervisor.run import run_once
from tests.collectors import collecting, write_conf
from tests.commands import Tidemark
from tests.lakes import conf, land
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.store_lakes import ENVIRONMENT, move_to_store

Moved = Callable[[str], None]


@pytest.fixture
def move_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moved:
    """Go on as another host, which has a state folder of its own."""

    def move(host: str) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / host))
        monkeypatch.setattr("socket.gethostname", lambda: host)

    return move


def bronze(made: Conf) -> list[bytes]:
    """What bronze has after a run of it alone."""
    with sole_writer(made.lake):
        lake = Lake(made)
        intake = Intake("bronze.events", (lake.tables["bronze.events"],), sources=lambda: sources(made))
        run_once(lake, [intake], Progress(["bronze.events"]), threading.Event())
    return sorted(row["payload"] for row in rows_of(lake.table_path("bronze.events"), ["payload"]))


def test_of_a_lake_in_a_store_a_second_landing_host_is_refused_until_the_first_is_given_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move_to: Moved
) -> None:
    monkeypatch.setenv("KEY", ACCESS_KEY)
    monkeypatch.setenv("SECRET", SECRET_KEY)
    made = replace(
        conf(tmp_path), lake=lake_at(f"s3://{store.bucket()}/lake", ObjectStore(store.endpoint, None, "${env:KEY}", "${env:SECRET}"))
    )
    move_to("host-1")
    land(tmp_path, "1.json", ["1"])
    assert bronze(made) == bronze(made) == [b"1"]
    move_to("host-2")
    with pytest.raises(
        TidemarkError, match=r"plant are claimed by host host-1, and this host, host-2, .*\n  Run Tidemark on host-1"
    ) as refused:
        bronze(made)
    paused = {name: replace(source, is_paused=True) for name, source in made.sources.items()}
    assert bronze(replace(made, sources=paused)) == [b"1"]
    named = made.lake / "landing/plant.json"
    assert f"remove {named}:" in str(refused.value)
    named.delete()
    land(tmp_path, "2.json", ["2"])
    assert bronze(made) == [b"1", b"1", b"2"]
    move_to("host-1")
    with pytest.raises(TidemarkError, match="claimed by host host-2"):
        bronze(made)


def test_of_a_lake_in_a_store_a_second_host_may_not_number_a_spool_anew_until_the_first_is_given_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move_to: Moved, tidemark: Tidemark
) -> None:
    written = write_conf(tmp_path, plain="http: {port: 0}")
    move_to_store(written, store.endpoint, store.bucket())
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def brought(event: bytes) -> list[bytes]:
        with collecting(written) as collector:
            assert collector.ask(event)[0] == 202
        return bronze(load(written))

    move_to("host-0")
    assert bronze(load(written)) == []
    move_to("host-1")
    assert brought(b'{"n":1}') == [b'{"n":1}']
    move_to("host-2")
    elsewhere = "the spool of source plain is on host "
    assert (refused := tidemark("--conf", written, "collect")).code == 4 and elsewhere in refused.err
    with pytest.raises(TidemarkError, match=elsewhere):
        bronze(load(written))
    (load(written).lake / "spools/plain.json").delete()
    assert brought(b'{"n":2}') == [b'{"n":1}', b'{"n":2}']
    move_to("host-1")
    with pytest.raises(TidemarkError, match=elsewhere):
        bronze(load(written))


def test_a_lake_on_a_disk_goes_on_wherever_it_is(tmp_path: Path, move_to: Moved) -> None:
    made = conf(tmp_path)
    land(tmp_path, "1.json", ["1"])
    for host in ("host-1", "host-2"):
        move_to(host)
        assert bronze(made) == [b"1"]
