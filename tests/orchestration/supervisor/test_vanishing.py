"""A replay refuses where windows would leave gold, and says which; the lake is made without Spark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gold.windows.spec import Group
from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.storage.sealing import Sealing
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.vanishing import Vanishing, vanishing_windows
from tests.collectors import write_conf
from tests.lakes import KITCHEN, PRESSES, conf, copied
from tests.orchestration.serving.sql.plant import minute, plant

ALL_OF_KITCHEN = Vanishing("kitchen", "temperature", 3, minute(0), minute(20))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a lake whose gold shows three windows of the kitchen's temperature."""
    made = tmp_path_factory.mktemp("vanishing")
    plant(made)
    return made


def without(group: Group, metric: str) -> Group:
    return replace(group, metrics=tuple(name for name in group.metrics if name != metric))


@pytest.mark.parametrize(
    ("declared", "replayed", "vanishing"),
    [
        pytest.param([KITCHEN, PRESSES], [KITCHEN, PRESSES], [], id="nothing has changed"),
        pytest.param([PRESSES], [PRESSES], [ALL_OF_KITCHEN], id="a group has left"),
        pytest.param([replace(KITCHEN, name="all"), PRESSES], [PRESSES], [ALL_OF_KITCHEN], id="a group has another name"),
        pytest.param([without(KITCHEN, "temperature")], [without(KITCHEN, "temperature")], [ALL_OF_KITCHEN], id="a metric has left"),
        pytest.param([without(KITCHEN, "power")], [without(KITCHEN, "power")], [], id="a metric without windows has left"),
        pytest.param([without(KITCHEN, "temperature"), PRESSES], [PRESSES], [], id="a metric has left a group that is not replayed"),
    ],
)
def test_windows_vanish_whose_group_or_metric_the_conf_no_longer_has(
    folder: Path, declared: Sequence[Group], replayed: Sequence[Group], vanishing: Sequence[Vanishing]
) -> None:
    assert vanishing_windows(conf(folder, groups={group.name: group for group in declared}), replayed) == vanishing


def test_nothing_vanishes_from_a_lake_without_gold(tmp_path: Path) -> None:
    assert vanishing_windows(conf(tmp_path), []) == []


def test_a_damaged_table_has_none_as_a_replay_is_its_way_out(folder: Path, tmp_path: Path) -> None:
    made = replace(copied(conf(folder), tmp_path), groups={"presses": PRESSES})
    assert vanishing_windows(made, [PRESSES]) == [ALL_OF_KITCHEN]
    Sealing(LakeStore(made), []).seal_finished_batches()
    newest = max((made.lake / "gold/aggregates/_delta_log").local.glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-20])
    assert vanishing_windows(made, [PRESSES]) == []


def test_the_command_refuses_and_builds_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_conf(folder, plant="path: ./landing")
    (files / "groups.yml").write_text("groups:\n  ovens: {metrics: [temperature]}\n")
    (files / "devices.yml").write_text("devices:\n  oven: {groups: [ovens]}\n")
    assert load(files).lake == Location(folder / "lake")
    assert exit_code(["--conf", str(files), "replay"]) == 2
    said = capsys.readouterr().err
    assert "kitchen, temperature: 3 windows from 2026-01-05T00:00:00Z to 2026-01-05T00:20:00Z" in said
    assert "`tidemark replay --yes`" in said
    assert not (folder / "lake" / "generations").exists()
