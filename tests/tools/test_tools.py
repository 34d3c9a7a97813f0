"""Whole tools, each in an environment of its own, connect to the sql-server over a lake of simulated devices and do their work.

`make tools` makes the environments below artifacts/tools. A test prints the row of its tool: name, version, what was done.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestration.engine.jars import fetched
from tests.bench.factory import TIDEMARK
from tests.orchestration.serving.postgres.served import REPOSITORY, Served

pytestmark = [pytest.mark.tools, pytest.mark.slow]
HERE, MADE = Path(__file__).parent, REPOSITORY / "artifacts" / "tools"
VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
PYTHON = {"Apache Superset": "apache-superset", "pgAdmin 4": "pgadmin4", "pgcli": "pgcli", "Harlequin": "harlequin"}
PYTHON |= {"ibis": "ibis-framework", "connectorx": "connectorx", "dbt-postgres": "dbt-postgres"}
OWN = {"Apache Superset": "superset", "pgAdmin 4": "pgadmin"}
"""Packages of Python's tools; and environments of those that have one to themselves."""
NODE = {"node-postgres": "pg", "Evidence's driver": "@evidence-dev/postgres", "Cube's driver": "@cubejs-backend/postgres-driver"}
GO = ["github.com/jackc/pgx/v5", "github.com/lib/pq"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over 24,000 events of the devices of the default conf, with marts."""
    folder = MADE / "plant"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "conf", folder / "conf")
    for words in (["simulate", "--to", str(folder / "landing"), "--events", "24000"], ["run", "--once"], ["dbt", "--quiet", "build"]):
        subprocess.run([*TIDEMARK, "--conf", str(folder / "conf"), *words], cwd=folder, check=True, capture_output=True)
    with Served(folder, folder / "conf").running() as server:
        yield server.url()


def worked(tool: str, version: Sequence[str], steps: Sequence[str], **more: str) -> None:
    """Run the steps; the test fails with what they say. The row is printed."""
    answers = [subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | more) for command in (version, steps)]
    assert all(answer.returncode == 0 for answer in answers), "\n".join(answer.stdout + answer.stderr[-5000:] for answer in answers)
    print("|", tool, *("| " + "; ".join(answer.stdout.splitlines()) for answer in answers), "|")


@pytest.mark.parametrize("tool", PYTHON)
def test_a_tool_in_python_does_its_work(tool: str, url: str) -> None:
    environment = OWN.get(tool, "python")
    python, script = str(MADE / environment / "bin" / "python"), str(HERE / f"{environment}_steps.py")
    picture = [str(MADE / "superset.png")] * (environment == "superset")
    worked(tool, [python, "-c", VERSION, PYTHON[tool]], [python, script, *[tool] * (tool not in OWN), url, *picture])


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is missing: install Node.js")
@pytest.mark.parametrize("tool", NODE)
def test_a_driver_of_node_does_its_work(tool: str, url: str) -> None:
    modules = MADE / "node" / "node_modules"
    version = ["node", "-p", f"require('{modules}/{NODE[tool]}/package.json').version"]
    worked(tool, version, ["node", str(HERE / "node_steps.js"), tool, url], NODE_PATH=str(modules))


def test_pgjdbc_does_its_work(url: str) -> None:
    (jar,) = fetched(HERE / "jars.lock")
    worked("pgjdbc", ["echo", jar.stem], ["java", "-cp", str(jar), str(HERE / "JdbcSteps.java"), url])


@pytest.mark.skipif(not shutil.which("go"), reason="go is missing: install Go 1.25 or later")
def test_pgx_and_lib_pq_do_their_work(url: str) -> None:
    folder = str(HERE / "go")
    worked("pgx, lib/pq", ["go", "list", "-C", folder, "-m", "-f", "{{.Version}}", *GO], ["go", "run", "-C", folder, ".", url])


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is missing: `make tools` installs it for root")
def test_rpostgresql_and_dbplyr_do_their_work(url: str) -> None:
    version = 'cat(format(packageVersion("RPostgreSQL")), format(packageVersion("dbplyr")))'
    worked("RPostgreSQL, dbplyr", ["Rscript", "-e", version], ["Rscript", str(HERE / "steps.R"), url])


@pytest.mark.skipif(not list(Path("/usr/lib").glob("*/odbc/psqlodbcw.so")), reason="psqlODBC is missing: `make tools` installs it for root")
def test_psqlodbc_does_its_work(url: str) -> None:
    python = str(MADE / "python" / "bin" / "python")
    worked("psqlODBC", ["dpkg-query", "-Wf", "${Version}", "odbc-postgresql"], [python, str(HERE / "python_steps.py"), "psqlODBC", url])
