"""A process that sends to one sink until nothing is left, to be killed."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

from orchestration.conf.model import Conf

ROOT = Path(__file__).parents[4]
SENDER = """
import pickle, sys
from datetime import UTC, datetime
from orchestration.connectors.sinks.all import sinks
from orchestration.jobs.sinks import send
conf = pickle.loads(open(sys.argv[1], "rb").read())
print("ready", flush=True)
while sent := send(conf, sys.argv[2], sinks(conf)[sys.argv[2]], datetime.now(UTC)):
    print(sent.rows, flush=True)
"""


def sender(conf: Conf, name: str, **environment: str) -> subprocess.Popen[bytes]:
    """In a group of its own, which a crash point ends."""
    file = conf.folder / "conf.pickle"
    file.write_bytes(pickle.dumps(conf))
    command = [sys.executable, "-c", SENDER, str(file), name]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process
