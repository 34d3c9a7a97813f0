"""The blocks of the page "Connect your tool", and the command of README, do what the pages say."""

import os
import re
import subprocess

import pytest

from tests.orchestration.serving.postgres.served import REPOSITORY, Served
from tests.test_readme import TEXT, blocks

PAGE = "orchestration/serving/CONNECT.md"
PSQL = re.findall(r"^psql .*", TEXT["README.md"] + TEXT[PAGE], re.MULTILINE)


@pytest.mark.parametrize("block", blocks(PAGE, "python"))
def test_a_block_of_python_reads_the_lake(block: str, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_URL", server.url())
    exec(compile(block, PAGE, "exec"), {})


@pytest.mark.parametrize("line", PSQL)
def test_psql_answers_at_the_address_that_the_command_prints(line: str, server: Served) -> None:
    line = line.replace("tidemark sql-server", f"tidemark --conf {server.conf} sql-server --port {server.port}")
    environment = os.environ | {"PATH": f"{REPOSITORY}/.venv/bin:{os.environ['PATH']}", "XDG_STATE_HOME": str(server.folder / "state")}
    done = subprocess.run(["bash", "-c", line], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    assert "temperature" in done.stdout
