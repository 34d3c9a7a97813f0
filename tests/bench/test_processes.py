"""Memory of measured processes."""

import subprocess
import sys

from tests.bench.processes import used

MEGABYTES = 64
FORKED = f"""
import os
held = b"x" * {MEGABYTES} * 1_000_000
if not os.fork():
    input()
else:
    print(flush=True)
    os.wait()
"""


def test_what_a_process_and_its_fork_share_is_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        _, found = used(process.pid)
        process.communicate(b"\n")
    assert MEGABYTES < found / 1_000_000 < 2 * MEGABYTES
