"""A cluster of Spark on machines of its own: network namespaces that a bridge joins, for whoever is root.

The head has the master and runs Tidemark. A worker sees the lake, and of what else lies in the temporary folder nothing: it has one of
its own.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.server_process import ServerProcess
from tests.waiting import until

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
DEPLOY, PORT, OF_WORKER = "org.apache.spark.deploy", "7077", ("--cores", "1", "--memory", "1g")
MASTER = f"spark://10.77.0.1:{PORT}"
ONLY_THE_LAKE = """
set -e
mount --bind "$1" /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p "$1"; mount --bind /mnt "$1"; umount /mnt
shift; exec "$@"
"""


class Machine(ServerProcess):
    """`address`: of its network. With a `lake` its process is a worker of one core, without one the master."""

    def __init__(self, number: int, folder: Path, lake: Path | None) -> None:
        self.name, self.address = f"tidemark-{os.getpid()}-{number}", f"10.77.0.{number}"
        self._lake, self._log = lake, folder / f"machine-{number}.log"

    @property
    def inside(self) -> list[str]:
        """What begins a command that the machine is to run."""
        return ["ip", "netns", "exec", self.name, "env", f"SPARK_LOCAL_IP={self.address}"]

    def start(self) -> None:
        """Until the master leads, or knows the worker."""
        command, said = [SPARK_CLASS, f"{DEPLOY}.master.Master", "--host", self.address, "--port", PORT], "I have been elected leader"
        if self._lake is not None:
            worker = [SPARK_CLASS, f"{DEPLOY}.worker.Worker", "--host", self.address, "--work-dir", "/tmp/work", *OF_WORKER, MASTER]
            command, said = ["unshare", "--mount", "sh", "-c", ONLY_THE_LAKE, "sh", str(self._lake), *worker], "Successfully registered"
        self._log.unlink(missing_ok=True)
        self.launch([*self.inside, *command], self._log)
        until(lambda: said in self._log.read_text(), self._log.read_text)

    def commands(self) -> dict[int, str]:
        """Of its processes, by their ids."""
        pids = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True).stdout.split()
        found = {}
        for pid in pids:
            with suppress(FileNotFoundError, ProcessLookupError):
                found[int(pid)] = Path("/proc", pid, "cmdline").read_text().replace("\0", " ")
        return found

    def kill(self) -> None:
        """Everything on it: a worker, its executors and their Pythons."""
        for pid in self.commands():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().kill()


@contextmanager
def running(head: Machine, *workers: Machine) -> Iterator[None]:
    """Joined and started; behind it they are gone."""
    try:
        for machine in (head, *workers):
            _ip(f"netns add {machine.name}")
            _ip(f"-n {machine.name} link set lo up")
        _ip(f"-n {head.name} link add bridge type bridge")
        _ip(f"-n {head.name} address add {head.address}/24 dev bridge")
        _ip(f"-n {head.name} link set bridge up")
        for number, worker in enumerate(workers):
            _ip(f"-n {head.name} link add port{number} type veth peer name eth0 netns {worker.name}")
            _ip(f"-n {head.name} link set port{number} master bridge up")
            _ip(f"-n {worker.name} address add {worker.address}/24 dev eth0")
            _ip(f"-n {worker.name} link set eth0 up")
        for machine in (head, *workers):
            machine.start()
        yield
    finally:
        for machine in (head, *workers):
            with suppress(subprocess.CalledProcessError):  # of one that was not made
                machine.kill()
                _ip(f"netns delete {machine.name}")


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)
