"""Lanes meet at each bronze batch; the last one commits what all bring, and nobody waits for one that has ended."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from orchestration.storage.meeting import Meeting, Share, StoppedError

LANES = ("silver.readings", "silver.readings@b", "silver.readings@prices")


class Commits:
    """Notes each commit as the transactions in it."""

    def __init__(self) -> None:
        self.made: list[list[tuple[str, int]]] = []

    def __call__(self, shares: Sequence[Share]) -> None:
        self.made.append([share.transaction for share in shares])


def bring(meeting: Meeting, lane: str, batches: Sequence[int], version: int = 0) -> None:
    for number, batch in enumerate(batches):
        meeting.bring(lane, batch, Share([], (lane, version + number)))


def all_bring(meeting: Meeting, batches: dict[str, Sequence[int]]) -> "list[Future[None]]":
    with ThreadPoolExecutor(len(batches)) as threads:
        return [threads.submit(bring, meeting, lane, numbers) for lane, numbers in batches.items()]


def test_each_bronze_batch_is_one_commit_of_all_lanes_the_default_one_first() -> None:
    commits = Commits()
    meeting = Meeting(lambda: dict.fromkeys(LANES, -1), commits)
    for future in all_bring(meeting, dict.fromkeys(LANES, range(20))):
        future.result()
    assert commits.made == [[(lane, batch) for lane in LANES] for batch in range(20)]


def test_a_lane_that_began_later_is_not_waited_for_before_and_its_rows_are_in_no_earlier_commit() -> None:
    commits = Commits()
    meeting = Meeting(lambda: {LANES[0]: -1, LANES[1]: 2}, commits)
    with ThreadPoolExecutor(1) as threads:
        later = threads.submit(bring, meeting, LANES[1], [3])
        assert wait([later], 0.2).not_done
        bring(meeting, LANES[0], [0, 1, 2])
        assert commits.made == [[(LANES[0], batch)] for batch in range(3)]
        bring(meeting, LANES[0], [3], version=3)
        later.result()
    assert commits.made[3:] == [[(LANES[0], 3), (LANES[1], 0)]]


@pytest.mark.parametrize("end", ["stop", "leave"])
def test_a_lane_gives_up_when_the_run_is_to_end_or_another_has_ended_before(end: str) -> None:
    commits = Commits()
    meeting = Meeting(lambda: dict.fromkeys(LANES[:2], -1), commits)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bring, meeting, LANES[0], [0])
        assert wait([waiting], 0.2).not_done
        if end == "stop":
            meeting.stop.set()
        else:
            meeting.leave(LANES[1])
        with pytest.raises(StoppedError):
            waiting.result()
    assert commits.made == []


def test_a_lane_that_ended_after_it_brought_its_rows_is_no_reason_to_give_up() -> None:
    commits = Commits()
    meeting = Meeting(lambda: dict.fromkeys(LANES, -1), commits)
    with ThreadPoolExecutor(2) as threads:
        brought = [threads.submit(bring, meeting, lane, [0]) for lane in LANES[:2]]
        assert wait(brought, 0.2).not_done
        bring(meeting, LANES[2], [0])
        wait(brought)
        for lane in LANES:
            meeting.leave(lane)
    assert [future.exception() for future in brought] == [None, None]
    assert len(commits.made) == 1


def test_what_a_commit_raises_ends_the_lane_that_made_it_and_then_the_others() -> None:
    def refused(_: Sequence[Share]) -> None:
        raise OSError("no space left")

    meeting = Meeting(lambda: dict.fromkeys(LANES[:2], -1), refused)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bring, meeting, LANES[0], [0])
        assert wait([waiting], 0.2).not_done
        with pytest.raises(OSError, match="no space left"):
            bring(meeting, LANES[1], [0])
        meeting.stop = threading.Event()
        meeting.stop.set()
        with pytest.raises(StoppedError):
            waiting.result()
