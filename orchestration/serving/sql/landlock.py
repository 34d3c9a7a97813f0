"""Takes write access from processes that answer queries, with Linux's Landlock: a thread restricts itself and whatever it starts.

https://docs.kernel.org/userspace-api/landlock.html; in kernels from 5.13 on, for every user, without a package.
"""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # numbers of these system calls, the same on every architecture
PR_SET_NO_NEW_PRIVS = 38
VERSION = 1
PATH_BENEATH = 1
WRITE_FILE = 1 << 1
ADDED_BY_VERSION = {1: sum(1 << bit for bit in (1, *range(4, 13))), 2: 1 << 13, 3: 1 << 14}
"""Rights to change a file system (write, remove, make; since 2 move, since 3 truncate); reading is not among them."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


libc = ctypes.CDLL(None, use_errno=True)


def is_supported() -> bool:
    return bool(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION)) > 0)


def without_write_access(action: Callable[[], Result]) -> Result:
    """Return the result of an action, or raise its error; its thread, and whatever that starts, may change no file."""

    def run() -> Result:
        restrict()
        return action()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(run).result()


def restrict() -> None:
    """Let this thread, and whatever it starts from now on, change no file but /dev/null."""
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION))
    rights = sum(added for since, added in ADDED_BY_VERSION.items() if since <= version)
    ruleset = _Ruleset(rights)
    rules = _checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), ctypes.c_uint32(0)))
    devnull = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
    may_write = _PathBeneath(WRITE_FILE, devnull)
    _checked(libc.syscall(ADD_RULE, rules, PATH_BENEATH, ctypes.byref(may_write), ctypes.c_uint32(0)))
    os.close(devnull)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, *(ctypes.c_ulong(number) for number in (1, 0, 0, 0))))
    _checked(libc.syscall(RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    os.close(rules)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
