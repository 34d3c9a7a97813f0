"""Files in a landing folder and the truth beside it.

A file appears whole or not at all, is numbered in order of arrival, and is never overwritten.
"""

import os
import re
import time
from pathlib import Path

import pyarrow.parquet as pq

from orchestration.connectors.simulator.lines import TRUTH, Lines, truth
from orchestration.connectors.simulator.messages import Messages
from orchestration.connectors.simulator.plan import Plan
from orchestration.errors import ConfError

NUMBERED = re.compile(r"\.?events-(\d+)\.")
TICK_NS = 1_000_000
"""A millisecond: streams order files by modification time, and Spark reads no more of it than that."""


def truth_folder(landing: Path) -> Path:
    """Beside the landing folder, never inside: a stream would read it."""
    return landing.with_name(f"{landing.name}.truth")


class Landing:
    """A landing folder to which files are added."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Make the folders; ConfError where one is a file."""
        self.folder, self.truth = folder.resolve(), truth_folder(folder.resolve())
        self._plan, self._lines = plan, Lines(plan)
        try:
            for path in (self.folder, self.truth):
                path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfError(f"{error.filename} is a file, and events need a folder: give another one with --to") from error
        matches = map(NUMBERED.match, [*os.listdir(self.folder), *os.listdir(self.truth)])
        self._number = max((int(match[1]) for match in matches if match), default=0)
        self._newest_ns = 0

    def open(self) -> "OpenFile":
        """The next file; its number is ours even when another simulator writes into the same folder."""
        while True:
            self._number += 1
            name = f"events-{self._number:06d}"
            try:
                return OpenFile(self.folder / f"{name}.jsonl", self.truth / f"{name}.parquet", self._plan, self._lines)
            except FileExistsError:
                continue

    def publish(self, file: "OpenFile") -> None:
        """Make the file appear, later than any before it."""
        self._newest_ns = max(time.time_ns(), self._newest_ns + TICK_NS)
        file.publish(self._newest_ns)


class OpenFile:
    """A file that is being written under a hidden name; it is discarded unless it is published."""

    def __init__(self, path: Path, truth_path: Path, plan: Plan, lines: Lines) -> None:
        """Raises FileExistsError where the name is taken."""
        self._paths, self._plan, self._lines = (path, truth_path), plan, lines
        self._hidden, self._hidden_truth = (target.with_name(f".{target.name}") for target in self._paths)
        self._stream = self._hidden.open("xb")
        if path.exists() or truth_path.exists():  # looked at now: while the hidden name is ours nobody else takes it
            self._stream.close()
            self._hidden.unlink()
            raise FileExistsError(path)
        self._truth = pq.ParquetWriter(self._hidden_truth, TRUTH)
        self._written = 0

    def write(self, messages: Messages) -> None:
        if len(messages):  # Arrow gives an array of nothing no bytes at all
            self._stream.write(self._lines.bytes_of(messages))
            self._truth.write_table(truth(messages, self._plan, self._paths[0].name, self._written + 1))
            self._written += len(messages)

    def publish(self, modified_ns: int) -> None:
        """Publish the truth first: whoever sees the events has it."""
        self._stream.close()
        self._truth.close()
        os.utime(self._hidden, ns=(modified_ns, modified_ns))
        self._hidden_truth.rename(self._paths[1])
        self._hidden.rename(self._paths[0])

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._truth.close()
        self._hidden.unlink(missing_ok=True)
        self._hidden_truth.unlink(missing_ok=True)
