"""The unit of systemd, the Containerfile and the Compose file: each is read by what will read it, as far as that is here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from orchestration.cli.app import COMMANDS

DEPLOY = Path(__file__).parents[3] / "orchestration/service/deploy"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "tidemark.service").read_text()
    (tmp_path / "tidemark.service").write_text(unit.replace("/srv/tidemark/.venv/bin/tidemark", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "tidemark.service")], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    (tmp_path / "tidemark.service").write_text(unit.replace("KillMode=mixed", "KilMode=mixed"))
    odd = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "tidemark.service")], capture_output=True, text=True, check=False)
    assert "KilMode" in odd.stderr  # so that nothing to say means that all is known


def test_the_unit_drains_longer_than_up_does_and_does_not_repeat_a_lasting_mistake() -> None:
    unit = dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / "tidemark.service").read_text(), re.MULTILINE))
    assert int(unit["TimeoutStopSec"]) > 60
    assert unit["RestartPreventExitStatus"] == "2 3"
    assert unit["ExecStart"].split()[-1] in COMMANDS


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="this machine has no docker-compose")
def test_compose_reads_its_file() -> None:
    variables = os.environ | {"TIDEMARK_PAGE_TOKEN": "token", "POSTGRES_PASSWORD": "password"}
    read = subprocess.run(
        ["docker-compose", "--file", str(DEPLOY / "compose.yml"), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_what_compose_builds_is_there_and_each_instruction_of_the_containerfile_is_known() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]
    build = services["tidemark"]["build"]
    assert (DEPLOY / build["context"]).resolve() == DEPLOY.parents[2]
    assert (DEPLOY.parents[2] / build["dockerfile"]).is_file()
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    instructions = [line.split()[0] for line in lines if line and not line.startswith("#")]
    known = {"FROM", "RUN", "USER", "WORKDIR", "COPY", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert instructions[0] == "FROM" and {*instructions} <= known
    assert {"broker", "database", "grafana", "tidemark"} == services.keys()
    mounted = [volume.split(":")[0] for volume in services["grafana"]["volumes"]]
    assert all((DEPLOY / path).is_file() for path in mounted if path.startswith("./"))
