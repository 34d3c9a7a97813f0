"""Facts that open pages share: a page hears of a change of the lake, not only by its age."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.supervisor.service_state import RefusedConf, refused_conf
from orchestration.web import facts as module
from orchestration.web.facts import Facts, fingerprint_of
from tests.waiting import PATIENCE_SECONDS, until


@pytest.fixture(autouse=True)
def _ages_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGED_SECONDS", 3600.0)
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.01)


def test_a_refused_conf_reaches_open_pages_by_itself(tmp_path: Path) -> None:
    async def page() -> list[Sequence[list[str] | TidemarkError]]:
        facts: Facts[str, list[str]] = Facts(Location(tmp_path), lambda _: ["facts"], lambda _: None, lambda _: threads)
        watching = asyncio.create_task(facts.watch())
        stream = facts.stream("/")
        async with asyncio.timeout(PATIENCE_SECONDS):
            shown = [await anext(stream)]
            refuse(tmp_path)
            shown.append(await anext(stream))
        watching.cancel()
        return shown

    with ThreadPoolExecutor(1) as threads:
        assert asyncio.run(page()) == [[["facts"]]] * 2


def test_what_changes_while_a_view_is_read_reaches_its_page(tmp_path: Path) -> None:
    reads: list[int] = []

    async def page() -> list[Sequence[int | TidemarkError]]:
        loop, facts = asyncio.get_running_loop(), Facts[str, int](Location(tmp_path), lambda _: read(), lambda _: None, lambda _: threads)

        def read() -> int:
            reads.append(len(reads))
            if len(reads) == 1:
                refuse(tmp_path)
                asyncio.run_coroutine_threadsafe(facts.newest("/other"), loop)
                until(lambda: facts.number == 1)
            return reads[-1]

        stream = facts.stream("/")
        async with asyncio.timeout(PATIENCE_SECONDS):
            return [await anext(stream), await anext(stream)]

    with ThreadPoolExecutor(2) as threads:
        before, after = asyncio.run(page())
        assert before != after


def test_files_that_come_and_go_meanwhile_are_no_error(tmp_path: Path) -> None:
    outage, end = tmp_path / "outages" / "oven", threading.Event()
    outage.parent.mkdir()

    def come_and_go() -> None:
        while not end.is_set():
            outage.touch()
            outage.unlink()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(come_and_go)
        try:
            assert {len(fingerprint_of(Location(tmp_path))) for _ in range(3000)} <= {0, 1}
        finally:
            end.set()


def refuse(lake: Path) -> None:
    refused_conf(Location(lake)).write(RefusedConf("", None, "it has a mistake", "", "2026-01-01T12:00:00Z"))
