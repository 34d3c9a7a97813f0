"""The fence, tried out by a probe behind it: started by root and, where root runs the tests, by somebody else too."""

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
from orchestration.serving.bi.messages import Order
from orchestration.serving.bi.mounts import provisions
from orchestration.serving.bi.sandbox import USER, Fence, is_root
from orchestration.serving.bi.system_calls import MACHINES, REFUSED, system_call_filter

PROBE = Path(__file__).with_name("probe.py").read_text()
ORDER = Order("thrift", 1, -1, [], "/tmp", "512m", 2, 0, is_fenced=True, user=USER if is_root() else None)
GIVE_UP = f"from orchestration.serving.bi.inside import give_up_powers, Order\ngive_up_powers(Order.of_line({ORDER.line()!r}))\n"
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
from orchestration.bi.fence import Fence
reads, environment, scratch, command = json.loads(sys.argv[1])
with Fence([Path(path) for path in reads], environment, scratch).around(command) as (fenced, inherited):
    sys.exit(subprocess.run(fenced, env={}, pass_fds=inherited).returncode)
"""


class Host:
    """What there is to find on this machine: a lake beside a secret, a process, listening sockets."""

    def __init__(self, folder: Path) -> None:
        """`folder`: everybody may look into it."""
        self.lake, self.secret = folder / "lake", folder / "secret"
        (self.lake / "bronze").mkdir(parents=True)
        (self.lake / "bronze" / "part").write_text("rows")
        for path in (self.lake, self.lake / "bronze", self.lake / "bronze" / "part"):
            path.chmod(0o777)  # nothing but the fence holds anybody back
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
            "addresses": [each.getsockname()[:2] for each in self.servers[:2]],
            "abstract": self.secret.parent.name,
            "calls": {name: int(number) for name, number in calls.items() if number != "-"},
            "is_limited": is_limited,
            "too_much": SCRATCH_BYTES + (1 << 20),
        }
        return json.dumps(asked)

    def close(self) -> None:
        """All gone."""
        for each in self.servers:
            each.close()
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
    reads = provisions([])
    asked = host.question(reads, is_limited=True)
    order = [[*map(str, reads), str(host.lake)], ENVIRONMENT, SCRATCH_BYTES, [sys.executable, "-c", GIVE_UP + PROBE, asked]]
    return [sys.executable, "-c", START, json.dumps(order)], str(REPOSITORY)


def by_somebody_else(host: Host) -> tuple[list[str], str]:
    """Somebody who is not root, and has no files but those that everybody has."""
    if not is_root() or not Path(PYTHON).exists():
        pytest.skip("only root can be somebody else, with a Python of the operating system")
    copy = host.secret.parent / "copy"
    shutil.copytree(REPOSITORY / "orchestration", copy / "orchestration", ignore=shutil.ignore_patterns("__pycache__"))
    asked = host.question([Path(path) for path in SYSTEM], is_limited=False)
    order = [[*SYSTEM, str(host.lake)], ENVIRONMENT, SCRATCH_BYTES, [PYTHON, "-c", PROBE, asked]]
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*become, PYTHON, "-c", START, json.dumps(order)], str(copy)


@pytest.fixture(scope="module", params=[by_us, by_somebody_else])
def found(request: pytest.FixtureRequest, host: Host) -> dict[str, Any]:
    """What the probe tells."""
    command, path = request.param(host)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "SECRET": "of the host"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def test_nothing_of_the_host_is_there_but_the_provisions_and_the_lake(found: dict[str, Any], host: Host) -> None:
    known = {"bin", "dev", "etc", "lib", "lib64", "proc", "tmp", "usr"}
    assert set(found["root"]) - known <= {path.parts[1] for path in provisions([])}
    assert {"passwd", "group", "hosts", "nsswitch.conf"} <= set(found["etc"])
    assert "shadow" not in found["etc"]
    readable = {path for path, told in found["read"].items() if told == "done"}
    assert readable <= {"/root", "/home", str(host.secret.parent)}  # folders on the way to what is there
    assert found["read"][str(host.secret)] == "ENOENT"


def test_the_lake_cannot_be_changed_nor_anything_else_that_is_not_scratch(found: dict[str, Any], host: Host) -> None:
    assert set(found["changes"].values()) <= {"EROFS", "EXDEV"}
    assert set(found["writable"]) <= DEVICES
    assert found["writable in /proc"] == []
    assert (host.lake / "bronze" / "part").read_text() == "rows"


def test_the_environment_of_the_host_is_unknown(found: dict[str, Any]) -> None:
    assert {name: value for name, value in found["environment"].items() if name not in ("PWD", "LC_CTYPE")} == ENVIRONMENT
    assert found["environments"] == []


def test_processes_of_the_host_are_neither_seen_nor_ended(found: dict[str, Any], host: Host) -> None:
    assert found["processes"] <= 3
    assert found["kill"] == "ESRCH"
    assert host.process.poll() is None


def test_there_is_no_network_but_its_own(found: dict[str, Any], host: Host) -> None:
    assert found["interfaces"] == ["lo"]
    assert set(found["connect"].values()) == {"ECONNREFUSED"}
    assert set(found["families"].values()) <= {"EAFNOSUPPORT"}
    for server in host.servers:
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_no_refused_system_call_and_no_power_of_root_is_left(found: dict[str, Any]) -> None:
    assert set(found["calls"].values()) == {"EPERM"}
    assert len(found["calls"]) > 40
    assert found["become root"] in ("EPERM", "EINVAL")
    assert {found["status"][name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0000000000000000"}
    assert (found["status"]["NoNewPrivs"], found["status"]["Seccomp"]) == ("1", "2")
    assert str(USER) in found["status"]["Uid"]
    assert "\t0" not in found["status"]["Uid"]


def test_memory_and_scratch_end_somewhere(found: dict[str, Any]) -> None:
    assert found["memory"] == "MemoryError"
    assert set(found["fill"].values()) == {"ENOSPC"}


def test_it_shows_files_that_come_to_the_lake_later(host: Host, tmp_path: Path) -> None:
    reader = "import sys; [print(open(line.strip()).read(), flush=True) for line in sys.stdin]"
    fence = Fence([*provisions([]), host.lake], ENVIRONMENT, SCRATCH_BYTES)
    with fence.around([sys.executable, "-u", "-c", reader]) as (command, inherited):
        process = subprocess.Popen(command, env={}, pass_fds=inherited, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    (host.lake / "bronze" / "later").write_text("more rows")
    told, _ = process.communicate(f"{host.lake}/bronze/later\n", timeout=30)
    assert told == "more rows\n"


def test_what_is_behind_it_dies_with_who_put_it_up(host: Host) -> None:
    ours, theirs = os.pipe()
    order = [[*SYSTEM], ENVIRONMENT, SCRATCH_BYTES, ["/usr/bin/sh", "-c", "sleep 1000 & sleep 1000"]]
    start = START.replace("pass_fds=inherited", f"pass_fds=[*inherited, {theirs}]")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    parent = subprocess.Popen([sys.executable, "-c", start, json.dumps(order)], pass_fds=[theirs], env=environment)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        assert select.select([pipe], [], [], 3)[0] == []  # they live, and hold its other end
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert select.select([pipe], [], [], 10)[0] == [pipe]
        assert pipe.read() == b""


def test_where_bubblewrap_is_missing_or_broken_it_says_so_in_a_sentence_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TidemarkError, match=r"apt-get install bubblewrap.*--without-a-fence") as missing:
        Fence([], {}, SCRATCH_BYTES).try_out()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(TidemarkError, match=r"setting up uid map: Permission denied.*--without-a-fence") as broken:
        Fence([], {}, SCRATCH_BYTES).try_out()
    assert "\n" not in f"{missing.value}{broken.value}"


def test_a_machine_whose_system_calls_are_unknown_is_refused() -> None:
    assert len(system_call_filter("aarch64")) > 400
    with pytest.raises(TidemarkError, match="not those of riscv64"):
        system_call_filter("riscv64")
