"""A gate that holds, under kills: what has not passed is never in gold; after a release gold is as if there had been no gate."""

import json
import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.cli.app import exit_code
from orchestration.crash import VARIABLE, Point
from orchestration.storage.gate_state import closed_gates
from orchestration.storage.positions import gold_position
from orchestration.storage.snapshots import all_snapshots
from orchestration.supervisor.quality_gate import GateClosedError
from tests.chaos.account import GOLD, assert_as_undisturbed, tables
from tests.chaos.plants import SECONDS, Plant, events
from tests.lakes import run

pytestmark = [pytest.mark.kill, pytest.mark.processes, pytest.mark.slow]
UNWANTED = 123.25
STRICT = f"""
table: silver.[rl]*
expectations:
  - type: expect_column_values_to_not_be_in_set
    kwargs: {{column: value, value_set: [{UNWANTED}]}}
    severity: critical
    description: Nothing measures {UNWANTED}.
"""
GOOD_BATCHES = 2
"""A file is a batch; the third one has what nobody wants."""


def killed(plant: Plant, at: Point) -> bool:
    with plant.running("run", "--once", **{VARIABLE: str(at)}) as process:
        return process.wait(SECONDS) == -signal.SIGKILL


def is_readable(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def spoilt(file: Path) -> Path:
    """Every temperature is the unwanted value; one more comes late."""
    *lines, unreadable = file.read_bytes().splitlines(keepends=True)
    temperatures = [line for line in lines if b'"temperature"' in line and is_readable(line)]
    unwanted = [json.loads(line) | {"value": UNWANTED, "unit": "degC"} for line in temperatures]
    others = [line for line in lines if line not in temperatures]
    late = unwanted[0] | {"ts": "2026-01-05T00:00:07Z"}
    file.write_bytes(b"".join([*others, *(json.dumps(event).encode() + b"\n" for event in (*unwanted, late)), unreadable]))
    os.utime(file, (1_700_000_002, 1_700_000_002))
    return file


def is_unwanted_in_gold(plant: Plant) -> bool:
    return any((tables(plant)[name]["max"] == UNWANTED).any() for name in GOLD if name.endswith("aggregates"))


def release_all(plant: Plant) -> list[str]:
    """The tables of which something was held back."""
    lake, tables_held = plant.opened(), []
    for held in closed_gates(lake.conf, lake.table_path):
        assert held.failure is not None
        arguments = ["--table", held.table, "--version", str(held.failure.version), "--reason", "a test"]
        assert exit_code(["--conf", str(plant.folder / "conf"), "quality", "release", *arguments]) == 0
        tables_held.append(held.table)
    return tables_held


def test_what_has_not_passed_is_never_in_gold_whatever_dies_and_all_of_it_is_after_a_release(spark: SparkSession, tmp_path: Path) -> None:
    files = events(tmp_path / "events", files=4, seed=1)
    plant = Plant(tmp_path / "held")
    (plant.folder / "conf" / "expectations").mkdir()
    (plant.folder / "conf" / "expectations" / "strict.yml").write_text(STRICT)
    pipeline = plant.folder / "conf" / "pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("gates: {}", "gates: {silver.readings: hold}"))

    # Gold dies in a batch of what has passed: the next run has it to repeat.
    plant.land(files[:GOOD_BATCHES])
    assert killed(plant, Point.AGGREGATES_WRITTEN), plant.log_end()
    plant.land([spoilt(files[2]), files[3]])
    assert killed(plant, Point.GATE_FAILED), plant.log_end()

    conf = plant.opened().conf
    with pytest.raises(GateClosedError, match=rf"Nothing measures {UNWANTED}"):
        run(conf, spark)
    reached = gold_position(plant.opened(), "plant")
    assert reached is None or reached.bronze_batch < GOOD_BATCHES
    assert not is_unwanted_in_gold(plant)
    assert all(snapshot.bronze_batch < GOOD_BATCHES for snapshot in all_snapshots(conf.lake))
    readings = tables(plant)["silver.readings"]
    assert set(readings["bronze_batch"]) == {0, 1, 2, 3}  # ingestion went on
    assert (readings["value"] == UNWANTED).any()

    assert release_all(plant) == ["silver.readings", "silver.late"]
    run(conf, spark)
    assert is_unwanted_in_gold(plant)

    undisturbed = Plant(tmp_path / "undisturbed")
    undisturbed.land(files)
    run(undisturbed.opened().conf, spark)
    assert_as_undisturbed(plant, undisturbed)
