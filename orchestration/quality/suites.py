"""The suites that Tidemark ships, and those of a conf, in `<conf>/expectations`."""

from importlib.resources import files
from pathlib import Path

import yaml

from expectations.suite import Suite
from expectations.suite import suite as suite_of
from orchestration.conf.model import Conf
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError, TidemarkError

FOLDER = "expectations"
_read: dict[tuple[object, ...], list[Suite]] = {}


def suites(conf: Conf) -> list[Suite]:
    """The packaged suites and those of the conf, which replace packaged ones of the same name. ConfError lists the mistakes in them.

    Suites of a conf are read once a process, like its rules: checking them takes too long for a gate, and an edit must not stop a run.
    """
    key = (conf.folder, *conf.groups)
    if key not in _read:
        _read[key] = suites_of_conf(conf, conf.folder)
    return [*{suite.name: suite for suite in (*packaged(), *_read[key])}.values()]


def packaged() -> list[Suite]:
    """Every suite in package expectations, by name, which is that of its file; TidemarkError for a malformed file."""
    texts = sorted((file.name, file.read_text(encoding="utf-8")) for file in files("expectations").iterdir() if file.name.endswith(".yml"))
    documents = {name: yaml.load(text, yaml.CSafeLoader) for name, text in texts}
    for name, document in documents.items():
        if findings := check_structure("suite", document).findings:
            remedy = "or install Tidemark anew, if nobody has changed its files"
            raise TidemarkError(f"expectations/{name}: {findings[0].text}; {remedy}.")
    return [suite_of(name.removesuffix(".yml"), document) for name, document in documents.items()]


def suites_of_conf(conf: Conf, folder: Path) -> list[Suite]:
    """The suites of the conf in `folder`; ConfError lists the mistakes of all. Without such suites nothing slow is imported."""
    # Also files that end on .yaml, so that they are reported and not silently skipped.
    files_of_conf = sorted(file for pattern in ("*.yml", "*.yaml") for file in (folder / FOLDER).glob(pattern))
    if not files_of_conf:
        return []
    from orchestration.quality.suite_mistakes import checked

    read, mistakes = checked(files_of_conf, conf)
    if mistakes:
        raise ConfError("\n".join(map(str, mistakes)))
    return read
