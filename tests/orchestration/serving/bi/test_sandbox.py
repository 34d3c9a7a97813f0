"""The sandbox, tested by a probe in it: started by root and, where root runs the tests, by another user too."""

import json
import os
import platform
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import orchestration
from orchestration.errors import TidemarkError
from orchestration.serving.bi.messages import ServerSpec
from orchestration.serving.bi.sandbox import USER, Sandbox, is_root, mounts
from orchestration.serving.bi.system_calls import MACHINES, REFUSED, system_call_filter
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.bubblewrap, pytest.mark.processes]
PROBE = Path(__file__).with_name("probe.py").read_text()
SPEC = ServerSpec("thrift", 1, -1, [], "/tmp", "512m", 2, 0, is_sandboxed=True, user=USER if is_root() else None)
DROP = f"from orchestration.serving.bi.inside import drop_privileges, ServerSpec\ndrop_privileges(ServerSpec.of_line({SPEC.line()!r}))\n"
SCRATCH_BYTES = 256 << 20
REPOSITORY = Path(orchestration.__file__).parents[1]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}
PRIVATE = (
    *map(Path, ("/etc/shadow", "/etc/hostname", "/root", "/home", "/var", "/sys", "/proc/kcore", "/proc/sys/kernel")),
    *(Path.home(), REPOSITORY / ".git", REPOSITORY / "conf", REPOSITORY / "Makefile"),
)
SYSTEM = ["/usr/bin", "/usr/lib", "/usr/lib64"]
DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "ptmx", "stdin", "stdout", "stderr")}
"""Those that hold nothing."""
NOBODY = 65534
PYTHON = "/usr/bin/python3"
"""That of the operating system, which anybody may run; the one of the tests may lie in a folder of root."""
START = """
import json, subprocess, sys
from pathlib import Path
from orchestration.serving.bi.sandbox import Sandbox
mounts, environment, scratch, command = json.loads(sys.argv[1])
with Sandbox([Path(path) for path in mounts], environment, scratch).wrap(command) as (wrapped, inherited):
    sys.exit(subprocess.run(wrapped, env={}, pass_fds=inherited).returncode)
"""


class Host:
    """What there is to find on this machine: a lake beside a secret, a process, listening sockets."""

    def __init__(self, folder: Path) -> None:
        """`folder`: everybody may look into it."""
        self.lake, self.secret = folder / "lake", folder / "secret"
        (self.lake / "bronze").mkdir(parents=True)
        (self.lake / "bronze" / "part").write_text("rows")
        for path in (self.lake, self.lake / "bronze", self.lake / "bronze" / "part"):
            path.chmod(0o777)  # nothing but the sandbox prevents writes
        self.secret.write_text("secret")
        self.process = subprocess.Popen(["sleep", "1000"])
        self.servers = [socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)]
        self.servers.append(socket.socket(socket.AF_UNIX))
        self.servers[-1].bind(f"\0tidemark-{folder.name}")
        self.servers[-1].listen()

    def question(self, reads: list[Path], is_limited: bool) -> str:
        """What the probe is to try."""
        column = MACHINES[platform.machine()].column
        calls = {call.split()[0]: call.split()[column] for call in REFUSED.split(",")}
        asked = {
            "paths": [str(path) for path in (self.secret, self.secret.parent, *PRIVATE)],
            "folder": str(self.lake / "bronze"),
            "file": str(self.lake / "bronze" / "part"),
            "but": [str(path) for path in reads],
            "process": self.process.pid,
            "addresses": [server.getsockname()[:2] for server in self.servers[:2]],
            "abstract": self.secret.parent.name,
            "calls": {name: int(number) for name, number in calls.items() if number != "-"},
            "is_limited": is_limited,
            "too_much": SCRATCH_BYTES + (1 << 20),
        }
        return json.dumps(asked)

    def close(self) -> None:
        """All gone."""
        for server in self.servers:
            server.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        made = Host(Path(folder))
        yield made
        made.close()


def by_us(host: Host) -> tuple[list[str], str]:
    """As the servers are started; the probe gives up what they give up."""
    reads = mounts([])
    asked = host.question(reads, is_limited=True)
    arguments = [[*map(str, reads), str(host.lake)], ENVIRONMENT, SCRATCH_BYTES, [sys.executable, "-c", DROP + PROBE, asked]]
    return [sys.executable, "-c", START, json.dumps(arguments)], str(REPOSITORY)


def by_somebody_else(host: Host) -> tuple[list[str], str]:
    """Somebody who is not root, and has no files but those that everybody has."""
    if not is_root() or not Path(PYTHON).exists():
        pytest.skip("only root can be somebody else, with a Python of the operating system")
    copy = host.secret.parent / "copy"
    shutil.copytree(REPOSITORY / "orchestration", copy / "orchestration", ignore=shutil.ignore_patterns("__pycache__"))
    asked = host.question([Path(path) for path in SYSTEM], is_limited=False)
    arguments = [[*SYSTEM, str(host.lake)], ENVIRONMENT, SCRATCH_BYTES, [PYTHON, "-c", PROBE, asked]]
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*become, PYTHON, "-c", START, json.dumps(arguments)], str(copy)


@pytest.fixture(scope="module", params=[by_us, by_somebody_else])
def result(request: pytest.FixtureRequest, host: Host) -> dict[str, Any]:
    """What the probe could see and do."""
    command, path = request.param(host)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "SECRET": "of the host"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    seen: dict[str, Any] = json.loads(answer.stdout)
    return seen


def test_only_the_mounts_and_the_lake_are_visible(result: dict[str, Any], host: Host) -> None:
    system = {"bin", "dev", "etc", "lib", "lib64", "proc", "tmp", "usr"}
    assert set(result["root"]) - system <= {path.parts[1] for path in mounts([])}
    assert {"passwd", "group", "hosts", "nsswitch.conf"} <= set(result["etc"])
    assert "shadow" not in result["etc"]
    readable = {path for path, answer in result["read"].items() if answer == "done"}
    assert readable <= {"/root", "/home", str(host.secret.parent)}  # folders on the way to what is there
    assert result["read"][str(host.secret)] == "ENOENT"


def test_the_lake_cannot_be_changed_nor_anything_else_that_is_not_scratch(result: dict[str, Any], host: Host) -> None:
    assert set(result["changes"].values()) <= {"EROFS", "EXDEV"}
    assert set(result["writable"]) <= DEVICES
    assert result["writable in /proc"] == []
    assert (host.lake / "bronze" / "part").read_text() == "rows"


def test_the_environment_of_the_host_is_unknown(result: dict[str, Any]) -> None:
    assert {name: value for name, value in result["environment"].items() if name not in ("PWD", "LC_CTYPE")} == ENVIRONMENT
    assert result["environments"] == []


def test_processes_of_the_host_are_neither_seen_nor_ended(result: dict[str, Any], host: Host) -> None:
    assert result["processes"] <= 3
    assert result["kill"] == "ESRCH"
    assert host.process.poll() is None


def test_there_is_no_network_but_its_own(result: dict[str, Any], host: Host) -> None:
    assert result["interfaces"] == ["lo"]
    assert set(result["connect"].values()) == {"ECONNREFUSED"}
    assert set(result["families"].values()) <= {"EAFNOSUPPORT"}
    for server in host.servers:
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_no_refused_system_call_and_no_power_of_root_is_left(result: dict[str, Any]) -> None:
    assert set(result["calls"].values()) == {"EPERM"}
    assert len(result["calls"]) > 40
    assert result["become root"] in ("EPERM", "EINVAL")
    assert {result["status"][name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0000000000000000"}
    assert (result["status"]["NoNewPrivs"], result["status"]["Seccomp"]) == ("1", "2")
    assert str(USER) in result["status"]["Uid"]
    assert "\t0" not in result["status"]["Uid"]


def test_memory_and_scratch_end_somewhere(result: dict[str, Any]) -> None:
    assert result["memory"] == "MemoryError"
    assert set(result["fill"].values()) == {"ENOSPC"}


def test_it_shows_files_that_come_to_the_lake_later(host: Host, tmp_path: Path) -> None:
    reader = "import sys; [print(open(line.strip()).read(), flush=True) for line in sys.stdin]"
    sandbox = Sandbox([*mounts([]), host.lake], ENVIRONMENT, SCRATCH_BYTES)
    with sandbox.wrap([sys.executable, "-u", "-c", reader]) as (command, inherited):
        process = subprocess.Popen(command, env={}, pass_fds=inherited, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    (host.lake / "bronze" / "later").write_text("more rows")
    answer, _ = process.communicate(f"{host.lake}/bronze/later\n", timeout=PATIENCE_SECONDS)
    assert answer == "more rows\n"


def test_the_sandbox_dies_with_the_process_that_started_it(host: Host) -> None:
    ours, theirs = os.pipe()
    arguments = [[*SYSTEM], ENVIRONMENT, SCRATCH_BYTES, ["/usr/bin/sh", "-c", "sleep 1000 & sleep 1000"]]
    start = START.replace("pass_fds=inherited", f"pass_fds=[*inherited, {theirs}]")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    parent = subprocess.Popen([sys.executable, "-c", start, json.dumps(arguments)], pass_fds=[theirs], env=environment)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        assert select.select([pipe], [], [], 3)[0] == []  # they live, and hold its other end
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert select.select([pipe], [], [], PATIENCE_SECONDS)[0] == [pipe]
        assert pipe.read() == b""


def test_a_missing_or_broken_bubblewrap_is_reported_in_one_sentence_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TidemarkError, match=r"apt-get install bubblewrap.*--without-sandbox") as missing:
        Sandbox([], {}, SCRATCH_BYTES).check()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(TidemarkError, match=r"setting up uid map: Permission denied.*--without-sandbox") as broken:
        Sandbox([], {}, SCRATCH_BYTES).check()
    assert "\n" not in f"{missing.value}{broken.value}"


def test_an_architecture_whose_system_calls_are_unknown_is_refused() -> None:
    assert len(system_call_filter("aarch64")) > 400
    with pytest.raises(TidemarkError, match="not those of riscv64"):
        system_call_filter("riscv64")
