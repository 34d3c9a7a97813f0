"""How alarms are counted against labelled faults, and the volume under precision and recall, by hand."""

import numpy as np
import pytest

from gold.anomalies.model import WEEK
from gold.anomalies.recall import Fault, Found, Raised, Tally, rows_of, tally, volume

ENDS = np.arange(1, 101) * (WEEK // 100)
MINUTE = 60_000_000


def fault(first: int, last: int, kind: str, metric: str = "") -> Fault:
    """In these rows; it begins five minutes before the end of the first one's window."""
    return Fault("oven", int(ENDS[first]) - 5 * MINUTE, int(ENDS[last]), kind, metric)


def counted(alarms: list[int], *faults: Fault, begin: int = 0) -> Tally:
    scores = np.zeros(100)
    scores[alarms] = 1.0
    return tally(ENDS, begin, faults, Raised(alarms, scores))


def test_a_fault_is_found_by_its_first_alarm_and_one_outside_is_false() -> None:
    result = counted([5, 12, 15, 20, 21], fault(10, 20, "drift"))
    assert result.faults == (Found("drift", 2 * (WEEK // 100) + 5 * MINUTE),)
    assert (result.alarms, result.false) == (5, 2)
    assert result.weeks == pytest.approx(1.0)


def test_a_fault_without_an_alarm_is_not_found_and_one_that_began_while_learning_does_not_count() -> None:
    early, missed = fault(5, 14, "early"), fault(50, 60, "missed")
    result = counted([7, 12], early, missed, begin=10)
    assert result.faults == (Found("missed", None),)
    assert (result.alarms, result.false) == (1, 0)


@pytest.mark.parametrize(("first", "is_named"), [("heat", True), ("oven-01.heat", True), ("power", False)])
def test_an_alarm_names_the_metric_of_a_fault_or_another_one(first: str, is_named: bool) -> None:
    raised = Raised([12], np.zeros(100), [first] * 100)
    (found,) = tally(ENDS, 0, [fault(10, 20, "spike", "heat")], raised).faults
    assert found.is_named is is_named


@pytest.mark.parametrize(
    ("begins", "ends", "rows"),
    [(0, 10, (0, 0)), (10, 20, (1, 1)), (5, 25, (0, 2)), (10, 10, (1, 1)), (15, 15, (1, 1)), (25, 99, (2, 2)), (30, 99, (3, 3))],
)
def test_a_time_has_the_rows_whose_windows_have_a_part_of_it(begins: int, ends: int, rows: tuple[int, int]) -> None:
    assert rows_of(np.array([10, 20, 30]), begins, ends) == rows  # row 3 is not there: the fault is behind the history


def test_the_volume_of_a_small_case_is_what_one_gets_by_hand() -> None:
    scores, is_fault = np.array([0.0, 2.0, 3.0, 1.0]), np.array([False, True, False, False])
    half = np.sqrt(1 / 2)  # what a row beside the fault counts in the buffer of two
    without = 1 / 2  # row 2 is above the threshold first and counts nothing, then row 1: recall 1 at precision 1/2
    recall = half / (1 + half / 2)
    within = recall * half + (1 - recall) * (1 + half) / 2
    assert volume(scores, is_fault, 2) == pytest.approx((without + without + within) / 3)


def test_a_perfect_score_has_volume_one_without_a_buffer_and_a_constant_one_the_share_of_faults() -> None:
    is_fault = np.arange(100) // 10 == 3
    assert volume(is_fault.astype(float), is_fault, 0) == 1.0
    assert volume(np.zeros(100), is_fault, 0) == pytest.approx(0.1)


def test_recall_is_less_where_one_of_two_faults_has_no_high_score() -> None:
    is_fault = np.zeros(100, bool)
    is_fault[[10, 11, 60, 61]] = True
    both, one = np.zeros(100), np.zeros(100)
    both[[10, 60]] = one[[10, 11]] = 1.0
    assert volume(both, is_fault, 0) > volume(one, is_fault, 0)
