"""Writing a conf folder: the commented starter conf, perhaps for one kind of source, or one proposed from a sample."""

import json
import re
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from expectations.wording import counted
from orchestration.conf.diagnostic import printable
from orchestration.conf.files import FILES, MODELS, OPTIONAL
from orchestration.conf.model import Conf
from orchestration.conf.proposal import DECADE_SECONDS, Proposal, file_name_pattern, suffix_of
from orchestration.conf.transport_settings import LandingFolder
from orchestration.conf.vocabulary import WORDS, is_unit_of
from orchestration.errors import ConfError

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
NOT_TEXTS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""To some YAML reader or other."""
FILES_OF_A_START = [name for name in FILES if resources.files("conf").joinpath(f"{name}.yml").is_file()]
"""Others are written by who needs them."""


def starter_sources() -> dict[str, str]:
    """Text of a sources.yml by kind of source, each a file of `starter_sources`; connectors/README.md shows them too."""
    files = resources.files("orchestration.conf").joinpath("starter_sources").iterdir()
    return {file.name.removesuffix(".yml"): file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)}


def write_starter(folder: Path, source: str | None = None, example: str | None = None) -> None:
    """The default conf, comments and all; with another `source` where a kind of starter_sources is named, and one of `examples`.

    Raises ConfError where a file of a conf is already there.
    """
    conf = resources.files("conf")
    texts = {f"{name}.yml": conf.joinpath(f"{name}.yml").read_text(encoding="utf-8") for name in FILES_OF_A_START}
    if source is None:
        texts["tests/kitchen.yml"] = conf.joinpath("tests/kitchen.yml").read_text(encoding="utf-8")
    else:
        texts["sources.yml"] = "# yaml-language-server: $schema=schema/sources.json\n" + starter_sources()[source]
    if example is not None:
        name, text = examples()[example]
        texts[f"{name}.yml"] = f"# yaml-language-server: $schema=schema/{name}.json\n{text}"
    write_conf(folder, texts)


def examples() -> dict[str, tuple[str, str]]:
    """Examples by name: the file of a conf that each belongs to, and its text; the pages of gold/flows and gold/alerts explain them."""
    files = resources.files("orchestration.conf").joinpath("examples").iterdir()
    texts = {file.name.removesuffix(".yml"): file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)}
    return {name: (next(section for section in OPTIONAL if f"\n{section}:\n" in text), text) for name, text in texts.items()}


def write_proposal(folder: Path, proposal: Proposal) -> None:
    """The proposed conf; raises ConfError where a file of a conf is already there."""
    findings = findings_of(proposal)
    write_conf(folder, {f"{name}.yml": _rendered(f"{name}.yml", proposal, findings) for name in FILES_OF_A_START})


def land(conf: Conf, sample: Path) -> Path:
    """Copy the sample into the landing folder of a proposed conf; ConfError where a file of its name is there."""
    (source,) = conf.sources.values()
    if not isinstance(source.transport, LandingFolder):
        raise ConfError(f"{source.name} has no landing folder to copy the sample to, as its messages come otherwise; leave --copy out")
    target = source.transport.path / sample.name
    if target.exists():
        raise ConfError(f"{target} is there already, and is not overwritten; leave --copy out")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.draft")  # a file appears whole or not at all
    try:
        shutil.copyfile(sample, draft)
        draft.rename(target)
    except OSError as error:
        raise ConfError(f"{target} cannot be written ({error.strerror})") from None
    return target


def findings_of(proposal: Proposal) -> list[str]:
    """Findings, and things to confirm, a sentence each."""
    return _rendered("findings.txt", proposal, []).splitlines()


def _rendered(name: str, proposal: Proposal, findings: list[str]) -> str:
    environment = Environment(
        loader=PackageLoader("orchestration.conf", "proposed"),
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"yaml": _yaml, "quote": _quote, "json": _json, "number": _number, "counted": counted}
    file = proposal.sample.file
    values = vars(proposal) | {"findings": findings, "suffix": suffix_of(file), "file_name_pattern": file_name_pattern(file)}
    first = {path: str(value)[:60] for row in reversed(proposal.sample.rows) for path, value in row.items()}
    values |= {"first": first, "words": WORDS, "is_unit_of": is_unit_of, "decades": proposal.age_seconds // DECADE_SECONDS}
    return environment.get_template(name).render(values)


def write_conf(folder: Path, texts: dict[str, str]) -> None:
    """Write files of a conf by path, and its schemas; ConfError where one is already there."""
    schemas = resources.files("conf").joinpath("schema")
    texts = texts | {f"schema/{name}.json": schemas.joinpath(f"{name}.json").read_text(encoding="utf-8") for name in MODELS}
    present = [name for name in texts if (folder / name).exists()]
    if present:
        rest = f" and {len(present) - 1} more" if present[1:] else ""
        raise ConfError(f"{folder} already holds {present[0]}{rest}, which is not overwritten; name another folder, or move it away")
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfError(f"{folder} cannot be written ({error.strerror}); name a folder that can") from None


def _yaml(text: str) -> str:
    """A text as a YAML scalar on one line."""
    if PLAIN.fullmatch(text) and text.lower() not in NOT_TEXTS:
        return text
    return _quote(text)


def _json(value: Any) -> str:
    """A value of settings, in which texts stand as `_yaml` writes them."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_json(inner)}' for name, inner in value.items())}}}"
    return f"[{', '.join(map(_json, value))}]" if isinstance(value, list) else _yaml(value) if isinstance(value, str) else json.dumps(value)


def _number(number: float) -> str:
    """A number to its last digit, as short as can be."""
    return repr(number).removesuffix(".0")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
