"""The lease of a lake in an object store: one holder, a renewal whose answer is lost, a holder that stopped, one that is gone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.errors import HeldError
from orchestration.location import Location, lake_at
from orchestration.storage import store_lease
from orchestration.storage.commit import append_rows, create
from orchestration.storage.delta import added, open_table, rows_of
from orchestration.storage.lease import holder_of, is_held, sole_writer
from orchestration.storage.state_file import StateFile
from orchestration.stores.object_store import ObjectStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

STILL = 1.5


@pytest.fixture
def lake(store: Store, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Leases are renewed ten times as often as in a plant."""
    for name, value in {"KEY": ACCESS_KEY, "SECRET": SECRET_KEY, "XDG_STATE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    for name, seconds in {"RENEW_SECONDS": 0.3, "STILL_SECONDS": STILL, "LOOK_SECONDS": 0.1, "SAFE_SECONDS": 0.9}.items():
        monkeypatch.setattr(store_lease, name, seconds)
    return lake_at(f"s3://{store.bucket()}/lake", ObjectStore(proxy.endpoint, None, "${env:KEY}", "${env:SECRET}"))


def test_a_second_one_is_refused_while_the_first_lives_and_not_when_it_let_go(lake: Location) -> None:
    with sole_writer(lake) as first:
        assert is_held(lake)
        with pytest.raises(HeldError, match=r"^process \d+ on .* writes the lake at s3://"), sole_writer(lake, lambda _: None):
            pass
    assert not is_held(lake) and holder_of(lake) is None
    with sole_writer(lake) as second:
        assert second.token > first.token and not second.is_taken_over


def test_a_holder_that_was_killed_is_succeeded_when_its_lease_stood_still(lake: Location) -> None:
    notified: list[str] = []
    with pytest.raises(KeyboardInterrupt), sole_writer(lake):
        raise KeyboardInterrupt  # it lets nothing go, as one that is killed
    began = time.monotonic()
    with sole_writer(lake, notified.append) as second:
        assert second.is_taken_over and STILL <= time.monotonic() - began < 3 * STILL
    assert "has not released its lease" in notified[0]


def test_no_lease_is_lost_by_answers_that_are_lost(lake: Location, proxy: Proxy) -> None:
    proxy.set_faults(Fault("lose", ("PUT", "GET"), store_lease.FILE, every=3), Fault("refuse", ("PUT",), store_lease.FILE, every=7))
    with sole_writer(lake) as lease:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            lease.confirm()
            time.sleep(0.05)
        assert not lease.is_lost
        proxy.set_faults()


def test_a_holder_that_slept_too_long_writes_nothing_and_says_so(lake: Location) -> None:
    table, state = lake / "ops/x", StateFile(lake / "state.json", dict, "")
    with pytest.raises(HeldError, match="another process took over the lease"), sole_writer(lake) as first:
        create(table, pa.schema([("n", pa.int64())]))
        state.write({"by": "1"})
        first._ended.set()  # type: ignore[attr-defined]  # stands for SIGSTOP, which would stop this process
        _hold_in_a_thread(lake)
        with pytest.raises(HeldError):
            state.write({"by": "the first again"})
        append_rows(table, pa.table({"n": [1]}), "app", 0)
    assert (rows_of(table), state.read(), open_table(table).version()) == ([], {"by": "1"}, 0)
    assert not [*table.glob("*.parquet")]


def test_a_state_file_that_is_on_its_way_when_the_lease_is_taken_over_arrives_in_vain(lake: Location, proxy: Proxy) -> None:
    state = StateFile(lake / "state.json", dict, "")
    with pytest.raises(HeldError, match="another process took over the lease"), sole_writer(lake) as first:
        state.write({"by": "the first"})
        proxy.set_faults(Fault("wait", ["PUT"], "state.json", most=1))
        with ThreadPoolExecutor(1) as threads:
            on_its_way = threads.submit(state.write, {"by": "the first again"})
            until(lambda: proxy.met() == 1)
            first._ended.set()  # type: ignore[attr-defined]  # stands for SIGSTOP, which would stop this process
            _hold_in_a_thread(lake)
            state.location.write(b"by the second")
            proxy.set_faults()
            on_its_way.result()
    assert state.location.read() == b"by the second"


def test_a_state_file_that_a_command_without_the_lease_has_written_is_written_anew(lake: Location) -> None:
    state = StateFile(lake / "state.json", dict, "")
    with sole_writer(lake):
        for by in ("the holder", "the holder again"):
            state.write({"by": by})
            assert state.read() == {"by": by}
            state.location.write(b"by a command")
        state.write({"by": "the holder at last"})
        state.location.delete()
        state.write({"by": "the holder for ever"})
    assert state.read() == {"by": "the holder for ever"}


def _hold_in_a_thread(lake: Location) -> None:
    """Let another holder take the lease over; it has ended when this returns."""

    def take() -> None:
        with store_lease.held_in_store(lake, lambda _: None, "writes"):
            pass

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_a_commit_whose_answer_is_lost_is_made_once_and_is_no_takeover(lake: Location, proxy: Proxy) -> None:
    table = lake / "ops/x"
    with sole_writer(lake):
        proxy.set_faults(Fault("lose", ("PUT",), f"{0:020d}.json", most=1))
        create(table, pa.schema([("n", pa.int64())]))
        for version, app in ((1, "app"), (2, None)):
            proxy.set_faults(Fault("lose", ("PUT",), f"{version:020d}.json", most=1))
            append_rows(table, pa.table({"n": [version]}), app, version)
    assert sorted(row["n"] for row in rows_of(table)) == [1, 2]
    newest = open_table(table).version()
    assert len([add for version in range(newest + 1) for add in added(table, version)]) == 2


def test_a_store_that_is_down_for_a_moment_costs_no_lease(lake: Location, proxy: Proxy) -> None:
    with sole_writer(lake) as lease:
        proxy.set_faults(Fault("refuse", ("PUT", "GET", "HEAD"), store_lease.FILE))
        time.sleep(1)
        proxy.set_faults()
        until(lambda: not _raises(lease.confirm))
        assert not lease.is_lost


def _raises(action: object) -> bool:
    try:
        action()  # type: ignore[operator]
    except OSError:
        return True
    return False
