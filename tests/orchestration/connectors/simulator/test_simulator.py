"""The simulator: what it writes, and that the truth beside it is true."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from orchestration.cli.simulate import command
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.simulator import landing
from orchestration.connectors.simulator.landing import Landing, at_rate, in_order, shuffled
from orchestration.connectors.simulator.plan import DEFAULT_START, Odds, Plan, made_up_devices, plan
from orchestration.errors import ConfError

REPOSITORY = Path(__file__).parents[4]
CLEAN = Odds(late=0, duplicate=0, malformed=0, future=0, offline=0)
DIRTY = Odds(late=0.02, duplicate=0.05, malformed=0.05, future=0.01, offline=0.02)
Written = tuple[list[bytes], pd.DataFrame]
"""All lines and the truth, in order of arrival."""


@pytest.fixture(scope="module", autouse=True)
def _small_slices() -> Iterator[None]:
    """Every simulation is made in many slices, as a large one is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(landing, "SLICE", 300)
        yield


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Lines and truth of the plan with every kind of disturbance."""
    return written(tmp_path_factory.mktemp("dirty") / "landing", planned())


@cache
def conf() -> Conf:
    """The default conf: 20 devices, 5 metrics, a lateness of 600 s."""
    return load(REPOSITORY / "conf")


def planned(**changes: Any) -> Plan:
    arguments: dict[str, Any] = {"devices": [*conf().devices.values()], "events": 2000, "seed": 1, "start": DEFAULT_START}
    arguments |= {"interval_seconds": 60, "shape": "long", "odds": DIRTY}
    return plan(conf(), **arguments | changes)


def written(folder: Path, made: Plan, files: int = 3) -> Written:
    in_order(made, Landing(folder, made), files, lambda _: None)
    return lines_of(folder), pd.read_parquet(f"{folder}.truth")


def lines_of(folder: Path) -> list[bytes]:
    return [line for file in sorted(folder.iterdir()) for line in file.read_bytes().split(b"\n")[:-1]]


def test_the_same_plan_gives_the_same_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    first, again, other = (written(tmp_path / name, planned(seed=seed))[0] for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first == again
    assert first != other


def test_the_bytes_of_a_plan_without_faults_stay_as_they_were(tmp_path: Path) -> None:
    lines, _ = written(tmp_path / "landing", planned())
    assert hashlib.sha256(b"\n".join(lines)).hexdigest()[:16] == "34a8334e2ff00663"


def test_a_default_event_reads_as_documented(tmp_path: Path) -> None:
    line = written(tmp_path / "landing", planned(odds=CLEAN, events=1))[0][0]
    assert line.startswith(b'{"device":"oven-01","metric":"temperature","value":')
    assert line.endswith(b',"unit":"degC","zone":"hall-1","ts":"2026-01-05T00:00:00.000Z"}')


def readings_in(line: bytes) -> list[tuple[str, str, float, str | None, pd.Timestamp]]:
    """What a line says, whatever its shape."""
    event = json.loads(line)
    if "values" in event:
        pairs = list(event["values"].items())
    elif "readings" in event:
        pairs = [(reading["name"], reading["v"]) for reading in event["readings"]]
    else:
        pairs = [(event["metric"], event["value"])]
    return [(event["device"], metric, value, event.get("unit"), pd.Timestamp(event["ts"])) for metric, value in pairs]


@pytest.mark.parametrize("shape", ["long", "wide", "list"])
def test_the_truth_says_what_is_on_each_line(tmp_path: Path, shape: str) -> None:
    lines, truth = written(tmp_path / "landing", planned(shape=shape))
    assert len(lines) == 2000
    assert list(truth.groupby("file").line.max()) == [666, 667, 667]
    for line, (_, rows) in zip(lines, truth.groupby(["file", "line"]), strict=True):
        if rows.kind.iloc[0] != "malformed":
            columns = ["device_id", "metric", "value", "event_time"]
            assert rows.part.tolist() == list(range(len(rows)))
            assert rows[columns].values.tolist() == [[device, metric, value, at] for device, metric, value, _, at in readings_in(line)]
            assert shape != "long" or rows.unit.iloc[0] == readings_in(line)[0][3]


def test_every_defect_occurs_and_makes_a_line_unreadable(dirty: Written) -> None:
    lines, truth = dirty
    malformed = truth[truth.kind == "malformed"]
    assert set(malformed.defect) == {"broken_number", "cut", "empty", "two_objects", "invalid_utf8"}
    assert malformed[["metric", "value", "unit"]].isna().all(axis=None)
    for number in malformed.index:
        with pytest.raises(ValueError):  # of JSON or of UTF-8
            json.loads(lines[number])


def test_a_duplicate_repeats_the_bytes_of_an_earlier_line(dirty: Written) -> None:
    lines, truth = dirty
    numbers = truth.index[truth.kind == "duplicate"]
    assert len(numbers) > 50
    assert all(lines[number] in lines[:number] for number in numbers)
    valid = truth[truth.kind.isin(["good", "late"])]
    assert not valid.duplicated(["device_id", "metric", "event_time"]).any()


def test_without_delays_lines_are_in_order_of_time(tmp_path: Path) -> None:
    _, truth = written(tmp_path / "landing", planned(odds=CLEAN))
    assert truth.event_time.is_monotonic_increasing
    assert set(truth.kind) == {"good"}


def test_a_late_line_comes_more_than_the_lateness_behind_the_newest(tmp_path: Path) -> None:
    _, truth = written(tmp_path / "landing", planned(odds=replace(CLEAN, late=0.05), events=10_000))
    behind = truth.event_time.cummax() - truth.event_time
    is_underway = truth.event_time.cummax() < truth.event_time.max()  # at the end whatever is still on its way comes at once
    assert (behind[is_underway & (truth.kind == "late")] > pd.Timedelta(seconds=600)).all()
    assert (behind[truth.kind == "good"] == pd.Timedelta(0)).all()
    assert 400 < (truth.kind == "late").sum() < 600


def test_a_device_without_network_sends_everything_afterwards(tmp_path: Path) -> None:
    _, truth = written(tmp_path / "landing", planned(odds=replace(CLEAN, offline=0.05), events=20_000))
    late = truth[truth.kind == "late"]
    _, undisturbed = written(tmp_path / "calm", planned(odds=CLEAN, events=20_000))
    assert len(late) > 200
    assert truth.groupby("device_id").size().to_dict() == undisturbed.groupby("device_id").size().to_dict()


def test_future_lines_are_dated_2099(dirty: Written) -> None:
    _, truth = dirty
    assert set(truth.event_time[truth.kind == "future"].dt.year) == {2099}
    assert truth.event_time[truth.kind != "future"].dt.year.max() == 2026


def test_shuffled_files_hold_lines_of_all_times(tmp_path: Path) -> None:
    made = planned(odds=CLEAN)
    shuffled(made, Landing(tmp_path / "mixed", made), 4, lambda _: None)
    truth = pd.read_parquet(tmp_path / "mixed.truth")
    span = truth.groupby("file").event_time.agg(lambda times: times.max() - times.min())
    assert len(span) == 4
    assert (span > pd.Timedelta(minutes=15)).all()
    assert sorted(lines_of(tmp_path / "mixed")) == sorted(written(tmp_path / "sorted", made)[0])


def test_a_shuffled_file_may_stay_empty(tmp_path: Path) -> None:
    made = planned(odds=CLEAN, events=3)
    shuffled(made, Landing(tmp_path / "landing", made), 3, lambda _: None)
    assert len(lines_of(tmp_path / "landing")) == len(pd.read_parquet(tmp_path / "landing.truth")) == 3
    assert min(file.stat().st_size for file in (tmp_path / "landing").iterdir()) == 0


def test_a_second_run_adds_files_and_touches_none(tmp_path: Path) -> None:
    folder = tmp_path / "landing"
    written(folder, planned(), files=2)
    before = {file: file.read_bytes() for file in folder.iterdir()}
    (folder / "events-000001.jsonl").unlink()  # a consumer may take files away: the truth remembers their numbers
    written(folder, planned(seed=2), files=2)
    assert [file.name for file in sorted(folder.iterdir())] == [f"events-{n:06d}.jsonl" for n in (2, 3, 4)]
    assert (folder / "events-000002.jsonl").read_bytes() == before[folder / "events-000002.jsonl"]
    assert len(list(Path(f"{folder}.truth").iterdir())) == 4


def test_files_are_modified_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "time", SimpleNamespace(time_ns=lambda: 10**18))  # as fast as a machine can be
    written(tmp_path / "landing", planned(events=9), files=9)
    milliseconds = [file.stat().st_mtime_ns // 1_000_000 for file in sorted((tmp_path / "landing").iterdir())]
    assert all(earlier < later for earlier, later in pairwise(milliseconds))


def test_a_run_that_breaks_leaves_only_whole_files(tmp_path: Path) -> None:
    made, folder = planned(), tmp_path / "landing"

    def break_in_the_third_file(_: object) -> None:
        if len(list(folder.glob("[!.]*"))) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_order(made, Landing(folder, made), 5, break_in_the_third_file)
    assert [file.name for file in sorted(folder.iterdir())] == ["events-000001.jsonl", "events-000002.jsonl"]
    assert len(list(Path(f"{folder}.truth").iterdir())) == 2


def test_at_a_rate_event_times_are_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "ROUND_SECONDS", 0.02)
    begin = datetime.fromtimestamp(int(time.time()), UTC)
    made = planned(odds=CLEAN, events=300, interval_seconds=0.05, start=begin)
    at_rate(made, Landing(tmp_path / "landing", made), threading.Event(), lambda _: None)
    truth = pd.read_parquet(tmp_path / "landing.truth")
    assert len(truth) == 300
    assert truth.event_time.is_monotonic_increasing
    assert (truth.event_time.min(), truth.event_time.max()) == (begin, pd.Timestamp(begin) + pd.Timedelta("0.147s"))


def test_at_a_rate_a_stop_ends_the_run(tmp_path: Path) -> None:
    made, stop = planned(), threading.Event()
    stop.set()
    at_rate(made, Landing(tmp_path / "landing", made), stop, lambda _: None)
    assert list((tmp_path / "landing").iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"), [({"interval_seconds": 0.0005}, "lower --rate or more --devices"), ({"devices": []}, "--devices N")]
)
def test_what_cannot_be_simulated_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfError, match=message):
        planned(**changes)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "landing").touch()
    with pytest.raises(ConfError, match="landing is a file"):
        Landing(tmp_path / "landing", planned())


def test_made_up_devices_are_dealt_to_the_groups() -> None:
    made = made_up_devices(conf(), 4)
    assert [device.device_id for device in made] == ["sim-0001", "sim-0002", "sim-0003", "sim-0004"]
    assert [device.groups for device in made] == [("kitchen",), ("press_line",), ("building",), ("kitchen",)]


def called(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--to", str(folder), *arguments], obj={"conf": REPOSITORY / "conf"})


def test_the_command_writes_events_the_truth_and_devices_to_load(tmp_path: Path) -> None:
    result = called(tmp_path / "landing", "--events", "500", "--devices", "2", "--files", "2", "--malformed", "0")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "500 events in" in result.stderr
    assert len(lines_of(tmp_path / "landing")) == 500
    table = pd.read_csv(tmp_path / "landing.truth" / "_devices.csv")
    assert set(pd.read_parquet(tmp_path / "landing.truth").device_id) == {"sim-0001", "sim-0002"}
    assert table.values.tolist() == [["sim-0001", "zone-1", "kitchen"], ["sim-0002", "zone-2", "press_line"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "10", "--files", "3"], "--files does not go with --rate"),
        (["--rate", "10", "--faults", "3"], "--faults does not go with --rate"),
        (["--order", "shuffled", "--files", "300"], "at most 256"),
        (["--start", "yesterday"], "not an ISO 8601 instant"),
        (["--late", "2"], "not in the range"),
    ],
)
def test_the_command_refuses_what_does_not_fit(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = called(tmp_path / "landing", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
