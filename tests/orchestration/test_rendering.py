"""Rows on stdout: what people and programs get."""

import csv
import io
import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PythonException, StreamingQueryException

from orchestration.rendering import plain, show, show_error, visible

HOSTILE = "[bold red]x[/] :smile:\x1b[31m\r\n\x9b2J\u202e\x07"
INSTANT = datetime(2026, 1, 5, 13, 30, 0, 5000, tzinfo=timezone(timedelta(hours=1)))


def printed(capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], format: str, columns: tuple[str, ...] = ()) -> str:
    show(rows, format, columns)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (INSTANT, "2026-01-05T12:30:00.005000Z"),
        (datetime(2026, 1, 5, 12), "2026-01-05T12:00:00"),  # noqa: DTZ001 - a local time
        (date(2026, 1, 5), "2026-01-05"),
        (pd.Timestamp("2026-01-05T12:00:00.000001Z"), "2026-01-05T12:00:00.000001Z"),
        (pd.NaT, None),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (b"caf\xc3\xa9\xff\x00", "café\\xff\x00"),
        (bytearray(b"a"), "a"),
        (Decimal("0.10"), Decimal("0.10")),
        (Decimal(170141183460469231731687303715884105727), 170141183460469231731687303715884105727),
        ({"a": (1, {INSTANT})}, {"a": [1, ["2026-01-05T12:30:00.005000Z"]]}),
        (True, True),
        (2**70, 2**70),
    ],
    ids=repr,
)
def test_every_value_becomes_what_json_holds(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_json_is_one_array_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, [{"a": 1, "b": [1.5, None, float("nan")]}, {"b": HOSTILE}], "json")
    assert json.loads(out) == [{"a": 1, "b": [1.5, None, "NaN"]}, {"a": None, "b": HOSTILE}]
    assert visible(out.replace("\n", "")) == out.replace("\n", "")
    assert json.loads(printed(capsys, [], "json")) == []


def test_csv_keeps_every_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, [{"a": HOSTILE, "b": [1, None]}, {"a": 'x,"y"', "b": None}], "csv")
    assert list(csv.reader(io.StringIO(out, newline=""))) == [["a", "b"], [HOSTILE, "[1, null]"], ['x,"y"', ""]]


def test_no_rows_still_have_columns_where_they_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, [], "csv", ("a", "b")) == "a,b\n"
    assert "a" in printed(capsys, [], "table", ("a", "b"))
    assert printed(capsys, [], "table") == "no rows\n"


def test_a_hostile_cell_or_column_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, [{HOSTILE: HOSTILE}], "table")
    assert out.count("[bold red]x[/] :smile:\\x1b[31m\\r\\n\\x9b2J\\u202e\\x07") == 2
    assert not any(sign in out for sign in "\x1b\x9b\u202e\x07\r")


def test_a_table_into_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert "x" * 500 in printed(capsys, [{"a": "x" * 500}], "table")


def test_a_terminal_gets_csv_escaped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b" not in printed(capsys, [{"a": HOSTILE}], "csv")


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_from_json_and_can_be_encoded(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        patch.setattr("sys.stdout", out)
        show([{"a": text}], "json")
        show([{"a": text}], "csv")
        show([{"a": text}], "table")
        out.flush()
        lines = out.buffer.getvalue().decode()
    assert json.JSONDecoder().raw_decode(lines)[0] == [{"a": text}]


def test_what_ended_a_worker_of_spark_is_told_and_not_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """As PySpark 4.2 says it of a batch, and as a stream hands it on."""
    trace = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "silver/instants.py", line 24, in bad
    raise ValueError(sentence)
ValueError: time format 'yyyyDDDHH': DDD is not understood; use y M d

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
"""
    for error in (PythonException(trace), StreamingQueryException(f"[STREAM_FAILED] Query terminated with exception: {trace}")):
        assert show_error(error) == 4
        told = "tidemark: it broke: ValueError: time format 'yyyyDDDHH': DDD is not understood; use y M d (--debug shows the trace)\n"
        assert capsys.readouterr().err == told


def test_a_decimal_is_a_number_with_all_its_digits(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": Decimal("12345678901234567890.10"), "b": {"c": [Decimal("1E-9"), "ü"]}}]
    assert printed(capsys, rows, "json") == '[{"a": 12345678901234567890.10, "b": {"c": [0.000000001, "ü"]}}]\n'
    assert printed(capsys, rows, "csv").splitlines()[1].startswith("12345678901234567890.10,")
