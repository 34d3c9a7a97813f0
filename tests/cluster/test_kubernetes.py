"""`make kubernetes`: a run whose executors are pods of the manifest's account, and of the image's entry; there are no containers here."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.chaos.plants import Plant
from tests.cluster.pods import API_SERVER, ApiServer, Kubelet
from tests.cluster.sample import READINGS, batches, in_store, on_cluster
from tests.lakes import table
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.test_readme import blocks
from tests.waiting import until

pytestmark = [
    *(pytest.mark.cluster, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark),
    pytest.mark.skipif(not API_SERVER.exists(), reason="`make kubernetes` builds its API server"),
]
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
SUBMITTED = "--conf spark.driver.host=127.0.0.1 --conf spark.kubernetes.driver.pod.name=driver pyspark-shell"
"""As the manifest has it, for this machine."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    (tmp_path / "kubernetes").mkdir()
    with ApiServer(tmp_path / "kubernetes").running() as started:
        started.apply_manifest()
        data = {"page-token": "unused", "access-key": ACCESS_KEY, "secret-key": SECRET_KEY}
        started.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tidemark"}, "stringData": data})
        yield started


@pytest.fixture
def settings(server: ApiServer, tmp_path: Path) -> dict[str, str]:
    """Those of the page, for less memory, and with what a pod has at its own place."""
    (conf,) = (block for block in blocks("orchestration/service/README.md", "yaml") if "k8s://" in block)
    (tmp_path / "token").write_text(server.token("tidemark"))
    here = {"spark.kubernetes.authenticate.oauthTokenFile": str(tmp_path / "token")}
    here |= {"spark.kubernetes.authenticate.caCertFile": str(server.certificate)}
    small = {"spark.executor.instances": "2", "spark.executor.cores": "1", "spark.executor.memory": "1g"}
    return {**yaml.safe_load(conf)["engine"]["settings"], **here, **small}


def test_a_run_whose_executor_is_killed_needs_no_right_but_those_of_the_role_and_leaves_nothing_behind(
    server: ApiServer, settings: dict[str, str], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, kubelet, bucket = Plant(tmp_path / "plant"), Kubelet(server, tmp_path / "kubernetes"), store.bucket()
    on_cluster(plant, f"k8s://{server.address}", settings)
    in_store(plant.folder / "conf", store.endpoint, bucket, keys={})
    for number, lines in enumerate(batches()):
        store.put(bucket, {f"landing/{number}.jsonl": "".join(f"{line}\n" for line in lines).encode()})
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        stack.enter_context(kubelet.running())
        process = stack.enter_context(plant.running("run", "--once", PYSPARK_SUBMIT_ARGS=SUBMITTED))
        until(lambda: process.poll() is not None or "silver.readings" in plant.log_end(), plant.log_end)
        next(iter(kubelet.processes.values())).kill()
        process.wait()
        assert process.returncode == 0, plant.log_end()
        assert len(kubelet.processes) == 3
        until(lambda: [pod["metadata"]["name"] for pod in server.of_namespace("pods")] == ["driver"])
    assert [made for made in server.of_namespace("configmaps") if made["metadata"]["name"].startswith("spark")] == []
    for command in ("ledger", "verify"):
        assert plant.exit_code(command) == 0, plant.log_end()
    counts = table(plant.opened().conf, "ops.ledger").sum(numeric_only=True)
    assert counts[["events", "readings"]].tolist() == [READINGS + 5, READINGS + 1]
    (log,) = (plant.folder / "state").rglob("spark.log")
    assert "orbidden" not in log.read_text()
