"""Loading a conf folder: its YAML files, checked all at once, into one frozen Conf. Takes a fraction of a second and no Spark."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestration.conf.build import build
from orchestration.conf.diagnostic import Diagnostic, counted
from orchestration.conf.document import Document, Step, read_document
from orchestration.conf.files import FILES, Settings
from orchestration.conf.meaning import check_meaning
from orchestration.conf.model import Conf
from orchestration.conf.names import Declared
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError
from silver.rules import rules_of


def load(folder: Path) -> Conf:
    """The conf; raises ConfError with one line per mistake, all of them at once."""
    if not folder.is_dir():
        text = "is not a folder; name the conf folder with --conf, or write one with `tidemark init DIR`"
        raise ConfError(str(Diagnostic(str(folder), 1, text)))
    settings, diagnostics = _checked(folder)
    lines = tuple(map(str, sorted(diagnostics)))
    if not all(diagnostic.is_warning for diagnostic in diagnostics):
        raise ConfError("\n".join(lines))
    return replace(build(folder, settings), warnings=lines)


def summary(conf: Conf) -> str:
    """What a conf holds, in one line."""
    streams = len({group.stream for group in conf.groups.values()})
    parts = [
        counted(len(conf.sources), "source"),
        counted(len(conf.metrics), "metric"),
        counted(len(conf.devices), "device"),
        f"{counted(len(conf.groups), 'group')} in {counted(streams, 'stream')}",
        f"{counted(len(rules_of(conf.policy, conf.rules)), 'rule')} ({len(conf.rules)} of your own)",
        *([counted(len(conf.sinks), "sink")] if conf.sinks else []),
    ]
    return f"no mistakes; pipeline {conf.pipeline} with {', '.join(parts)}"


def _checked(folder: Path) -> tuple[Settings, set[Diagnostic]]:
    """The settings, to be used only if there are no mistakes: first how each file is built, then what the files mean together."""
    diagnostics: set[Diagnostic] = set()
    documents: dict[str, Document] = {}
    files: dict[str, Any] = {}
    unsound: set[tuple[str, tuple[Step, ...]]] = set()
    for name in FILES:
        document, unreadable = read_document(path := folder / f"{name}.yml")
        diagnostics |= set(unreadable if path.exists() or name != "rules" else ())  # there may be no rules
        files[name], findings = check_structure(name, document.data if document else {})
        if document is not None:
            documents[name] = document
            diagnostics |= {document.diagnostic(finding.path, finding.text) for finding in findings}
            unsound |= {(name, finding.path) for finding in findings if not finding.is_sound}
    settings = Settings(**files)
    declared = Declared.of({name: document.data for name, document in documents.items()})
    for name, finding in check_meaning(folder, settings, declared):
        if name in documents and (name, finding.path) not in unsound:
            diagnostics.add(documents[name].diagnostic(finding.path, finding.text, finding.is_warning))
    return settings, diagnostics
