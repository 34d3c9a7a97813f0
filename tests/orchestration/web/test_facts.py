"""Facts that open pages share: a page hears of a change of the lake, not only by its age."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.supervisor.service_state import RefusedConf, refused_conf
from orchestration.web import facts as module
from orchestration.web.facts import Facts


@pytest.fixture(autouse=True)
def _ages_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGED_SECONDS", 3600.0)
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.01)


def test_a_refused_conf_reaches_open_pages_by_itself(tmp_path: Path) -> None:
    async def page() -> list[list[str] | TidemarkError]:
        facts: Facts[str, list[str]] = Facts(Location(tmp_path), lambda _: ["facts"], lambda _: None, lambda _: threads)
        watching = asyncio.create_task(facts.watch())
        stream = facts.stream("/")
        shown = [await anext(stream)]
        refused_conf(Location(tmp_path)).write(RefusedConf("", None, "it has a mistake", "", "2026-01-01T12:00:00Z"))
        shown.append(await anext(stream))
        watching.cancel()
        return shown

    with ThreadPoolExecutor(1) as threads:
        assert asyncio.run(page()) == [["facts"], ["facts"]]
