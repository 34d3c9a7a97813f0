"""A cluster of Spark on machines of its own: network namespaces that a bridge joins, for whoever is root.

The head has the bridge, Spark's master and the object store. Other machines have a worker, or run Tidemark. A machine sees a folder of its
own, and nothing else of what lies in the temporary folder: they share the store and no file.
"""

import json
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
NETWORK, HEAD = "10.77.0", 1
MASTER = f"spark://{NETWORK}.{HEAD}:{PORT}"
FORGETS = "-Dspark.worker.timeout=20"
"""The seconds after which the master gives up a worker that says nothing, which speaks each quarter of them; the default is 60."""
ONLY_ITS_FOLDER = """
set -e
mount --bind "$1" /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p "$1"; mount --bind /mnt "$1"; umount /mnt
shift; exec "$@"
"""


class Machine(ServerProcess):
    """`address`: of its network. `folder`: all of the temporary folder that it sees. Started, it is the master or a worker of one core."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.address, self.folder = number, f"{NETWORK}.{number}", folder / f"machine-{number}"
        self.folder.mkdir()

    @property
    def name(self) -> str:
        return _name(self.number)

    @property
    def inside(self) -> list[str]:
        """What begins a command that the machine is to run."""
        isolated = ["ip", "netns", "exec", self.name, "unshare", "--mount", "sh", "-c", ONLY_ITS_FOLDER, "sh", str(self.folder)]
        variables = {"SPARK_LOCAL_IP": self.address, "SPARK_SCALA_VERSION": "2.13", "SPARK_DAEMON_JAVA_OPTS": FORGETS}
        variables |= {"SPARK_HOME": str(Path(pyspark.__file__).parent), "XDG_STATE_HOME": str(self.folder / "state")}
        return [*isolated, "env", *(f"{name}={value}" for name, value in variables.items())]

    def start(self) -> None:
        """Until the master leads, or knows the worker."""
        command, said = [SPARK_CLASS, f"{DEPLOY}.master.Master", "--host", self.address, "--port", PORT], "I have been elected leader"
        if self.number != HEAD:
            command = [SPARK_CLASS, f"{DEPLOY}.worker.Worker", "--host", self.address, "--work-dir", "/tmp/work", *OF_WORKER, MASTER]
            said = "Successfully registered"
        log = self.folder / "spark.log"
        log.unlink(missing_ok=True)
        self.launch([*self.inside, *command], log)
        until(lambda: said in log.read_text(), log.read_text)

    def commands(self) -> dict[int, str]:
        """Of its processes, by their ids."""
        pids = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True).stdout.split()
        found = {}
        for pid in pids:
            with suppress(FileNotFoundError, ProcessLookupError):
                found[int(pid)] = Path("/proc", pid, "cmdline").read_text().replace("\0", " ")
        return found

    def kill(self) -> None:
        """Everything on it: a worker, its executors and their Pythons, and Tidemark where that runs there."""
        for pid in self.commands():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().kill()

    def received(self) -> int:
        """The bytes that came by its link."""
        shown = subprocess.run(["ip", "-n", self.name, "-s", "-j", "link", "show", "eth0"], capture_output=True, check=True).stdout
        return int(json.loads(shown)[0]["stats64"]["rx"]["bytes"])

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Its link to all others is down meanwhile; its processes run on."""
        _ip(f"-n {_name(HEAD)} link set port{self.number} down")
        try:
            yield
        finally:
            _ip(f"-n {_name(HEAD)} link set port{self.number} up")


@contextmanager
def joined(head: Machine, *others: Machine) -> Iterator[None]:
    """Machines by their network, none of which has started; the process of the tests is in it too. Behind it they are gone."""
    try:
        for machine in (head, *others):
            _ip(f"netns add {machine.name}")
            _ip(f"-n {machine.name} link set lo up")
        _ip(f"-n {head.name} link add bridge type bridge")
        _ip(f"-n {head.name} address add {head.address}/24 dev bridge")
        _ip(f"-n {head.name} link set bridge up")
        for machine in others:
            _join(machine.number, machine.address, machine.name)
        _join(0, f"{NETWORK}.254", None)
        yield
    finally:
        for machine in (head, *others):
            with suppress(subprocess.CalledProcessError):  # of one that was not made
                machine.kill()
                _ip(f"netns delete {machine.name}")


def _join(number: int, address: str, machine: str | None) -> None:
    """Put a cable between the bridge and a machine, or the one that all of them are on."""
    device = "eth0" if machine else f"tidemark{os.getpid()}"
    _ip(f"-n {_name(HEAD)} link add port{number} type veth peer name {device} netns {machine or os.getpid()}")
    _ip(f"-n {_name(HEAD)} link set port{number} master bridge up")
    there = f"-n {machine} " if machine else ""
    _ip(f"{there}address add {address}/24 dev {device}")
    _ip(f"{there}link set {device} up")


def _name(number: int) -> str:
    return f"tidemark-{os.getpid()}-{number}"


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)
