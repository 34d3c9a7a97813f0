"""What probes get: whether the lake works, without a token and by any name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.storage.lease import sole_writer
from orchestration.supervisor.service_state import PartState, ServiceState, State, folder_of, write_service
from tests.collectors import write_conf
from tests.pages import Served, served

PROBE = {"Host": "10.1.2.3:8643", "User-Agent": "kube-probe/1.36"}
SINCE = "2026-01-01T12:00:00Z"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    written = write_conf(tmp_path, plant="path: ./landing")
    with (written / "pipeline.yml").open("a") as file:
        file.write("page: {port: 0, token: '${env:PAGE_TOKEN}'}\n")
    return written


@pytest.fixture
def lake(conf: Path) -> Location:
    return load(conf).lake


@pytest.fixture
def server(conf: Path) -> Iterator[Served]:
    with served(conf, PAGE_TOKEN="correct-horse-battery-staple") as running:
        yield running


def is_up(lake: Location, streams: State, page: State = "running") -> None:
    parts = [PartState(name, state, None, None, SINCE, 0, "odd") for name, state in (("streams", streams), ("page", page))]
    write_service(lake, ServiceState(1, parts))


def test_a_probe_needs_no_token_and_no_name_of_the_page_and_reads_nothing_of_the_lake(server: Served) -> None:
    status, _, text = server.ask("/healthz", headers=PROBE)
    assert (status, text) == (200, "ok\n")
    assert server.ask("/healthz/", headers=PROBE)[0] == 421


@pytest.mark.parametrize(
    ("streams", "page", "code"), [("running", "stopped", 200), ("waiting", "running", 200), ("stopped", "running", 503)]
)
def test_streams_that_are_stopped_stop_the_lake_and_those_that_begin_again_do_not(
    conf: Path, lake: Location, streams: State, page: State, code: int
) -> None:
    with sole_writer(folder_of(lake)):
        is_up(lake, streams, page)
        with served(conf, PAGE_TOKEN="correct-horse-battery-staple") as server:
            status, _, text = server.ask("/healthz", headers=PROBE)
    assert status == code
    assert "odd" not in text


def test_a_service_that_is_gone_without_a_word_stops_the_lake(conf: Path, lake: Location) -> None:
    is_up(lake, "running")
    with served(conf, PAGE_TOKEN="correct-horse-battery-staple") as server:
        assert server.ask("/healthz", headers=PROBE)[0] == 503
