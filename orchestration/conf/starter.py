"""Writing a conf folder: the commented starter conf, or one proposed from a sample."""

from importlib import resources
from pathlib import Path

from orchestration.conf.files import FILES, MODELS
from orchestration.conf.proposal import Proposal
from orchestration.conf.proposal_text import files_of
from orchestration.errors import ConfError


def write_starter(folder: Path) -> None:
    """The default conf, comments and all; raises ConfError where a file of a conf is already there."""
    conf = resources.files("conf")
    _write(folder, {f"{name}.yml": conf.joinpath(f"{name}.yml").read_text(encoding="utf-8") for name in FILES})


def write_proposal(folder: Path, proposal: Proposal) -> None:
    """The proposed conf; raises ConfError where a file of a conf is already there."""
    _write(folder, files_of(proposal))


def _write(folder: Path, texts: dict[str, str]) -> None:
    schemas = resources.files("conf").joinpath("schema")
    texts = texts | {f"schema/{name}.json": schemas.joinpath(f"{name}.json").read_text(encoding="utf-8") for name in MODELS}
    present = [name for name in texts if (folder / name).exists()]
    if present:
        rest = f" and {len(present) - 1} more" if present[1:] else ""
        raise ConfError(f"{folder} already holds {present[0]}{rest}, which is not overwritten; name another folder, or move it away")
    try:
        (folder / "schema").mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfError(f"{folder} cannot be written ({error.strerror}); name a folder that can") from None
