"""Kubernetes for tests: its API server, with the rights of roles and an etcd of its own, and a kubelet that runs pods of executors here."""

import base64
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

ROOT = Path(__file__).parents[2]
API_SERVER = ROOT / "artifacts/tools/kubernetes/kubernetes"
"""`make kubernetes` builds it."""
MANIFEST, ENTRY = (ROOT / "orchestration/service/deploy" / name for name in ("kubernetes.yml", "entry.sh"))
ADMIN, NAMESPACE = "token-of-the-admin", "plant"
PATHS = {"Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1", "Deployment": "apps/v1"}
STATUS = "application/merge-patch+json"


class ApiServer(ServerProcess):
    """`address`: of the API. Nothing but a Kubelet below acts on what is written there: no scheduler, and no controllers."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ports = folder, free_ports(3)
        self.address = f"https://127.0.0.1:{self._ports[0]}"
        (folder / "tokens.csv").write_text(f"{ADMIN},admin,admin,system:masters\n")
        subprocess.run(["openssl", "genrsa", "-out", str(folder / "key.pem"), "2048"], check=True, capture_output=True)

    @property
    def certificate(self) -> Path:
        return self._folder / "certificates/apiserver.crt"

    @cached_property
    def _http(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(ca_certs=str(self.certificate))

    def start(self) -> None:
        key = self._folder / "key.pem"
        options = {
            "secure-port": self._ports[0],
            "bind-address": "127.0.0.1",
            "cert-dir": self._folder / "certificates",
            "authorization-mode": "RBAC",
            "token-auth-file": self._folder / "tokens.csv",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": "ServiceAccount",  # it waits for a controller
        }
        command = [str(API_SERVER), str(self._folder / "etcd"), *map(str, self._ports[1:])]
        self.launch([*command, *(f"--{name}={value}" for name, value in options.items())], self._folder / "log", cwd=self._folder)
        until(lambda: self.certificate.exists() and self.listens(self._ports[0]), (self._folder / "log").read_text)
        until(lambda: self.ask("GET", "/readyz")[0] == 200, (self._folder / "log").read_text)

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """Code and body of the answer, as the admin."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind}
        answer = self._http.request(method, f"{self.address}{path}", body=json.dumps(body) if body else None, headers=headers)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, answer.json() if is_json else answer.data.decode()

    def create(self, made: Mapping[str, Any]) -> Any:
        """An object of the namespace; the API refuses a field that it does not know."""
        version = PATHS.get(made["kind"])
        folder = f"/apis/{version}" if version else "/api/v1"
        path = f"{folder}/namespaces/{NAMESPACE}/{made['kind'].lower()}s?fieldValidation=Strict"
        code, answer = self.ask("POST", path, made)
        assert code == 201, answer
        return answer

    def of_namespace(self, kind: str) -> list[Any]:
        """All objects of a kind, such as `pods`."""
        return list(self.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/{kind}")[1]["items"])

    def apply_manifest(self) -> None:
        """What the manifest declares, and the pod that its Deployment would make: `driver`."""
        assert self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})[0] == 201
        for made in yaml.safe_load_all(MANIFEST.read_text()):
            self.create(made)
        pod = made["spec"]["template"]
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"] | {"name": "driver"}, "spec": pod["spec"]})

    def token(self, account: str) -> str:
        """What a pod of this account has."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36_000}}
        return str(self.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", request)[1]["status"]["token"])


class Kubelet:
    """Runs the container of each executor's pod as a process of this machine, by the entry of the image. `processes`: by pods."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self._server, self._folder, self.processes = server, folder, dict[str, subprocess.Popen[bytes]]()

    @contextmanager
    def running(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            for process in self.processes.values():
                process.kill()
                process.wait()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.is_set():
            for pod in self._server.of_namespace("pods"):
                if pod["metadata"]["labels"].get("spark-role") == "executor":
                    self._follow(pod)
            time.sleep(0.2)

    def _follow(self, pod: Any) -> None:
        name = pod["metadata"]["name"]
        path, process = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", self.processes.get(name)
        if process is None:
            self.processes[name] = self._start(name, pod["spec"]["containers"][0])
            self._tell(path, "Running", {"running": {}})
        elif pod["metadata"].get("deletionTimestamp"):
            process.terminate()
            self._server.ask("DELETE", f"{path}?gracePeriodSeconds=0")
        elif process.poll() is not None and pod["status"]["phase"] == "Running":
            self._tell(path, "Failed" if process.returncode else "Succeeded", {"terminated": {"exitCode": process.returncode}})

    def _start(self, name: str, container: Any) -> "subprocess.Popen[bytes]":
        folder = self._folder / name
        folder.mkdir()
        variables = {made["name"]: self._value(name, made) for made in container["env"]} | {"SPARK_LOCAL_DIRS": str(folder)}
        surroundings = {name: os.environ[name] for name in ("PATH", "HOME")} | variables
        with (folder / "log").open("wb") as log:
            return subprocess.Popen([str(ENTRY), *container["args"]], stdout=log, stderr=log, cwd=folder, env=surroundings)

    def _value(self, pod: str, made: Any) -> str:
        if (secret := made.get("valueFrom", {}).get("secretKeyRef")) is not None:
            kept = self._server.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{secret['name']}")[1]
            return base64.b64decode(kept["data"][secret["key"]]).decode()
        if (field := made.get("valueFrom", {}).get("fieldRef")) is not None:
            return {"status.podIP": "127.0.0.1", "metadata.name": pod}[field["fieldPath"]]
        return str(made.get("value", ""))

    def _tell(self, path: str, phase: str, state: Any) -> None:
        container = {"name": "spark-kubernetes-executor", "image": "", "imageID": "", "ready": True, "restartCount": 0, "state": state}
        status = {"phase": phase, "podIP": "127.0.0.1", "containerStatuses": [container]}
        self._server.ask("PATCH", f"{path}/status", {"status": status}, STATUS)
