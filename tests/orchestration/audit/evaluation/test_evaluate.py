"""`tidemark evaluate`: labelled files of CSV are judged, and what is no such file is told."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.commands import Tidemark

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
ROWS, FAULT = 1000, (600, 640)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of one feature and one of two, each with one labelled fault."""
    noise = np.random.default_rng(1)
    times = [f"{BEGIN + timedelta(minutes=10 * row):%Y-%m-%d %H:%M:%S}" for row in range(ROWS)]
    heat = np.sin(2 * np.pi * np.arange(ROWS) / 144) + noise.normal(size=ROWS) * 0.1
    heat[slice(*FAULT)] += 3
    power = heat * 2 + noise.normal(size=ROWS) * 0.1
    for name, columns in {"one.csv": [heat], "line/two.csv": [power, heat]}.items():
        rows = [",".join([time, *map(str, values)]) for time, values in zip(times, zip(*columns, strict=True), strict=True)]
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(["timestamp,value,other"[: 15 + 6 * (len(columns) - 1)], *rows]) + "\n")
    windows = [[times[FAULT[0] - 10], times[FAULT[1] + 10] + ".000000"]]
    (tmp_path / "labels.json").write_text(json.dumps({"one.csv": windows, "line/two.csv": windows}))
    return tmp_path


def test_labelled_faults_are_found_and_ways_that_know_nothing_stand_beside(folder: Path, tidemark: Tidemark) -> None:
    rows = {row["detector"]: row for row in json.loads(tidemark("evaluate", folder, "--by-file", "--format", "json").out)}
    assert [*rows] == ["default", "moving z", "alarm clock", "always quiet", "default: line/two.csv", "default: one.csv"]
    assert (rows["default"]["found"], rows["default"]["faults"]) == (2, 2)
    assert (rows["always quiet"]["score"], rows["always quiet"]["false_alarms"]) == (0.0, 0)
    assert rows["default"]["score"] > rows["alarm clock"]["score"]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("labels.json", "[", "labels.json cannot be read: "),
        ("labels.json", '{"none.csv": []}', "none.csv cannot be read: "),
        ("labels.json", '{"one.csv": [["soon", "later"]]}', "labels.json has a window of one.csv that is none: ['soon', 'later']."),
        ("labels.json", '{"one.csv": null}', "labels.json has a window of one.csv that is none: None."),
        ("labels.json", '{"one.csv": [["2026-01-06", "2026-01-05"]]}', "labels.json has a window of one.csv that ends before it begins"),
        ("one.csv", "timestamp,value\n,1\n", "one.csv cannot be read: a row has no time."),
        ("one.csv", "timestamp,value\n" + "2026-01-05 00:00:00,1\n" * 200, "one.csv has rows that are not in order of time"),
        ("one.csv", "timestamp,value\nsoon,1\n", "one.csv cannot be read: "),
        ("one.csv", "timestamp,value\n2026-01-05 00:00:00,1\n", "one.csv has 1 rows; at least 100 are needed"),
    ],
)
def test_what_is_no_labelled_series_is_told_by_its_file(folder: Path, tidemark: Tidemark, file: str, content: str, said: str) -> None:
    (folder / file).write_text(content)
    answer = tidemark("evaluate", folder)
    assert answer.code == 4
    assert said in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("odd", ["", "inf", "-inf", "nan", "1e308"])
def test_features_that_are_no_numbers_while_it_learns_raise_nothing(folder: Path, tidemark: Tidemark, odd: str) -> None:
    for name in ("one.csv", "line/two.csv"):
        head, *rows = (folder / name).read_text().splitlines()
        first = [f"{row.partition(',')[0]}{f',{odd}' * row.count(',')}" for row in rows[:200]]
        (folder / name).write_text("\n".join([head, *first, *rows[200:]]) + "\n")
    said = tidemark("evaluate", folder, "--format", "json")
    assert said.code == 0, said.err


def test_a_file_with_fewer_rows_to_learn_from_than_lags_raises_nothing(folder: Path, tidemark: Tidemark) -> None:
    rows = (folder / "line/two.csv").read_text().splitlines()[:106]
    (folder / "line/two.csv").write_text("\n".join(rows) + "\n")
    (folder / "labels.json").write_bytes(b'\xef\xbb\xbf{"line/two.csv": []}')
    (default, *_) = tidemark("evaluate", folder, "--format", "json").rows
    assert (default["faults"], default["false_alarms"]) == (0, 0)
