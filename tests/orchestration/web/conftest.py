"""What tests of the live page share. Each module has a `conf`, of the lake that it looks at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.pages import Served, chromium, served


@pytest.fixture(scope="module")
def server(conf: Path) -> Iterator[Served]:
    with served(conf) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    """The overview, opened; nothing that it asks for is elsewhere, and its console has nothing but refusals, which tests ask for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened, asked, said = context.new_page(), list[str](), list[str]()
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(server.address)
    yield opened
    assert [text for text in said if "the server responded with a status of 400" not in text] == []
    assert all(url.startswith((server.address, "data:")) for url in asked)
    context.close()
