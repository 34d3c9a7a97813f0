"""A retry of the quarantine beside a pipeline: it is asked, does it between two cycles, and gives the answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestration.errors import HeldError, TidemarkError
from orchestration.jobs.account.retry import Chosen
from orchestration.location import Location
from orchestration.storage.lease import sole_writer
from orchestration.supervisor import retry_requests
from orchestration.supervisor.retry_requests import answer, ask, requested, takes_requests
from orchestration.supervisor.service_state import beat
from tests.waiting import until

ROWS = [{"source": "plant", "events": 1, "readmitted": 1, "duplicates": 0, "quarantined": 0, "moved": 0}]


@contextmanager
def pipeline(lake: Location, error: str | None = None) -> Iterator[list[Chosen]]:
    """A process that writes the lake and answers one request; yields what it was asked."""
    asked, ended = list[Chosen](), threading.Event()

    def answer_one() -> None:
        while not ended.wait(0.05):
            beat(lake)
            if request := requested(lake):
                asked.append(request.chosen)
                answer(lake, request, None if error else ROWS, error)

    with sole_writer(lake):
        beat(lake)
        thread = threading.Thread(target=answer_one)
        thread.start()
        try:
            yield asked
        finally:
            ended.set()
            thread.join()


def test_the_pipeline_is_asked_once_and_its_summary_is_the_answer(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    with pipeline(lake) as asked:
        assert ask(lake, Chosen("device_is_known", "plant")) == ROWS
        assert ask(lake, Chosen()) == ROWS
        assert requested(lake) is None
    assert asked == [Chosen("device_is_known", "plant"), Chosen()]


def test_a_retry_that_cannot_be_done_is_its_sentence(tmp_path: Path) -> None:
    with pipeline(Location(tmp_path), "no schema"), pytest.raises(TidemarkError, match="no schema"):
        ask(Location(tmp_path), Chosen())


def test_where_no_pipeline_runs_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Location(tmp_path)
    beat(lake)
    assert not takes_requests(lake), "nobody holds the lake"
    with sole_writer(lake):
        assert takes_requests(lake)
        monkeypatch.setattr(retry_requests, "ALIVE_SECONDS", 0.0)
        assert not takes_requests(lake), "it holds the lake, and is no pipeline"
        assert ask(lake, Chosen()) is None
    assert requested(lake) is None


def test_two_do_not_ask_at_once(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    with sole_writer(lake):
        beat(lake)
        first = threading.Thread(target=lambda: ask(lake, Chosen()))
        first.start()
        until(lambda: requested(lake) is not None)
        with pytest.raises(HeldError, match="waits for a retry of the quarantine already"):
            ask(lake, Chosen())
        request = requested(lake)
        assert request is not None
        answer(lake, request, ROWS)
        first.join()
