"""`tidemark run --once` as real processes that are killed, stopped and refused: the tables end as if nobody had disturbed them.

`make chaos ROUNDS=10` kills at random moments; a round is told by its seed and comes again by SEED.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from orchestration import idle, ledger
from orchestration.conf.starter import write_starter
from orchestration.lake import Lake
from orchestration.lock import is_held, sole_writer
from orchestration.runner import Run
from orchestration.simulate.feed import in_order
from orchestration.simulate.landing import Landing
from orchestration.simulate.plan import DEFAULT_START, Odds, plan
from orchestration.tables import ensure, ensure_rows
from tests.lakes import assert_same, conf, event, land, minutes, run, table
from tests.twin import AGGREGATES, KEY, VECTORS, WINDOW

SEED, ROUNDS = (int(os.environ.get(name, default)) for name, default in (("SEED", "1"), ("ROUNDS", "0")))
FILES = 4
EVENTS = 24_000
"""A file is then 0.6 MiB, and a batch takes 1 MiB at most: every file is a bronze batch of its own."""
ODDS = Odds(late=0.02, duplicate=0.02, malformed=0.01, future=0.001, offline=0.01)
TIDEMARK = [sys.executable, "-c", "from orchestration.cli.app import main; main()", "--conf"]
VECTOR = [*VECTORS[:3], "revision"]
IDENTITY = ["bronze_batch", "bronze_row"]
QUARANTINED = ["position", "payload", "part"]
TABLES: Mapping[str, tuple[list[str], list[str], list[str]]] = {
    "bronze.events": (IDENTITY, ["position", "payload"], ["source", "position", "payload", "header", "received_at"]),
    "silver.readings": (KEY, KEY, [*KEY, "value", "unit", "aggregation", "step_seconds", "zone", "groups", "source", "part"]),
    "silver.quarantine": (
        [*IDENTITY, "part"],
        QUARANTINED,
        [*QUARANTINED, "broken_rules", "device_id", "metric", "event_time", "value", "source"],
    ),
    "silver.late": (KEY, KEY, [*KEY, "value", "source", "cause"]),
    "silver.duplicates": ([*IDENTITY, "part"], [*KEY, "value"], [*KEY, "value", "source"]),
    **{
        f"gold.{group}_aggregates": ([*WINDOW, "revision"], [*WINDOW, "revision"], [*AGGREGATES, "revision"])
        for group in ("kitchen", "press_line", "building")
    },
    **{f"gold.{group}_vectors": (VECTOR, VECTOR, [*VECTORS, "revision"]) for group in ("kitchen", "press_line", "building")},
}
"""Of each table what is unique in it, the order to compare in, and all that is the same in every run: lineage and clocks are not."""


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes folders with the starter conf, cut into small batches, and the same landed files."""
    base = tmp_path_factory.mktemp("plants")

    def planted(name: str) -> Path:
        folder = base / name
        write_starter(folder / "conf")
        pipeline = folder / "conf" / "pipeline.yml"
        pipeline.write_text(pipeline.read_text().replace("max_batch_bytes: 268435456", "max_batch_bytes: 1048576"))
        (folder / "landing").mkdir()
        for file in sorted((base / "events").glob("*.jsonl")):
            os.link(file, folder / "landing" / file.name)
        return folder

    starter = Lake.open(planted("first") / "conf").conf
    made = plan(
        starter, list(starter.devices.values()), events=EVENTS, seed=7, start=DEFAULT_START, interval_seconds=60, shape="long", odds=ODDS
    )
    in_order(made, Landing(base / "events", made), FILES, lambda _: None)
    for n, file in enumerate(sorted((base / "events").glob("*.jsonl"))):
        os.utime(file, (1_700_000_000 + n, 1_700_000_000 + n))  # long settled
    return planted


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, plant: Callable[[str], Path]) -> Path:
    """A plant whose run nobody disturbed."""
    folder = plant("undisturbed")
    run(Lake.open(folder / "conf").conf, spark)
    assert commits(folder, "silver.readings") == FILES
    return folder


@pytest.fixture(scope="module")
def seconds_of_a_run(plant: Callable[[str], Path], undisturbed: Path) -> float:
    """How long a whole process takes."""
    folder = plant("timed")
    begin = time.monotonic()
    run_to_the_end(folder)
    seconds = time.monotonic() - begin
    assert_same_tables(folder, undisturbed)
    return seconds


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_a_kill_at_a_random_moment_leaves_the_same_tables_as_none(
    seed: int, plant: Callable[[str], Path], undisturbed: Path, seconds_of_a_run: float
) -> None:
    folder, after = plant(f"seed-{seed}"), random.Random(seed).uniform(0, seconds_of_a_run)
    moment = time.monotonic() + after
    killed = was_killed(folder, lambda: time.monotonic() >= moment)
    state = {name: commits(folder, name) for name in TABLES}
    print(f"seed {seed}: {'killed' if killed else 'over'} after {after:.1f} s of {seconds_of_a_run:.1f} s, commits {state}")
    run_to_the_end(folder)
    assert_same_tables(folder, undisturbed)


def test_a_run_stopped_by_sigterm_then_by_ctrl_c_then_killed_between_two_tables_leaves_the_same_tables_as_none(
    spark: SparkSession, plant: Callable[[str], Path], undisturbed: Path
) -> None:
    """Signals go to the whole process group, as systemd and a terminal send them, and end a run after its batch. The kill is in gold, and
    of Python alone: the next run waits for the JVM.
    """
    folder = plant("disturbed")
    with running(folder) as process:
        await_while_it_runs(process, (folder / "lake" / "writer.lock").exists)
        assert_refused(folder, process.pid)
        assert exit_code_after(process, signal.SIGTERM, lambda: commits(folder, "bronze.events") > 0) == 0, told_by(folder)
    assert 0 < commits(folder, "bronze.events") < FILES
    with running(folder) as process:
        assert exit_code_after(process, signal.SIGINT, lambda: commits(folder, "silver.readings") > 0) == 0, told_by(folder)
    assert 0 < commits(folder, "silver.readings") < FILES
    with running(folder) as process:
        assert await_while_it_runs(process, lambda: any(commits(folder, name) for name in TABLES if name.startswith("gold.")))
        with sole_writer(folder / "lake", once_it_waits_for_the_jvm_of(killed_alone(process, folder), folder)):
            run(Lake.open(folder / "conf").conf, spark)
    assert_same_tables(folder, undisturbed)


def test_a_batch_that_reached_its_table_and_not_its_checkpoint_is_repeated_without_a_trace(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill between the two leaves, of every flow at once. Delta refuses the second write, but state is brought up to date."""
    made = conf(tmp_path)
    times = minutes(DEFAULT_START, 90)
    land(tmp_path, "1.json", ["{broken", *(event("oven", "temperature", minute, times[minute]) for minute in range(45))])
    with monkeypatch.context() as killed:
        killed.setattr(Run, "seal", lambda _: None)  # a batch is sealed when it is finished
        run(made, spark)
    logs = list((made.lake / "checkpoints").glob("*/commits"))
    assert len(logs) == 4
    for log in logs:
        newest = max((entry for entry in log.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink()
    land(tmp_path, "2.json", [event("oven", "temperature", minute, times[minute]) for minute in range(40, 90)])
    run(made, spark)
    assert len(table(made, "bronze.events")) == 96
    assert sorted(table(made, "silver.readings").value) == [*map(float, range(90))]
    assert len(table(made, "silver.quarantine")) == 1
    windows = table(made, "gold.kitchen_aggregates").sort_values("window_end")
    assert list(zip(windows["count"], windows.value, strict=True)) == [(10, 4.5 + 10 * n) for n in range(7)]
    assert len(table(made, "gold.kitchen_vectors")) == 7


def test_a_kill_while_a_table_is_made_leaves_nothing_that_the_next_run_trips_over(spark: SparkSession, tmp_path: Path) -> None:
    """The folder of its log is there first, and the first entry a moment later."""
    made = conf(tmp_path)
    declared = Lake(made).tables.values()
    rows = {made.lake / "ops/ticks": idle.SCHEMA, made.lake / "ops/ledger": ledger.SCHEMA}
    for path in (*(each.path for each in declared), *rows):
        (path / "_delta_log").mkdir(parents=True)
    for each in declared:
        ensure(spark, each)
    for path, schema in rows.items():
        ensure_rows(path, schema)
    assert {len(table(made, name)) for name in (*Lake(made).tables, "ops.ticks", "ops.ledger")} == {0}


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run as a process group of its own; what is left of it at the end is killed."""
    command = [*TIDEMARK, str(folder / "conf"), "run", "--once"]
    # What a killed Spark leaves behind goes away with the folder.
    environment = os.environ | {"SPARK_LOCAL_DIRS": str(folder / "scratch")}
    with (
        (folder / "run.log").open("ab") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # nothing is left
                os.killpg(process.pid, signal.SIGKILL)


def killed_alone(process: subprocess.Popen[bytes], folder: Path) -> dict[str, int]:
    """Kill the Python of a run while its JVM is stopped, and so is left behind; what its lease says."""
    lease: dict[str, int] = json.loads((folder / "lake" / "writer.lock").read_text())
    os.kill(lease["jvm"], signal.SIGSTOP)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert is_held(folder / "lake")
    return lease


def once_it_waits_for_the_jvm_of(lease: dict[str, int], folder: Path) -> Callable[[str], None]:
    """To be told by the next run who is waited for; then the JVM goes on."""
    heard: list[str] = []

    def told(line: str) -> None:
        heard.append(line)
        if len(heard) == 2:
            assert f"process {lease['pid']} " in heard[0]
            assert heard[0].endswith(f"ended without a word; its lease of {folder / 'lake'} is taken over.")
            assert f"waiting for the JVM of process {lease['pid']} " in heard[1]
            os.kill(lease["jvm"], signal.SIGCONT)

    return told


def assert_refused(folder: Path, holder: int) -> None:
    """A second run ends at once and says who writes the lake."""
    second = subprocess.run([*TIDEMARK, str(folder / "conf"), "run", "--once"], capture_output=True, text=True, check=False)
    assert (second.returncode, second.stdout) == (3, "")
    who = rf"process {holder} on \S+ \(since .* UTC: tidemark --conf \S+ run --once\)"
    assert re.fullmatch(rf"tidemark: {who} writes the lake at {folder / 'lake'}; stop it first, or wait for its end.\n", second.stderr)


def was_killed(folder: Path, is_time: Callable[[], bool]) -> bool:
    """Start a run and kill it, JVM and all, when it is time; False if it ended before."""
    with running(folder) as process:
        return await_while_it_runs(process, is_time)


def await_while_it_runs(process: subprocess.Popen[bytes], is_time: Callable[[], bool]) -> bool:
    """Wait for the moment; whether the process still runs."""
    while process.poll() is None and not is_time():
        time.sleep(0.002)
    return process.poll() is None


def exit_code_after(process: subprocess.Popen[bytes], number: signal.Signals, is_time: Callable[[], bool]) -> int:
    """Send the signal to the process and to all that it started, when it is time; the exit code."""
    assert await_while_it_runs(process, is_time)
    os.killpg(process.pid, number)
    return process.wait(120)


def run_to_the_end(folder: Path) -> None:
    with running(folder) as process:
        assert process.wait(300) == 0, told_by(folder)


def told_by(folder: Path) -> str:
    """The end of what the runs said."""
    return (folder / "run.log").read_text(errors="replace")[-3000:]


def commits(folder: Path, name: str) -> int:
    """Commits of a table after the one that made it."""
    return max(0, len(list((folder / "lake" / name.replace(".", "/") / "_delta_log").glob("*.json"))) - 1)


def assert_same_tables(found: Path, expected: Path) -> None:
    """Every table: nothing twice, nothing missing, nothing else. Each silver row is of an event, and of one layer's side only."""
    of_found, of_expected = ({name: table(Lake.open(folder / "conf").conf, name) for name in TABLES} for folder in (found, expected))
    for name, (unique, order, columns) in TABLES.items():
        assert not of_found[name].duplicated(unique).any(), name
        assert_same(of_found[name], of_expected[name], order, columns)
    silver = pd.concat([of_found[name] for name in TABLES if name.startswith("silver.")])
    assert not silver.duplicated([*IDENTITY, "part"]).any()
    assert len(silver.merge(of_found["bronze.events"][IDENTITY])) == len(silver)
