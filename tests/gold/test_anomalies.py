"""Detectors and the alarm rule: what is planted is found and named, the same to the last bit however vectors are cut."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gold.anomalies.alarms import Alarmed, Rule, alarms
from gold.anomalies.alone import z_scores
from gold.anomalies.judging import PAST, Judged, judge
from gold.anomalies.model import Model, Series, from_table, to_table, train
from gold.anomalies.nab import counted
from gold.anomalies.novelty import Memory
from gold.anomalies.rows import explained
from gold.anomalies.tail import Floats, tail_of

STEP = 600_000_000
FEATURES = ("temperature", "power", "vibration")


def plant(count: int, seed: int, start: int = 0) -> Series:
    """An oven by the day: power follows its temperature, vibration its power, and some values are missing."""
    noise = np.random.default_rng(seed)
    ends = (np.arange(start, start + count) + 1) * STEP
    heat = np.sin(2 * np.pi * np.arange(start, start + count) / 144) + noise.normal(size=count) * 0.1
    values = np.stack([200 + 20 * heat, 5 + heat + noise.normal(size=count) * 0.05, heat**2 + noise.normal(size=count) * 0.1], axis=1)
    values[noise.random(values.shape) < 0.02] = np.nan
    return Series(ends, values)


@pytest.fixture(scope="module")
def model() -> Model:
    return train(FEATURES, STEP, [("oven-1", plant(1500, 1)), ("oven-2", plant(1500, 2))])


def judged_in_pieces(model: Model, series: Series, cuts: Sequence[int]) -> list[Judged]:
    pieces, carry = [], None
    for first, last in zip([0, *cuts], [*cuts, len(series.ends)], strict=True):
        piece = Series(series.ends[first:last], series.values[first:last])
        if len(piece.ends):
            pieces.append(judge(model, "oven-1", piece, series.values[max(0, first - PAST) : first], carry))
            carry = pieces[-1].carry[-1]
    return pieces


@example(cuts=[201, 394])  # right behind an alarm
@given(cuts=st.lists(st.integers(0, 400), max_size=7).map(sorted))
def test_rows_are_the_same_to_the_last_bit_however_vectors_are_cut(model: Model, cuts: list[int]) -> None:
    series = plant(400, 7, 1500)
    series.values[100:140] = np.nan
    series.values[200:260, 0] = 777.0
    whole, pieces = judge(model, "oven-1", series, series.values[:0], None), judged_in_pieces(model, series, cuts)
    for name in ("scores", "thresholds", "is_alarm", "expected", "bands", "shares", "carry"):
        assert np.concatenate([getattr(piece, name) for piece in pieces]).tobytes() == getattr(whole, name).tobytes(), name


def test_a_model_that_is_written_down_and_read_judges_alike(model: Model) -> None:
    series = plant(300, 7, 1500)
    first, second = (judge(one, "oven-1", series, series.values[:0], None) for one in (model, from_table(to_table(model))))
    assert first.carry.tobytes() == second.carry.tobytes()
    assert first.scores.tobytes() == second.scores.tobytes()


@pytest.mark.parametrize(
    ("begins", "ends", "feature", "change"),
    [
        (120, 121, 0, lambda v: v + 100),
        (200, 240, 1, lambda v: v + 2),
        (150, 190, 0, lambda v: v * 0 + v[0]),
        (90, 110, 2, lambda v: v * 0),
    ],
    ids=["spike", "step", "stuck", "dropout"],
)
def test_a_fault_is_an_alarm_that_names_its_feature(model: Model, begins: int, ends: int, feature: int, change) -> None:  # type: ignore[no-untyped-def]
    series = plant(300, 7, 1500)
    assert not judge(model, "oven-1", series, series.values[:0], None).is_alarm.any()
    series.values[begins:ends, feature] = change(np.nan_to_num(series.values[begins:ends, feature], nan=200.0))
    judged = judge(model, "oven-1", series, series.values[:0], None)
    first = int(np.flatnonzero(judged.is_alarm)[0])
    assert begins <= first < ends
    assert judged.shares[first].argmax() == feature


def test_a_vector_with_less_than_half_of_its_features_has_no_score_and_holes_have_no_share(model: Model) -> None:
    series = plant(60, 7, 1500)
    series.values[:] = np.nan_to_num(series.values, nan=1.0)
    series.values[20, :2] = np.nan
    series.values[30, 0] = np.nan
    judged = judge(model, "oven-1", series, series.values[:0], None)
    assert np.flatnonzero(np.isnan(judged.scores)).tolist() == [20]
    assert np.isnan(judged.shares[30]).tolist() == [True, False, False]
    assert judged.shares[30, 1:].sum() == pytest.approx(1)


def by_definition(rule: Rule, scores: Floats) -> list[bool]:
    """The rule as its page says it, a vector after another."""
    raised, last, rise, level = [], -(10**9), 0.0, 0.0
    for number, score in enumerate(scores):
        threshold = rule.threshold + rise * np.exp(-(number - last) / rule.decay)
        is_alarm = score >= threshold and (number - last > rule.pause or score > 1.5 * level)
        if is_alarm:
            last, rise, level = number, min(threshold - rule.threshold + 0.2, 3.0), score
        raised.append(bool(is_alarm))
    return raised


@given(scores=st.lists(st.floats(0, 9) | st.just(np.nan), min_size=1, max_size=80), cut=st.integers(0, 80))
def test_alarms_are_those_of_the_rule_wherever_the_scores_are_cut(scores: list[float], cut: int) -> None:
    rule, whole = Rule(2.5, 7, 20), np.array(scores)
    first = alarms(rule, whole[:cut])
    second = alarms(rule, whole[cut:], Alarmed(*first.after[-1]) if len(first.after) else Alarmed())
    assert [*first.is_alarm, *second.is_alarm] == by_definition(rule, whole)


def test_a_planned_number_of_alarms_is_kept_in_the_training() -> None:
    history = [("oven-1", plant(1500, 1)), ("oven-2", plant(1500, 2))]
    few, many = (train(FEATURES, STEP, history, per_week=per_week).rule.threshold for per_week in (0.2, 5.0))
    assert few > many


@given(scores=st.lists(st.floats(0.1, 100), min_size=1, max_size=300))
def test_a_higher_score_is_no_less_surprising(scores: list[float]) -> None:
    surprises = tail_of(np.array(scores)).surprise(np.linspace(0, 200, 500))
    assert (np.diff(surprises) >= -1e-9).all()
    assert surprises.max() <= 8


@pytest.mark.parametrize("cut", [0, 100, 150, 301, 420])
def test_a_new_value_and_a_new_step_are_novel_once_the_values_are_learned(cut: int) -> None:
    series = plant(500, 3)
    values, memory = np.nan_to_num(series.values[:, 0], nan=200.0), Memory(150)
    values[400] = 300.0
    surprises = np.vstack([memory.judge(values[:cut], series.ends[:cut]), memory.judge(values[cut:], series.ends[cut:])])
    assert np.isnan(surprises[:150]).all()
    assert surprises[150:, 0].argmax() == 250
    assert surprises.tobytes() == Memory(150).judge(values, series.ends).tobytes()


@pytest.mark.parametrize(
    ("alarms_at", "score"),
    [
        ([], 0.0),  # nothing is told
        ([200], 100.0),  # at its first row
        ([299], 50 + 50 * (2 / (1 + np.exp(-0.05)) - 1) / (2 / (1 + np.exp(-5)) - 1)),  # at its last row: a hundredth of the window is left
        ([100], -50 * 0.11),  # before any window
        ([299 + 33], 50 * 0.11 * (2 / (1 + np.exp(5 * 33 / 99)) - 1)),  # a third of its length after the window
        ([299 + 298], -50 * 0.11),  # more than three lengths after it
        ([200, 250, 260], 100.0),  # the first alarm counts
        ([5], 0.0),  # while it learns
    ],
)
def test_an_early_alarm_scores_high_and_a_false_one_costs_by_its_distance_as_the_benchmark_of_numenta_says(
    alarms_at: list[int], score: float
) -> None:
    assert counted(alarms_at, [(200, 299)], 600).normalized == pytest.approx(score)


def with_column(values: Floats, column: Floats | float) -> Floats:
    changed = values.copy()
    changed[:, 1] = column
    return changed


NORMAL = np.random.default_rng(5).normal(size=(300, 2))
ODD = {
    "constant": with_column(NORMAL, 7.0),
    "all constant": np.full((300, 2), 7.0),
    "all zero": np.zeros((300, 2)),
    "never there": with_column(NORMAL, np.nan),
    "there twice": with_column(NORMAL, np.where(np.arange(300) < 2, 1.0, np.nan)),
    "away for a week": with_column(NORMAL, np.where(np.arange(300) // 144 == 1, np.nan, NORMAL[:, 1])),
    "huge": with_column(NORMAL, NORMAL[:, 1] * 1e90),
    "many features": np.random.default_rng(6).normal(size=(120, 60)),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_history_is_trained_on_and_vectors_like_it_have_a_score(name: str) -> None:
    values = ODD[name]
    ends = (np.arange(len(values)) + 1) * STEP
    model = train([f"f{number}" for number in range(values.shape[1])], STEP, [("oven-1", Series(ends, values))])
    judged = judge(model, "oven-1", Series(ends + ends[-1], values[::-1]), values[-PAST:], None)
    assert np.isfinite(judged.scores).all()
    assert judged.is_alarm.sum() <= 2  # chance alone has one of 300 vectors at the threshold


def test_a_clock_that_jumps_changes_the_season_and_ends_nothing(model: Model) -> None:
    series = plant(100, 7, 1500)
    jumped = Series(np.where(np.arange(100) < 50, series.ends, series.ends + 400 * 86_400_000_000), series.values)
    assert np.isfinite(judge(model, "oven-1", jumped, series.values[:0], None).scores).sum() > 90


def test_a_reason_has_as_many_digits_as_people_read() -> None:
    for value, text in ((1.5, "1.5"), (123_456.7, "123,457"), (1_764_422_400_123_456_789.0, "1.7644224e+18"), (-9.99e99, "-9.99e+99")):
        one = np.array([value])
        assert explained(("bytes",), one, one, one, np.ones(1)) == f"bytes {text}, expected {text} ± {text} (100 % of the score)"


def test_moving_z_of_a_long_series_is_that_of_its_parts() -> None:
    values = np.random.default_rng(1).normal(size=(25_000, 2))
    whole, end = (z_scores(Series(np.arange(len(rows)), rows), 750) for rows in (values, values[15_000:]))
    assert whole[15_075:].tolist() == end[75:].tolist()
