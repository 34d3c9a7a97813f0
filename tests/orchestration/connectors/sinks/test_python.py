"""A function gets one Arrow table a batch, again under the same number where it failed."""

import sys
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, SmallLake, window, windows

MODULE = """
calls, is_broken = [], []
def receive(rows, batch):
    calls.append((batch.number, batch.is_complete, sorted(rows["value"].to_pylist())))
    if is_broken:
        raise ValueError("a secret of mine")
"""


def lake_for(folder: Path, function: str) -> SmallLake:
    return SmallLake(folder, {"mine": {"table": AGGREGATES, "python": function}})


def test_a_function_beside_the_conf_gets_each_batch_and_again_if_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "receiver_of_a_test.py").write_text(MODULE)
    lake = lake_for(tmp_path, "receiver_of_a_test:receive")
    lake.write(AGGREGATES, [*windows(0, range(2))]).pin(0)
    assert lake.step()
    import receiver_of_a_test  # type: ignore[import-not-found]

    lake.write(AGGREGATES, [window(0, 1, 5.0, revision=1)]).pin(1)
    receiver_of_a_test.is_broken.append(True)
    with pytest.raises(TidemarkError, match=r"^receiver_of_a_test:receive raised ValueError\.$"):
        lake.step()
    receiver_of_a_test.is_broken.clear()
    lake.pin(2)
    lake.send_all()
    first, failed, again = receiver_of_a_test.calls
    assert first[1:] == (True, [1.0, 1.0])
    assert failed == again
    assert again[1:] == (False, [5.0])


@pytest.mark.parametrize("function", ["no_module_of_this_name:receive", "json:receive"])
def test_a_function_that_is_not_there_is_named(tmp_path: Path, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    lake = lake_for(tmp_path, function)
    lake.pin(0)
    with pytest.raises(TidemarkError, match=f"there is no function {function}; write it in {tmp_path}"):
        lake.step()
