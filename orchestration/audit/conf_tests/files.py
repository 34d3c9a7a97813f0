"""The files with tests of a conf: `<conf>/tests/*.yml`."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orchestration.conf.conf_tests import ConfTest, ConfTests
from orchestration.conf.diagnostic import Diagnostic
from orchestration.conf.document import Document, read_document
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError

FOLDER = "tests"


class FileOfTests(NamedTuple):
    """A file with its tests."""

    path: Path
    document: Document
    tests: Sequence[ConfTest]

    def line(self, number: int) -> int:
        """The line of a test, counted from 0."""
        return self.document.line(("tests", number))


def read_tests(conf_folder: Path, files: Sequence[Path] = ()) -> list[FileOfTests]:
    """The files named, or all of the conf; ConfError lists the mistakes of all of them."""
    paths = [*files] or sorted(file for pattern in ("*.yml", "*.yaml") for file in (conf_folder / FOLDER).glob(pattern))
    read, mistakes = list[FileOfTests](), list[Diagnostic]()
    for path in paths:
        document, unreadable = read_document(path)
        mistakes += unreadable
        if document is not None:
            settings, _, findings = check_structure("tests", document.data, conf_folder)
            mistakes += [document.diagnostic(finding.path, finding.text) for finding in findings]
            if isinstance(settings, ConfTests):
                read.append(FileOfTests(path, document, settings.tests))
    if mistakes:
        raise ConfError("\n".join(map(str, sorted(mistakes))))
    return read
