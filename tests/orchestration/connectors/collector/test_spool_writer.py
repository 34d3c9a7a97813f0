"""Writing a spool: what is acknowledged is there, one sync for all that wait, and nothing is appended to what another process began."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.connectors.collector import spool as writing
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.connectors.sources.spool import Spool
from orchestration.connectors.sources.spool_records import segments
from orchestration.errors import TidemarkError

MEGABYTE = 1 << 20


def stored(folder: Path) -> list[bytes]:
    source = Spool("plant", folder, 1 << 40)
    parts = source.partitions({}, source.latest_offset({})) if list(segments(folder)) else []
    return [payload for part in parts for table in source.read(part) for payload in table["payload"].to_pylist()]


async def store(writer: SpoolWriter, *payloads: bytes) -> BaseException | None:
    return await writer.store("request/a-1", 1, payloads)


def test_what_comes_together_is_written_by_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, sync = [], os.fdatasync

    def counted(file: int) -> None:
        synced.append(file)
        sync(file)

    monkeypatch.setattr(os, "fdatasync", counted)

    async def work() -> None:
        writer = SpoolWriter(tmp_path, MEGABYTE)
        assert set(await asyncio.gather(*(store(writer, b"%d" % n) for n in range(100)))) == {None}
        writer.close()

    asyncio.run(work())
    assert len(synced) == 1
    assert stored(tmp_path) == [b"%d" % n for n in range(100)]


def test_each_writer_begins_a_segment_of_its_own_behind_what_bronze_has_read(tmp_path: Path) -> None:
    for first, payload in ((0, b"1"), (0, b"2"), (9, b"3")):
        writer = SpoolWriter(tmp_path, MEGABYTE, first)
        asyncio.run(store(writer, payload))
        writer.close()
    assert list(segments(tmp_path)) == [0, 1, 9]
    assert stored(tmp_path) == [b"1", b"2", b"3"]


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from tests.orchestration.connectors.collector.test_spool_writer import on_a_full_disk
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
asyncio.run(on_a_full_disk(Path(sys.argv[1]), resource))
"""
"""RLIMIT_FSIZE stands for a full disk: a write fails in the middle, as it does with ENOSPC."""


async def on_a_full_disk(folder: Path, limits: object = resource) -> None:
    writing.PAUSE_SECONDS = 0.0
    writer = SpoolWriter(folder, MEGABYTE)
    for n in range(3):
        assert await store(writer, b"%d" % n * 2000) is None
    assert isinstance(await store(writer, b"lost" * 2000), OSError)
    assert isinstance(await store(writer, b"too large for any segment" * 1000), OSError)
    assert await store(writer, b"after") is None
    writer.close()


def test_a_write_that_fails_in_the_middle_spoils_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], check=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    assert stored(tmp_path) == [b"0" * 2000, b"1" * 2000, b"2" * 2000, b"after"]


def test_a_spool_that_could_not_be_opened_can_be_opened_by_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch, pytest.raises(TidemarkError, match="cannot be written: Input/output error") as kept:
        patch.setattr(writing, "sync", broken)
        SpoolWriter(tmp_path, MEGABYTE)
    SpoolWriter(tmp_path, MEGABYTE).close()
    assert kept.value.exit_code == TidemarkError.exit_code  # the error is still there, as the collector keeps it
