"""A copy of the default conf to plant mistakes in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.transports import LandingFolder
from orchestration.errors import ConfError

DEFAULT = Path(__file__).parents[3] / "conf"


def mistakes_of(folder: Path) -> list[str]:
    """The mistakes of a conf, a line each."""
    try:
        load(folder)
    except ConfError as error:
        return str(error).splitlines()
    return []


def changed(folder: Path, file: str, old: str, new: str) -> None:
    """Replace the first occurrence, which has to be there."""
    path = folder / f"{file}.yml"
    text = path.read_text()
    assert old in text, f"{old!r} is not in {file}.yml"
    path.write_text(text.replace(old, new, 1))


def landing_of(conf: Conf, source: str) -> LandingFolder:
    """The landing folder of a source that has one."""
    transport = conf.sources[source].transport
    assert isinstance(transport, LandingFolder)
    return transport


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`conf`, relative to the working directory, as a user names it."""
    shutil.copytree(DEFAULT, tmp_path / "conf", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return Path("conf")


@pytest.fixture
def mistakes_after(folder: Path) -> Callable[..., list[str]]:
    """Mistakes of the default conf after changes: file without its ending, text as it is, text as it becomes."""

    def mistakes(*changes: tuple[str, str, str]) -> list[str]:
        for file, old, new in changes:
            changed(folder, file, old, new)
        return mistakes_of(folder)

    return mistakes
