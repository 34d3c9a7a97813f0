"""Runs in a sandbox and reports what it could do there: one JSON object on stdout. Its argument is a JSON object.

It has the standard library only, and is given as text to the Python in the sandbox.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FAMILIES = {"packet": 17, "crypto": 38, "bluetooth": 31, "host of the virtual machine": 40}


def tried(attempt: Callable[[], Any]) -> str:
    """`done`, or the name of the error."""
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "done"


def read(path: str) -> None:
    """A file, or the names in a folder."""
    if os.path.isdir(path):
        os.listdir(path)
    else:
        Path(path).read_bytes()


def opened(path: str) -> str:
    """What is in a file, nothing where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def write(path: str, flags: int = os.O_WRONLY) -> None:
    """Open it to write, without writing anything."""
    os.close(os.open(path, flags))


def changes(folder: str, file: str) -> dict[str, Callable[[], Any]]:
    """Ways to change a folder and a file in it."""
    return {
        "create": lambda: write(f"{folder}/new", os.O_WRONLY | os.O_CREAT),
        "open": lambda: write(file),
        "open through /proc": lambda: write(f"/proc/self/root{file}"),
        "append": lambda: write(file, os.O_RDWR | os.O_APPEND),
        "truncate": lambda: os.truncate(file, 0),
        "remove": lambda: os.unlink(file),
        "rename": lambda: os.rename(file, f"{file}.new"),
        "link": lambda: os.link(file, f"{file}.new"),
        "take along": lambda: os.link(file, "/tmp/taken"),
        "permit": lambda: os.chmod(file, 0o666),
        "touch": lambda: os.utime(file),
        "own": lambda: os.chown(file, os.getuid(), os.getgid()),
        "make a folder": lambda: os.mkdir(f"{folder}/new"),
        "mark": lambda: os.setxattr(file, "user.mark", b"1"),
    }


def writable(top: str, but: list[str]) -> list[str]:
    """Folders in which a file can be made, and files that can be written, outside of some."""
    writable = []
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in but]
        if tried(partial(write, f"{folder}/new", os.O_WRONLY | os.O_CREAT)) == "done":
            writable.append(folder)
        writable += [path for path in (os.path.join(folder, name) for name in files) if tried(partial(write, path)) == "done"]
    return writable


def memory(size: int) -> str:
    """Whether so many bytes can be had."""
    try:
        return "done" if bytearray(size) else "none"
    except MemoryError:
        return "MemoryError"


def fill(folder: str, size: int) -> None:
    """Write so many bytes."""
    with open(f"{folder}/large", "wb") as file:
        for _ in range(size >> 20):
            file.write(b"x" * (1 << 20))


def call(number: int) -> str:
    """A system call with arguments that mean nothing."""
    ctypes.set_errno(0)
    library = ctypes.CDLL(None, use_errno=True)
    return "done" if library.syscall(number, 0, 0, 0, 0, 0) >= 0 else errno.errorcode[ctypes.get_errno()]


def report(asked: dict[str, Any]) -> dict[str, Any]:
    """Everything."""
    own = {name for name in os.listdir("/proc") if name.isdigit()}
    return {
        "root": sorted(os.listdir("/")),
        "etc": sorted(os.listdir("/etc")),
        "read": {path: tried(partial(read, path)) for path in asked["paths"]},
        "changes": {name: tried(change) for name, change in changes(asked["folder"], asked["file"]).items()},
        "writable": writable("/", ["/proc", "/tmp", "/dev", *asked["but"]]) + writable("/dev", ["/dev/shm", "/dev/pts"]),
        "writable in /proc": writable("/proc", [f"/proc/{name}" for name in (*own, "self", "thread-self")]),
        "environment": dict(os.environ),
        "environments": [path for path in (f"/proc/{name}/environ" for name in own) if "SECRET" in opened(path)],
        "processes": len(own),
        "kill": tried(lambda: os.kill(asked["process"], signal.SIGTERM)),
        "connect": {str(address): tried(partial(socket.create_connection, address, 2)) for address in map(tuple, asked["addresses"])},
        "abstract": tried(lambda: socket.socket(socket.AF_UNIX).connect("\0" + asked["abstract"])),
        "interfaces": [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]],
        "families": {name: tried(partial(socket.socket, family, socket.SOCK_RAW)) for name, family in FAMILIES.items()},
        "calls": {name: call(number) for name, number in asked["calls"].items()},
        "status": dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line),
        "become root": tried(lambda: os.setuid(0)),
        "memory": memory(resource.getrlimit(resource.RLIMIT_DATA)[0] + 1) if asked["is_limited"] else "MemoryError",
        "fill": {folder: tried(partial(fill, folder, asked["too_much"])) for folder in ("/tmp", "/dev/shm")},
    }


print(json.dumps(report(json.loads(sys.argv[1]))))
