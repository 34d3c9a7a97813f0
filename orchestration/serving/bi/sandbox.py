"""The sandbox: bubblewrap around a process, which then sees its mounts read-only, a scratch folder in memory, and a network of its own.

How it isolates: namespaces for mounts, processes, network, IPC, host name and cgroups; a root and a /dev that cannot be written to; an
environment, an /etc and a /proc that show nothing of the host; no capabilities, no way to gain one, no system call of system_calls.py.
Started by root, the process runs as a user of its own that owns nothing. Started by another user, it is in a user namespace and can create
no further one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from orchestration.engine.java import archive, java_command
from orchestration.errors import TidemarkError
from orchestration.serving.bi.system_calls import system_call_filter

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/bin", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache")
"""Shells, libraries and time zones of the operating system, and the list of the libraries; the sandbox recreates links among them."""
PACKAGES = ("bronze", "silver", "gold", "expectations", "orchestration")
"""Without conf: in a clone that folder may hold the conf of the plant."""
USER = 2_000_000_001
"""A user id that nobody has: it owns no file and no process outside, not even those of another service that runs as nobody."""
SCRATCH = "/tmp"
SHARED_MEMORY_BYTES = 64 << 20
EMPTY_PROC_FOLDERS = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys", "sysvipc", "tty")
"""Folders of /proc with settings of the whole machine. Measured: bubblewrap 0.8.0 started by root leaves /proc/sys writable."""
NULL_PROC_FILES = ("kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "sysrq-trigger", "timer_list")
ETC = {
    "passwd": f"tidemark:x:{USER}:{USER}::{SCRATCH}:/bin/false\n",
    "group": f"tidemark:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
HINT = (
    "install bubblewrap (Debian and Ubuntu: `apt-get install bubblewrap`); or start it with --without-sandbox, where this machine is "
    "such a sandbox itself, a container with nothing in it but a read-only lake"
)


@dataclass(frozen=True)
class Sandbox:
    """`mounts`: what the process sees, at the same paths; `environment`: all of its variables; `scratch_bytes`: size of /tmp, in memory."""

    mounts: Sequence[Path]
    environment: Mapping[str, str]
    scratch_bytes: int

    @contextmanager
    def wrap(self, command: Sequence[str]) -> Iterator[tuple[list[str], list[int]]]:
        """The command to start instead, with an empty environment, and the file descriptors that it must inherit."""
        with ExitStack() as files:
            etc = {f"/etc/{name}": _in_memory(files, text.encode()) for name, text in ETC.items()}
            calls = _in_memory(files, system_call_filter())
            options = [*self._options(etc), "--seccomp", str(calls)]
            # Not on the command line: the process could read it there and learn what exists on the host.
            arguments = _in_memory(files, "\0".join(options).encode())
            yield [_bubblewrap(), "--args", str(arguments), "--", *command], [arguments, calls, *etc.values()]

    def check(self) -> None:
        """TidemarkError with a hint, unless this machine can start the sandbox."""
        with self.wrap(["/usr/bin/true"]) as (command, inherited):
            answer = subprocess.run(
                command, env={}, pass_fds=inherited, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
        if answer.returncode:
            reason = (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[-1]
            raise TidemarkError(
                f"bubblewrap cannot start a sandbox here ({reason}): allow it to create namespaces, or start with --without-sandbox."
            )

    def _options(self, etc: Mapping[str, int]) -> Iterator[str]:
        yield from _NAMESPACES
        yield from (("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if is_root() else _OF_A_USER)
        yield from _own_folders(self.scratch_bytes)
        for name in ("bin", "lib", "lib64"):
            if (link := Path("/", name)).is_symlink():
                yield from ("--symlink", os.readlink(link), str(link))
        for folder in dict.fromkeys(parent for path in self.mounts for parent in reversed(path.parents[:-1])):
            yield from ("--perms", "0755", "--dir", str(folder))  # bubblewrap's own default is 0700
        for path in self.mounts:
            yield from ("--ro-bind", str(path.resolve()), str(path))
        yield from ("--perms", "0755", "--dir", "/etc")
        for path_inside, file in etc.items():
            yield from ("--perms", "0444", "--ro-bind-data", str(file), path_inside)
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH)
        for name, value in self.environment.items():
            yield from ("--setenv", name, value)


_NAMESPACES = (
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"),
    *("--new-session", "--die-with-parent", "--cap-drop", "ALL"),
)
_OF_A_USER = ("--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER))


def is_root() -> bool:
    """Whether this process is root: then the sandbox needs no user namespace, and must not run as root."""
    return os.geteuid() == 0


def _bubblewrap() -> str:
    path = shutil.which("bwrap")
    if path is None:
        raise TidemarkError(f"clients of this server can do whatever the server may, so it runs in a sandbox only: {HINT}.")
    return path


def _own_folders(scratch_bytes: int) -> Iterator[str]:
    """Yield options for folders that are not the host's: /proc with these processes only, empty devices, folders in memory of a limited
    size."""
    yield from ("--proc", "/proc")
    for name in EMPTY_PROC_FOLDERS:
        if Path("/proc", name).is_dir():
            yield from ("--size", "4096", "--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}")
    for name in NULL_PROC_FILES:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    yield from ("--dev", "/dev", "--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")
    yield from ("--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", SCRATCH)


def _in_memory(files: ExitStack, content: bytes) -> int:
    """The descriptor of an unnamed file in memory, positioned at its start; closed with `files`."""
    file = files.enter_context(os.fdopen(os.memfd_create("tidemark"), "wb", buffering=0))
    file.write(content)
    file.seek(0)
    return file.fileno()


def mounts(jars: Iterable[Path]) -> list[Path]:
    """The files that Spark and Python need to run, each at its own path; none lies in another."""
    system = [path for path in map(Path, SYSTEM) if not path.is_symlink()]
    folders = [*system, *_python(), java_home(), *_packages()]
    paths = [path for path in dict.fromkeys([*folders, *jars, archive()]) if path.exists()]
    paths += _link_targets_outside(java_home(), paths)
    return [path for path in paths if not any(path != other and path.is_relative_to(other) for other in paths)]


def java_home() -> Path:
    """The folder of the Java that Spark will use, with all links resolved."""
    return Path(java_command()).resolve().parents[1]


def _python() -> Iterator[Path]:
    """The environment of this process and the Python that it was made from: not all of its folder, which may be /usr."""
    yield from (Path(sys.prefix) / name for name in ("bin", "lib", "lib64", "pyvenv.cfg"))
    yield from (Path(sys.base_prefix) / name for name in ("bin", "lib"))


def _packages() -> Iterator[Path]:
    """Tidemark's packages, in a clone or in the environment, and the folder that pyspark is installed in."""
    origins = {name: find_spec(name) for name in (*PACKAGES, "pyspark")}
    folders = {name: Path(spec.origin).parent for name, spec in origins.items() if spec and spec.origin}
    yield from (folders[name] for name in PACKAGES)
    yield folders["pyspark"].parent


def _link_targets_outside(folder: Path, mounted: list[Path]) -> list[Path]:
    """Targets of links in a folder that are not mounted yet: Debian keeps the settings of its Java in /etc."""
    targets = {Path(os.readlink(link)) for link in folder.rglob("*") if link.is_symlink()}
    existing = [target for target in targets if target.is_absolute() and target.exists()]
    return sorted(target for target in existing if not any(target.is_relative_to(path) for path in mounted))
