"""What a replay says beforehand is what it then does: rows of each table and group, and the windows that vanish."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.rule import Rule
from gold.windows.spec import Late
from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.conf.model import Conf, Device
from orchestration.location import Location
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.sealing import Sealing
from orchestration.storage.snapshots import all_snapshots
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.replay import foresee, plan
from orchestration.supervisor.replay_preview import ReplayPreview
from silver.spec import Time
from tests.built import copy_of
from tests.lakes import KITCHEN, METRICS, PRESSES, SHAPE, conf, copy_tree, differences, event, land, minutes, replay, run
from tests.rows import at

START = at("2026-01-05T00:00:00")
ALL = replace(KITCHEN, name="all", stream="all", metrics=("temperature", "power", "vibration"), devices=("*",))
SENT = (("oven", "temperature"), ("oven", "power"), ("fridge", "temperature"), ("press", "vibration"), ("mixer", "temperature"))
"""The mixer is not declared."""


def sent(start: datetime, count: int, value: float = 1.0) -> list[str]:
    return [event(device, metric, value + n, time) for device, metric in SENT for n, time in enumerate(minutes(start, count))]


@pytest.fixture(scope="module")
def one_group(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """A lake whose devices are all in one group, with late rows, duplicates of another value, and a device that nobody declared."""
    made = conf(
        tmp_path_factory.mktemp("preview"),
        groups={"all": replace(ALL, lateness_seconds=60)},
        devices={name: Device(name, ("all",)) for name in ("oven", "fridge", "press")},
    )
    land(made.folder, "1.json", [*sent(START, 100), event("oven", "power", 7, START), event("fridge", "temperature", -5, START), "{broken"])
    run(made, spark)
    late = [
        event("oven", "temperature", 500, START + timedelta(minutes=5.5)),
        event("press", "vibration", 1, START + timedelta(minutes=89.5)),
    ]
    land(made.folder, "2.json", [*late, *sent(START + timedelta(minutes=95), 40, 96)])
    run(made, spark)
    return made


def shown(made: Conf) -> dict[tuple[str | None, str], int]:
    """How many rows readers see of each table and group."""
    engine, counts = DuckDbEngine(made, Limits()), dict[tuple[str | None, str], int]()
    for name in ("silver.readings", "silver.quarantine", "silver.late", "silver.duplicates"):
        counts[None, name] = engine.ask(Question(f"select count(*) as n from {name}")).rows["n"][0].as_py()
    for name in ("gold.aggregates", "gold.vectors", "gold.late"):
        rows = engine.ask(Question(f"select device_group, count(*) as n from {name} group by all")).rows.to_pylist()
        counts |= {(row["device_group"], name): row["n"] for row in rows}
    return counts


def foreseen(made: Conf, since: date | None = None) -> ReplayPreview:
    lake = LakeStore(made)
    return foresee(lake, plan(lake, None, since))


def divided(made: Conf) -> Conf:
    kitchen, presses = (replace(group, lateness_seconds=60) for group in (KITCHEN, PRESSES))
    devices = {"oven": ("kitchen",), "fridge": ("kitchen",), "press": ("presses",)}
    return replace(made, groups={"kitchen": kitchen, "presses": presses}, devices={name: Device(name, of) for name, of in devices.items()})


def set_aside(made: Conf) -> Conf:
    """Late rows are left out, windows are longer, and a metric is in no group any more."""
    group = replace(made.groups["all"], late=Late.KEEP_ASIDE, metrics=("temperature", "vibration"), vector=None)
    return replace(made, groups={"all": group}, metrics=made.metrics | {"temperature": replace(METRICS["temperature"], step_seconds=1200)})


def stricter(made: Conf) -> Conf:
    """A bound, a rule, and a device that is declared now."""
    metrics = made.metrics | {"temperature": replace(METRICS["temperature"], minimum=0.0, maximum=90.0)}
    rules = (Rule("power_is_odd", "metric <> 'power' or value % 2 = 1"),)
    return replace(made, metrics=metrics, rules=rules, devices=made.devices | {"mixer": Device("mixer", ("all",))})


def moved(made: Conf) -> Conf:
    groups = made.groups | {"kitchen": replace(KITCHEN, lateness_seconds=60)}
    middle = START + timedelta(minutes=50)
    moved = {name: Device(name, ("kitchen",), since=middle) for name in ("oven", "mixer")}
    return replace(made, groups=groups, devices=made.devices | moved | {"fridge": Device("fridge", ("kitchen",))})


def read_otherwise(made: Conf) -> Conf:
    """Events without a zone are of another time, and payloads are read anew."""
    local = replace(made.sources["plant"], payload_format=replace(SHAPE, time=Time("ts", time_zone="Europe/Berlin")))
    return replace(made, sources={"plant": local})


@pytest.mark.slow
@pytest.mark.parametrize("change", [divided, set_aside, stricter, moved, read_otherwise])
def test_a_replay_gives_what_its_preview_said(change: Callable[[Conf], Conf], one_group: Conf, spark: SparkSession, tmp_path: Path) -> None:
    copy_tree(one_group.lake.local, tmp_path / "lake")
    now = change(replace(one_group, lake=Location(tmp_path / "lake")))
    before, preview = shown(replace(now, groups=one_group.groups)), foreseen(now)
    recorded = {(row.device_group, row.table): row.rows_before for row in preview.tables if row.rows_before}
    assert recorded == {key: count for key, count in before.items() if count}
    replay(now, spark)
    expected = {(row.device_group, row.table): row.rows_after for row in preview.tables if row.rows_after}
    assert {key: count for key, count in shown(now).items() if count} == expected
    assert differences(now) == []


@pytest.mark.slow
def test_a_lake_that_is_divided_into_groups_has_all_of_its_history_in_them_and_a_rollback_has_it_as_it_was(
    one_group: Conf, spark: SparkSession, tmp_path: Path
) -> None:
    copy_tree(one_group.lake.local, tmp_path / "lake")
    made = replace(one_group, lake=Location(tmp_path / "lake"))
    readings = shown(made)[None, "silver.readings"]
    now = divided(made)
    vanishing = foreseen(now).vanishing
    assert {(row.device_group, row.metric) for row in vanishing} == {("all", name) for name in ("temperature", "power", "vibration")}
    replay(now, spark)
    ask = "select count(*) as n from silver.readings where len(list_intersect(groups, ['kitchen', 'presses'])) = 1"
    assert DuckDbEngine(now, Limits()).ask(Question(ask)).rows["n"][0].as_py() == readings
    assert [row for row in foreseen(now).tables if row.rows_before != row.rows_after] == []


@pytest.fixture
def page_lake(tmp_path: Path) -> Conf:
    """With a late row, a duplicate, what is in quarantine, and windows and vectors of one group."""
    return load(copy_of("views", tmp_path) / "conf")


def changes(preview: ReplayPreview) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in preview.tables if row.rows_before != row.rows_after or row.windows_that_vanish]


def test_under_the_same_conf_nothing_changes(page_lake: Conf) -> None:
    preview = foreseen(page_lake)
    assert (changes(preview), preview.vanishing) == ([], [])
    assert sum(row.rows_before or 0 for row in preview.tables) > 100
    assert changes(foreseen(page_lake, since=date(2100, 1, 1))) == []


def test_a_group_that_left_conf_is_named_with_its_windows(page_lake: Conf) -> None:
    made = replace(page_lake, groups={"attic": page_lake.groups["attic"]})
    preview = foreseen(made)
    lost = {row.device_group: row for row in preview.tables if row.table == "gold.aggregates"}["kitchen"]
    assert (lost.rows_before, lost.rows_after) == (lost.windows_that_vanish, 0)
    assert sum(row.windows for row in preview.vanishing) == lost.windows_that_vanish
    assert "kitchen, temperature: " in "\n".join(preview.sentences())


def test_of_a_damaged_table_it_is_unknown_what_there_is_and_a_replay_is_its_way_out(page_lake: Conf) -> None:
    Sealing(LakeStore(page_lake), []).seal_finished_batches()
    after = {(row.device_group, row.table): row.rows_after for row in foreseen(page_lake).tables}
    for name in ("gold/aggregates", "silver/readings"):
        newest = max((page_lake.lake / name / "_delta_log").local.glob("*.json"))
        newest.write_bytes(newest.read_bytes()[:-20])
    damaged = foreseen(page_lake)
    unknown = {row.table for row in damaged.tables if row.rows_before is None}
    assert {"silver.readings", "gold.aggregates"} <= unknown
    assert {(row.device_group, row.table): row.rows_after for row in damaged.tables if row.rows_after} == {
        key: count for key, count in after.items() if count
    }


def test_the_command_says_what_would_change_and_without_a_terminal_does_nothing(
    page_lake: Conf, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = page_lake.folder / "groups.yml"
    groups.write_text("groups:\n  ovens: {metrics: [temperature], devices: ['*']}\n")
    (page_lake.folder / "alerts.yml").unlink(missing_ok=True)
    devices = page_lake.folder / "devices.yml"
    devices.write_text(devices.read_text().replace("{groups: [kitchen]", "{groups: [ovens]"))
    assert exit_code(["--conf", str(page_lake.folder), "replay"]) == 2
    said = capsys.readouterr()
    assert "kitchen, temperature: " in said.err
    assert "`tidemark replay --yes` builds it" in said.err
    assert "gold.aggregates" in said.out
    assert not (page_lake.lake / "generations").is_dir()


def test_a_lake_without_a_snapshot_has_nothing_to_begin_with(tmp_path: Path) -> None:
    assert all_snapshots(conf(tmp_path).lake) == []
    with pytest.raises(Exception, match="has no snapshot to start from"):
        foreseen(conf(tmp_path))
