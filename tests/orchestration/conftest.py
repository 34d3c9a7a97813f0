"""What tests of several rooms need."""

import pytest

from orchestration.cli.app import exit_code
from tests.commands import Said, Tidemark


@pytest.fixture
def tidemark(capsys: pytest.CaptureFixture[str]) -> Tidemark:
    """Runs a command line, and takes what it prints."""

    def run(*words: object) -> Said:
        code = exit_code([str(word) for word in words])
        return Said(code, *capsys.readouterr())

    return run
