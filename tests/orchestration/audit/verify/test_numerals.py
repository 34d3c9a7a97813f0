"""Numbers: what is one, whatever the text; never an error."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify.numerals import as_java_writes, number, number_or_switch, rounded


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1", 1.0), ("+1.50", 1.5), ("-.5", -0.5), ("5.", 5.0), ("1e5", 1e5), ("1E-3", 1e-3), (" 7 ", 7.0), ("\t7\n", 7.0), ("007", 7.0)),
        *(("1e400", math.inf), ("-1e400", -math.inf), ("1e-400", 0.0), ("INF", math.inf), (" -Infinity ", -math.inf)),
        *(
            (text, None)
            for text in ("", " ", "-", "1d", "1f", "0x10", "0x1p3", "1_0", "1,5", "\uff11", "\u0661", "\u00a07", "1 2", "e1", "1e")
        ),
    ],
)
def test_decimal_digits_are_a_number_and_nothing_else_is(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(("text", "value"), [("true", 1.0), ("FALSE", 0.0), (" true", None), ("yes", None), ("1", 1.0)])
def test_true_and_false_are_switches(text: str, value: float | None) -> None:
    assert number_or_switch(text) == value


@given(st.floats(allow_nan=False))
def test_what_python_writes_is_read_back(value: float) -> None:
    assert number(repr(value)) == value


@given(st.text())
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = number(text)
    assert found is None or isinstance(found, float)


def test_a_long_text_takes_no_longer_for_being_wrong_at_its_end() -> None:
    assert number("1" * 1_000_000 + "x") is None


@pytest.mark.parametrize(
    ("amount", "whole"), [(0.5, 1), (-0.5, -1), (2.5, 3), (0.49999999999999994, 0), (4503599627370497.5, 4503599627370498)]
)
def test_a_half_is_rounded_away_from_zero(amount: float, whole: int) -> None:
    assert rounded(amount) == whole


def test_what_is_not_finite_is_not_rounded() -> None:
    assert rounded(math.inf) is None
    assert rounded(math.nan) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5"), (1e3, "1000.0"), (1e7, "1.0E7"), (1e-5, "1.0E-5"), (12345678.5, "1.23456785E7"), (0.001, "0.001"), (-0.0, "-0.0")],
)
def test_a_number_for_a_name_is_written_as_java_does(value: float, text: str) -> None:
    assert as_java_writes(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_written_for_a_name_is_the_same_number(value: float) -> None:
    assert float(as_java_writes(value)) == value
