"""How large the heap is; and that a full one is named as such: a real one takes minutes to fill, so here its log is written by hand."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from orchestration.engine import java
from orchestration.engine.lake import Lake, heap_is_named
from orchestration.errors import TidemarkError
from tests.lakes import conf


class Memory(NamedTuple):
    total: int


def ended(lake: Lake, said: str, error: Exception) -> None:
    with heap_is_named(lake):
        lake.log.parent.mkdir(parents=True, exist_ok=True)
        with lake.log.open("a", encoding="utf-8") as log:
            log.write(said)
        raise error


def test_a_session_that_ran_out_of_memory_says_so_by_its_log_written_by_hand(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = Lake(replace(made, engine=replace(made.engine, driver_memory="2g")))
    with pytest.raises(TidemarkError, match=r"Spark ran out of memory: it has 2g; see .*spark\.log\.\n.*Raise driver_memory"):
        ended(lake, "java.lang.OutOfMemoryError: GC overhead limit exceeded\n", ConnectionRefusedError("[Errno 111]"))


def test_errors_that_have_nothing_to_do_with_memory_stay_as_they_are(tmp_path: Path) -> None:
    lake = Lake(conf(tmp_path))
    with pytest.raises(ConnectionRefusedError):
        ended(lake, "WARN nothing\n", ConnectionRefusedError())
    with pytest.raises(TidemarkError, match="of ours"):
        ended(lake, "java.lang.OutOfMemoryError: in a run before\n", TidemarkError("of ours"))
    with pytest.raises(ConnectionRefusedError):
        ended(lake, "", ConnectionRefusedError())


@pytest.mark.parametrize(
    ("gigabytes", "limit", "heap"), [(4, "max", "2048m"), (16, "max", "4096m"), (64, "max", "6144m"), (64, str(12 << 30), "3072m")]
)
def test_without_a_setting_the_heap_is_a_quarter_of_the_memory_of_the_machine_or_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gigabytes: int, limit: str, heap: str
) -> None:
    (tmp_path / "memory.max").write_text(limit + "\n")
    monkeypatch.setattr(java, "MEMORY_LIMIT", tmp_path / "memory.max")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(gigabytes << 30))
    assert java.heap_of(None) == heap
    assert java.heap_of("1500m") == "1500m"
