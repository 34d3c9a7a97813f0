"""Files in a landing folder and the truth beside it.

A file appears whole or not at all, is numbered in order of arrival, and is never overwritten.
"""

import os
import re
import time
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.connectors.simulator.arrivals import Messages
from orchestration.connectors.simulator.lines import TRUTH, lines, truth
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
        """Makes the folders; ConfError where one is a file."""
        self.folder, self.truth, self._plan = folder.resolve(), truth_folder(folder.resolve()), plan
        try:
            for made in (self.folder, self.truth):
                made.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfError(f"{error.filename} is a file, and events need a folder: give another one with --to") from error
        matches = map(NUMBERED.match, [*os.listdir(self.folder), *os.listdir(self.truth)])
        self._number = max((int(match[1]) for match in matches if match), default=0)
        self._newest_ns = 0

    def open(self) -> "OpenFile":
        """The next file; its number is ours even when another simulator writes into the same folder."""
        while True:
            self._number += 1
            name = f"events-{self._number:06d}.jsonl"
            try:
                return OpenFile(self.folder / name, self.truth / f"events-{self._number:06d}.parquet", self._plan)
            except FileExistsError:
                continue

    def publish(self, file: "OpenFile") -> None:
        """Make the file appear, later than any before it."""
        self._newest_ns = max(time.time_ns(), self._newest_ns + TICK_NS)
        file.publish(self._newest_ns)


class OpenFile:
    """A file that is being written under a hidden name; what is not published in the end is discarded."""

    def __init__(self, path: Path, truth_path: Path, plan: Plan) -> None:
        """Raises FileExistsError where the name is taken."""
        self._path, self._truth_path, self._plan = path, truth_path, plan
        self._stream: BinaryIO = _hidden(path).open("xb")
        if path.exists() or truth_path.exists():  # looked at now: while the hidden name is ours nobody else takes it
            self._stream.close()
            _hidden(path).unlink()
            raise FileExistsError(path)
        self._truth = pq.ParquetWriter(_hidden(truth_path), TRUTH)
        self.lines = 0

    def write(self, messages: Messages) -> None:
        if not len(messages):  # Arrow gives an array of nothing no bytes at all
            return
        self._stream.write(_bytes_of(lines(messages, self._plan)))
        self._truth.write_table(truth(messages, self._plan, self._path.name, self.lines + 1))
        self.lines += len(messages)

    def publish(self, modified_ns: int) -> None:
        """The truth first: whoever sees the events finds it."""
        self._stream.close()
        self._truth.close()
        _hidden(self._truth_path).rename(self._truth_path)
        os.utime(_hidden(self._path), ns=(modified_ns, modified_ns))
        _hidden(self._path).rename(self._path)

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._truth.close()
        _hidden(self._path).unlink(missing_ok=True)
        _hidden(self._truth_path).unlink(missing_ok=True)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}")


def _bytes_of(encoded: pa.LargeBinaryArray) -> memoryview:
    """The values back to back, without a copy."""
    offsets = np.frombuffer(encoded.buffers()[1], np.int64)
    return memoryview(encoded.buffers()[2])[offsets[encoded.offset] : offsets[encoded.offset + len(encoded)]]
