"""Answers on the screen and in files: no column hides another, no file is there by half."""

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.errors import ConfError, TidemarkError
from orchestration.serving.sql.answer import Answer
from orchestration.serving.sql.output import FORMATS, unique_names, write

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def answer(columns: list[tuple[str, pa.DataType, list[object]]], is_cut_off: bool = False) -> Answer:
    arrays = [pa.array(values, kind) for _, kind, values in columns]
    return Answer(pa.Table.from_arrays(arrays, names=[name for name, _, _ in columns]), None, is_cut_off)


READINGS = answer(
    [("at", pa.timestamp("us", "UTC"), [NOON, None]), ("value", pa.float64(), [21.5, -0.0]), ("groups", pa.list_(pa.string()), [["a"], []])]
)
TWICE = answer([("value", pa.int32(), [1]), ("value", pa.int32(), [2]), ("value_2", pa.int32(), [3])])


def test_of_columns_with_one_name_each_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert unique_names(["value", "n", "value", "value_2", "value"]) == ["value", "n", "value_3", "value_2", "value_4"]
    write(TWICE, "json")
    assert json.loads(capsys.readouterr().out) == [{"value": 1, "value_3": 2, "value_2": 3}]
    write(TWICE, "csv")
    assert capsys.readouterr().out == "value,value_3,value_2\n1,2,3\n"
    write(TWICE, "table")
    assert capsys.readouterr().out.split("\n")[3].split() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '[{"at": "2026-01-05T12:00:00Z", "value": 21.5, "groups": ["a"]},\n {"at": null, "value": -0.0, "groups": []}]\n'),
        ("csv", 'at,value,groups\n2026-01-05T12:00:00Z,21.5,"[""a""]"\n,-0.0,[]\n'),
    ],
)
def test_a_file_holds_what_the_screen_would_show(format: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(READINGS, format)
    assert capsys.readouterr().out == text
    write(READINGS, format, tmp_path / "answer")
    assert (tmp_path / "answer").read_text() == text
    assert capsys.readouterr().out == ""


def test_parquet_keeps_the_types_and_instants_in_utc(tmp_path: Path) -> None:
    write(READINGS, "parquet", tmp_path / "answer.parquet")
    assert pq.read_table(tmp_path / "answer.parquet").equals(READINGS.rows)
    write(TWICE, "parquet", tmp_path / "answer.parquet")
    assert pq.read_table(tmp_path / "answer.parquet").column_names == ["value", "value_3", "value_2"]


def test_parquet_needs_a_file() -> None:
    with pytest.raises(ConfError, match=r"--output answer.parquet"):
        write(READINGS, "parquet")


def test_an_answer_without_rows_has_its_columns_in_every_format(tmp_path: Path) -> None:
    nothing = answer([("a", pa.int32(), []), ("b", pa.string(), [])])
    for format in FORMATS:
        write(nothing, format, tmp_path / format)
    assert (tmp_path / "csv").read_text() == "a,b\n"
    assert (tmp_path / "json").read_text() == "[]\n"
    assert pq.read_table(tmp_path / "parquet").column_names == ["a", "b"]


def test_cut_off_rows_are_reported_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    write(answer([("a", pa.int32(), [1, 2])], is_cut_off=True), "csv")
    assert capsys.readouterr().err == "only the first 2 rows: the answer exceeds the limit; add a filter, or aggregate\n"


def test_what_cannot_be_written_leaves_the_file_as_it_was_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "answer.parquet"
    write(READINGS, "parquet", file)
    before = file.read_bytes()
    interval = pa.array([pa.MonthDayNano([1, 0, 0])])
    with pytest.raises(TidemarkError, match="parquet cannot hold this answer"):
        write(Answer(pa.Table.from_arrays([interval], names=["length"]), None), "parquet", file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_path_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TidemarkError, match="cannot be written: No such file or directory"):
        write(READINGS, "csv", tmp_path / "nowhere" / "answer.csv")
    with pytest.raises(TidemarkError, match="cannot be written: Is a directory"):
        write(READINGS, "csv", tmp_path)


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("before")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write(READINGS, "csv", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("at,value,groups\n")


def test_a_pipe_gets_the_answer_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write(READINGS, "csv", tmp_path / "pipe")
    reader.join()
    assert read[0].startswith("at,value,groups\n")
    assert (tmp_path / "pipe").is_fifo()


def test_an_instant_that_python_has_none_for_is_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    far = pa.array([253402300800_000000 * 2], pa.int64()).cast(pa.timestamp("us", "UTC"))
    write(Answer(pa.Table.from_arrays([far], names=["at"]), None), "csv")
    assert capsys.readouterr().out.count("\n") == 2
