"""A copy of the default conf to plant mistakes in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import write_proposal
from orchestration.conf.transport_settings import LandingFolder
from orchestration.errors import ConfError

DEFAULT = Path(__file__).parents[3] / "conf"
START = 1_767_571_200  # 2026-01-05T00:00:00Z
Propose = Callable[..., Conf]


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


@pytest.fixture
def propose(tmp_path: Path) -> Propose:
    """The conf proposed from a file of these lines, loaded."""

    def conf(lines: list[str], name: str = "sample.txt") -> Conf:
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        write_proposal(tmp_path / "conf", proposal_of(tmp_path / name))
        return load(tmp_path / "conf")

    return conf
