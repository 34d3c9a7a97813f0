"""The system calls that are refused in the sandbox: a seccomp filter for x86_64 and aarch64.

Neither Spark nor Python needs any of them. They give access to the kernel's own tables, to other processes, and to sockets that no network
namespace isolates, such as those between a virtual machine and its host (AF_VSOCK).
"""

import errno
import platform
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from orchestration.errors import TidemarkError

REFUSED = """
    acct 163 89, add_key 248 217, adjtimex 159 171, bpf 321 280, chroot 161 51, clock_adjtime 305 266, clock_settime 227 112,
    delete_module 176 106, fanotify_init 300 262, finit_module 313 273, fsconfig 431 431, fsmount 432 432, fsopen 430 430,
    fspick 433 433, init_module 175 105, io_uring_enter 426 426, io_uring_register 427 427, io_uring_setup 425 425, ioperm 173 -,
    iopl 172 -, kcmp 312 272, kexec_file_load 320 294, kexec_load 246 104, keyctl 250 219, lookup_dcookie 212 18, mbind 237 235,
    migrate_pages 256 238, mount 165 40, mount_setattr 442 442, move_mount 429 429, move_pages 279 239, name_to_handle_at 303 264,
    open_by_handle_at 304 265, open_tree 428 428, open_tree_attr 467 467, perf_event_open 298 241, pidfd_getfd 438 438,
    pivot_root 155 41, process_vm_readv 310 270, process_vm_writev 311 271, ptrace 101 117, quotactl 179 60, quotactl_fd 443 443,
    reboot 169 142, request_key 249 218, set_mempolicy 238 237, setdomainname 171 162, sethostname 170 161, setns 308 268,
    settimeofday 164 170, swapoff 168 225, swapon 167 224, syslog 103 116, umount2 166 39, unshare 272 97, userfaultfd 323 282,
    vhangup 153 58
"""
"""Name, number on x86_64, number on aarch64; - where there is no such call."""
SOCKETS = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""The families that the network namespace isolates, and netlink, which the C library uses to list interfaces."""
NEW_NAMESPACE = 0x7E020000
"""The flags of clone that create a namespace: user, mount, network and so on."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""Requests of ioctl that type into the terminal that the server was started from: TIOCSTI, TIOCLINUX."""


@dataclass(frozen=True)
class Machine:
    """Numbers of system calls on one architecture. `column`: of REFUSED. `foreign`: numbers from here on belong to another ABI (x32)."""

    audit: int
    column: int
    clone: int
    clone3: int
    socket: int
    ioctl: int
    foreign: int = 0xFFFFFFFF


MACHINES = {
    "x86_64": Machine(0xC000003E, 1, clone=56, clone3=435, socket=41, ioctl=16, foreign=0x40000000),
    "aarch64": Machine(0xC00000B7, 2, clone=220, clone3=435, socket=198, ioctl=29),
}
# Offsets in the kernel's seccomp_data: the number of the call, the architecture, the low half of the first and second argument.
NUMBER, AUDIT, FIRST, SECOND = 0, 4, 16, 24
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # opcodes of classic BPF
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def system_call_filter(machine: str = platform.machine()) -> bytes:
    """The filter in the format that bubblewrap reads; TidemarkError on an unknown architecture."""
    if machine not in MACHINES:
        raise TidemarkError(f"the sandbox knows the system calls of {' and '.join(MACHINES)}, not those of {machine}: use one of these.")
    return b"".join(_instructions(MACHINES[machine]))


def _instructions(machine: Machine) -> Iterator[bytes]:
    yield _instruction(LOAD, AUDIT)
    yield from (_instruction(EQUAL, machine.audit, 1, 0), _instruction(RETURN, KILL))
    yield _instruction(LOAD, NUMBER)
    yield from _if(AT_LEAST, machine.foreign, ERROR | errno.ENOSYS)
    for number in (call.split()[machine.column] for call in REFUSED.split(",")):
        if number != "-":
            yield from _if(EQUAL, int(number), ERROR | errno.EPERM)
    # Its flags are in memory, which a filter cannot read; the C library then falls back to clone.
    yield from _if(EQUAL, machine.clone3, ERROR | errno.ENOSYS)
    yield from _of_call(machine.clone, [_instruction(LOAD, FIRST), *_if(ANY_BIT, NEW_NAMESPACE, ERROR | errno.EPERM)])
    typing = [step for request in TERMINAL_INPUT for step in _if(EQUAL, request, ERROR | errno.EPERM)]
    yield from _of_call(machine.ioctl, [_instruction(LOAD, SECOND), *typing])
    families = [step for family in SOCKETS for step in _if(EQUAL, family, ALLOW)]
    yield from _of_call(machine.socket, [_instruction(LOAD, FIRST), *families, _instruction(RETURN, ERROR | errno.EAFNOSUPPORT)])
    yield _instruction(RETURN, ALLOW)


def _of_call(number: int, instructions: list[bytes]) -> list[bytes]:
    """Run the instructions for the call of this number, and allow it if none has decided; other calls skip them."""
    return [_instruction(EQUAL, number, 0, len(instructions) + 1), *instructions, _instruction(RETURN, ALLOW)]


def _if(test: int, value: int, verdict: int) -> list[bytes]:
    return [_instruction(test, value, 0, 1), _instruction(RETURN, verdict)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
