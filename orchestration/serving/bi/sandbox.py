"""The fence: bubblewrap around a process, which then sees its provisions read-only, a scratch folder in memory, and a network of its own.

What holds it: namespaces for mounts, processes, network, IPC, host name and cgroups; a root and a /dev that nothing can be written to; an
environment, an /etc and a /proc that tell of nothing else; no capability, no way to gain one, no system call of system_calls.py.
Started by root it is a user of its own that owns nothing; started by anybody else it is in a user namespace and can make no other.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.serving.bi.system_calls import system_call_filter

USER = 2_000_000_001
"""Nobody has this number: it owns no file and no process outside, not even those of another service that runs as nobody."""
SCRATCH = "/tmp"
SHARED_MEMORY_BYTES = 64 << 20
SHOWN_EMPTY = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys", "sysvipc", "tty")
"""Folders of /proc with settings of the whole machine. Measured: bubblewrap 0.8.0 started by root leaves /proc/sys writable."""
SHOWN_AS_NOTHING = ("kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "sysrq-trigger", "timer_list")
ETC = {
    "passwd": f"tidemark:x:{USER}:{USER}::{SCRATCH}:/bin/false\n",
    "group": f"tidemark:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost fence\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
WAY_OUT = (
    "install bubblewrap (Debian and Ubuntu: `apt-get install bubblewrap`); or start it with --without-a-fence, where this machine is "
    "such a fence itself, a container with nothing in it but a read-only lake"
)


@dataclass(frozen=True)
class Fence:
    """`reads`: what the process sees, at the same paths; `environment`: all of its variables; `scratch_bytes`: of memory, as files."""

    reads: Sequence[Path]
    environment: Mapping[str, str]
    scratch_bytes: int

    @contextmanager
    def around(self, command: Sequence[str]) -> Iterator[tuple[list[str], list[int]]]:
        """The command to start instead, with an empty environment, and the file descriptors that it is to inherit."""
        with ExitStack() as files:
            etc = {f"/etc/{name}": files.enter_context(_in_memory(text.encode())) for name, text in ETC.items()}
            calls = files.enter_context(_in_memory(system_call_filter()))
            options = [*self._options(etc), "--seccomp", str(calls)]
            # Not on the command line, which the process could read: it is not to know what there is on the host.
            told = files.enter_context(_in_memory("\0".join(options).encode()))
            yield [_bubblewrap(), "--args", str(told), "--", *command], [told, calls, *etc.values()]

    def try_out(self) -> None:
        """TidemarkError with the way out, unless it can be put up here."""
        with self.around(["/usr/bin/true"]) as (command, inherited):
            answer = subprocess.run(
                command, env={}, pass_fds=inherited, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
        if answer.returncode:
            told = (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[-1]
            raise TidemarkError(f"bubblewrap cannot put up a fence here ({told}): let it make namespaces, or start with --without-a-fence.")

    def _options(self, etc: Mapping[str, int]) -> Iterator[str]:
        yield from _NAMESPACES
        yield from (("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if is_root() else _OF_A_USER)
        yield from _mounts(self.scratch_bytes)
        for name in ("bin", "lib", "lib64"):
            if (link := Path("/", name)).is_symlink():
                yield from ("--symlink", os.readlink(link), str(link))
        for folder in dict.fromkeys(parent for path in self.reads for parent in reversed(path.parents[:-1])):
            yield from ("--perms", "0755", "--dir", str(folder))  # bubblewrap would keep them to itself
        for path in self.reads:
            yield from ("--ro-bind", str(path.resolve()), str(path))
        yield from ("--perms", "0755", "--dir", "/etc")
        for path_inside, file in etc.items():
            yield from ("--perms", "0444", "--ro-bind-data", str(file), path_inside)
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH)
        for name, value in self.environment.items():
            yield from ("--setenv", name, value)


_NAMESPACES = (
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "fence"),
    *("--new-session", "--die-with-parent", "--cap-drop", "ALL"),
)
_OF_A_USER = ("--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER))


def is_root() -> bool:
    """Whether this process is root, who needs no user namespace and must not lend its number to what is behind the fence."""
    return os.geteuid() == 0


def _bubblewrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise TidemarkError(f"a client of this server could do whatever the server may, so it runs behind a fence only: {WAY_OUT}.")
    return found


def _mounts(scratch_bytes: int) -> Iterator[str]:
    """What is not of the host: /proc of these processes alone, devices that hold nothing, folders in memory of a limited size."""
    yield from ("--proc", "/proc")
    for name in SHOWN_EMPTY:
        if Path("/proc", name).is_dir():
            yield from ("--size", "4096", "--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}")
    for name in SHOWN_AS_NOTHING:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    yield from ("--dev", "/dev", "--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")
    yield from ("--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", SCRATCH)


@contextmanager
def _in_memory(content: bytes) -> Iterator[int]:
    """A file without a name, to be read from its start."""
    file = os.memfd_create("tidemark")
    try:
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)
