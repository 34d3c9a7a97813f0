"""All mistakes of all files of a conf folder: first how each file is built, then what the files mean together."""

from pathlib import Path
from typing import Any

from orchestration.conf.diagnostic import Diagnostic
from orchestration.conf.document import Document, Step, read_document
from orchestration.conf.files import FILES, Settings
from orchestration.conf.meaning import check_meaning
from orchestration.conf.names import Declared
from orchestration.conf.structure import check_structure


def checked(folder: Path) -> tuple[Settings, list[Diagnostic]]:
    """The settings of a folder (to be used only if there are no mistakes), and its mistakes by file and line."""
    if not folder.is_dir():
        text = "is not a folder; name the conf folder with --conf, or write one with `tidemark init DIR`"
        return Settings(*(check_structure(name, {})[0] for name in FILES)), [Diagnostic(str(folder), 1, text)]
    diagnostics: list[Diagnostic] = []
    documents: dict[str, Document] = {}
    files: dict[str, Any] = {}
    unsound: set[tuple[str, tuple[Step, ...]]] = set()
    for name in FILES:
        document, unreadable = read_document(folder / f"{name}.yml")
        diagnostics += unreadable
        files[name], findings = check_structure(name, document.data if document else {})
        if document is not None:
            documents[name] = document
            diagnostics += [document.diagnostic(finding.path, finding.text) for finding in findings]
            unsound |= {(name, finding.path) for finding in findings if not finding.is_sound}
    settings = Settings(**files)
    declared = Declared.of({name: document.data for name, document in documents.items()})
    for name, finding in check_meaning(folder, settings, declared):
        if name in documents and (name, finding.path) not in unsound:
            diagnostics.append(documents[name].diagnostic(finding.path, finding.text))
    return settings, sorted(set(diagnostics))
