"""The unit of systemd, the Containerfile, the Compose file and the manifest: each is read by what will read it, as far as that is here."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from orchestration.cli.app import COMMANDS
from orchestration.conf.pipeline_settings import PageSettings
from tests.test_readme import blocks

DEPLOY = Path(__file__).parents[3] / "orchestration/service/deploy"
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "tidemark-exec-1",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
"""What Spark 4.2 says to the pod of an executor."""
SHOW = "-XshowSettings:properties"


@pytest.fixture
def manifest() -> dict[str, dict[str, Any]]:
    """Objects by their kind."""
    return {document["kind"]: document for document in yaml.safe_load_all((DEPLOY / "kubernetes.yml").read_text())}


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
    assert os.access(DEPLOY / "entry.sh", os.X_OK) and '/deploy/entry.sh"]' in lines[-2]
    assert instructions[0] == "FROM" and {*instructions} <= known
    assert {"broker", "database", "grafana", "tidemark"} == services.keys()
    mounted = [volume.split(":")[0] for volume in services["grafana"]["volumes"]]
    assert all((DEPLOY / path).is_file() for path in mounted if path.startswith("./"))


@pytest.mark.parametrize("version", ["1.25", "1.37"])
def test_the_api_of_kubernetes_knows_each_field_of_the_manifest(manifest: dict[str, dict[str, Any]], version: str) -> None:
    for document in manifest.values():
        kubernetes_validate.validate(document, version, strict=True)
    manifest["Deployment"]["spec"]["strategie"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="strategie"):
        kubernetes_validate.validate(manifest["Deployment"], version, strict=True)


def test_names_of_the_manifest_agree_with_each_other_with_the_image_and_with_the_conf(manifest: dict[str, dict[str, Any]]) -> None:
    deployment, service = manifest["Deployment"]["spec"], manifest["Service"]["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {port["name"]: port["port"] for port in service["ports"]}
    assert ports["page"] == PageSettings().port
    assert f"EXPOSE {ports['page']} {ports['collector']}" in (DEPLOY / "Containerfile").read_text()
    assert service["selector"] == deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]
    account = manifest["ServiceAccount"]["metadata"]["name"]
    assert [pod["serviceAccountName"], manifest["RoleBinding"]["subjects"][0]["name"]] == [account, account]
    assert manifest["RoleBinding"]["roleRef"]["name"] == manifest["Role"]["metadata"]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == manifest["PersistentVolumeClaim"]["metadata"]["name"]
    assert container["args"][0] in COMMANDS and pod["terminationGracePeriodSeconds"] > 60
    conf = next(block for block in blocks("orchestration/service/README.md", "yaml") if "k8s://" in block)
    settings = yaml.safe_load(conf)["engine"]["settings"]
    secrets = {env["name"]: env["valueFrom"]["secretKeyRef"] for env in container["env"] if "secretKeyRef" in env.get("valueFrom", {})}
    of_executors = "spark.kubernetes.executor.secretKeyRef."
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert settings[f"{of_executors}{name}"] == f"{secrets[name]['name']}:{secrets[name]['key']}"
    assert container["image"] == settings["spark.kubernetes.container.image"]
    assert "${env:TIDEMARK_PAGE_TOKEN}" in conf and "TIDEMARK_PAGE_TOKEN" in secrets


def test_a_container_is_an_executor_where_the_driver_asks_for_one() -> None:
    options = {"SPARK_JAVA_OPT_2": "-Dorder=early", "SPARK_JAVA_OPT_10": "-Dorder=late, in one piece", "SPARK_JAVA_OPT_11": SHOW}
    ran = entered("executor", EXECUTOR | options)
    assert ran.returncode == 1
    assert "order = late, in one piece" in ran.stderr
    assert "CoarseGrainedScheduler@127.0.0.1:1" in ran.stdout + ran.stderr  # which it did not reach


def test_a_container_that_lacks_what_the_driver_says_ends_and_names_it() -> None:
    ran = entered("executor", {})
    assert (ran.returncode, "SPARK_EXECUTOR_MEMORY: unbound variable" in ran.stderr) == (1, True)


def test_a_container_is_tidemark_otherwise() -> None:
    assert entered("up", {}, "--help").stdout.startswith("Usage: tidemark up")


def entered(command: str, environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    surroundings = {name: os.environ[name] for name in ("PATH", "HOME")} | environment
    call = [str(DEPLOY / "entry.sh"), command, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, env=surroundings)
