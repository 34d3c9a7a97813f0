"""Writing a conf folder: the commented starter conf, perhaps for one kind of source, or one proposed from a sample."""

import json
import re
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestration.conf.diagnostic import counted, printable
from orchestration.conf.files import FILES, MODELS
from orchestration.conf.proposal import Proposal, file_name_pattern, findings_of, suffix_of
from orchestration.conf.vocabulary import snake
from orchestration.errors import ConfError

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
NOT_TEXTS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""To some YAML reader or other."""


def starter_sources() -> dict[str, str]:
    """Text of a sources.yml by kind of source, each a file of `starter_sources`; connectors/README.md shows them too."""
    files = resources.files("orchestration.conf").joinpath("starter_sources").iterdir()
    return {file.name.removesuffix(".yml"): file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)}


def write_starter(folder: Path, source: str | None = None) -> None:
    """The default conf, comments and all; with another `source` where a kind of starter_sources is named.

    Raises ConfError where a file of a conf is already there.
    """
    conf = resources.files("conf")
    texts = {f"{name}.yml": conf.joinpath(f"{name}.yml").read_text(encoding="utf-8") for name in FILES}
    if source is not None:
        texts["sources.yml"] = "# yaml-language-server: $schema=schema/sources.json\n" + starter_sources()[source]
    _write(folder, texts)


def write_proposal(folder: Path, proposal: Proposal) -> None:
    """The proposed conf; raises ConfError where a file of a conf is already there."""
    environment = Environment(
        loader=PackageLoader("orchestration.conf", "proposed"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"yaml": _yaml, "quote": _quote, "identifier": snake, "printable": printable, "counted": counted}
    values = vars(proposal) | {
        "findings": findings_of(proposal),
        "suffix": suffix_of(proposal.sample.file),
        "file_name_pattern": file_name_pattern(proposal.sample.file),
    }
    _write(folder, {f"{name}.yml": environment.get_template(f"{name}.yml").render(values) for name in FILES})


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


def _yaml(text: str) -> str:
    """A text as a YAML scalar on one line."""
    if PLAIN.fullmatch(text) and text.lower() not in NOT_TEXTS:
        return text
    return _quote(text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
