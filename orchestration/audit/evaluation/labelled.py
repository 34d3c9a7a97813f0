"""Series in a folder of CSV files, and the windows of their faults in a file of JSON: the layout of the Numenta Anomaly Benchmark.

A CSV file has a header, a column of times (UTC) and columns of numbers. The labels are `{"folder/file.csv": [["start", "end"], ...]}`, by
the path below the folder; a file without a window has an empty list.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from gold.anomalies.alone import WAYS
from gold.anomalies.model import Series
from gold.anomalies.nab import Counted, Window, counted, learned
from gold.anomalies.vectors import LARGEST
from orchestration.errors import TidemarkError
from orchestration.utc import from_iso, to_micros

LEAST_ROWS = 100
LAYOUT = "labels are {file: [[start, end], ...]}, with times such as 2014-04-10 07:15:00"


@dataclass(frozen=True)
class Labelled:
    """`name`: the path below its folder. `windows`: rows of faults, in order."""

    name: str
    series: Series
    windows: Sequence[Window]


@dataclass(frozen=True)
class Result:
    """Count of what one way to alarm finds in one series."""

    way: str
    name: str
    counted: Counted


def labelled(folder: Path, labels: Path) -> Iterator[Labelled]:
    """Read the series that have labels; TidemarkError where a file is missing or is none."""
    try:
        by_name = json.loads(labels.read_text("utf-8-sig"))
        names = sorted(by_name.items())
    except (OSError, ValueError, AttributeError) as error:
        raise TidemarkError(f"{labels} cannot be read: {error}.\n  {LAYOUT}.") from error
    for name, windows in names:
        ends, values = _read(folder / name)
        listed = windows if isinstance(windows, list) else [windows]
        yield Labelled(name, Series(ends, values), [_rows(labels, name, window, ends) for window in listed])


def evaluate(series: Labelled) -> Iterator[Result]:
    """Judge one series in each way."""
    rows = len(series.series.ends)
    for way, alarming in WAYS.items():
        yield Result(way, series.name, counted(alarming(series.series, learned(rows)), series.windows, rows))


def _read(file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    try:
        table = csv.read_csv(file)
        times, *columns = table.columns
        ends = times.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        values = np.stack([pc.cast(column, pa.float64()).to_numpy() for column in columns], axis=1)
        if times.null_count:
            raise ValueError("a row has no time")
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TidemarkError(f"{file} cannot be read: {error}.\n  The first column is a time, the others are numbers.") from error
    if len(ends) < LEAST_ROWS:
        raise TidemarkError(f"{file} has {len(ends)} rows; at least {LEAST_ROWS} are needed to learn from the first and judge the others.")
    if np.median(np.diff(ends)) <= 0:
        raise TidemarkError(f"{file} has rows that are not in order of time: sort them by the first column.")
    return ends, np.where(np.abs(values) < LARGEST, values, np.nan)


def _rows(labels: Path, name: str, window: Sequence[str], ends: npt.NDArray[np.int64]) -> Window:
    try:
        start, end = (to_micros(from_iso(text)) for text in window)
    except (ValueError, TypeError) as error:
        raise TidemarkError(f"{labels} has a window of {name} that is none: {window!r}.\n  {LAYOUT}.") from error
    if end < start:
        raise TidemarkError(f"{labels} has a window of {name} that ends before it begins: {window!r}.")
    return int(np.searchsorted(ends, start)), int(np.searchsorted(ends, end, "right")) - 1
