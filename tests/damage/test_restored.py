"""What is restored alone, is missing, or is of somebody else does not go on: rows would come twice or vanish, in silence."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.bindings import bind
from orchestration.storage.generations import Generation
from orchestration.storage.tables import ensure
from tests.damage.damaged import Damaged
from tests.lakes import conf, copy_tree

pytestmark = pytest.mark.damage
REPLAY = r".*\.\n  Restore the checkpoint, or run `tidemark replay` to build silver and gold anew from bronze"


def restored(folder: str, *, sealed: bool = True) -> Callable[[Damaged], None]:
    """A folder as it was, its seal too; nothing else."""

    def restore(lake: Damaged) -> None:
        shutil.rmtree(lake.made.lake.local / folder)
        copy_tree(lake.folder / "earlier" / folder, lake.made.lake.local / folder)
        if sealed:
            for seal in (lake.folder / "earlier" / folder).parent.glob(f"{Path(folder).name}*.seal"):
                shutil.copy(seal, (lake.made.lake.local / folder).with_name(seal.name))

    return restore


def gone(file: str) -> Callable[[Damaged], None]:
    return lambda lake: (lake.made.lake.local / file).unlink()


def swapped(lake: Damaged) -> None:
    """The checkpoint of silver in the place of gold's."""
    shutil.rmtree(lake.made.lake.local / "checkpoints" / "gold.kitchen")
    (lake.made.lake.local / "checkpoints" / "gold.kitchen.seal").unlink()
    copy_tree(lake.made.lake.local / "checkpoints" / "silver.readings", lake.made.lake.local / "checkpoints" / "gold.kitchen")


@pytest.mark.parametrize(
    ("restore", "told"),
    [
        (restored("checkpoints/silver.readings", sealed=False), "silver.readings is damaged: .* is gone" + REPLAY),
        (restored("checkpoints/silver.readings"), "silver.readings at .* has reached batch .*, but silver.readings holds batch" + REPLAY),
        (restored("checkpoints/gold.kitchen"), "gold.kitchen at .* has reached batch .*, but gold.aggregates holds batch" + REPLAY),
        (
            gone("checkpoints/gold.kitchen/amendments.json"),
            "gold.kitchen at .* has reached amendment round 0, but gold.aggregates holds" + REPLAY,
        ),
        (restored("silver"), "silver.readings at .* is at version 1, but snapshot 1 pins its version 2"),
        (restored("gold"), "gold.aggregates at .* is at version 1, but snapshot 1 pins its version [23]"),
        (restored("bronze"), "bronze.events at .* is at version 1, but snapshot 1 pins its version 2"),
        (gone("checkpoints/gold.kitchen/tidemark.json"), "checkpoints/gold.kitchen/tidemark.json is gone" + REPLAY),
        (swapped, "the checkpoint of gold.kitchen at .* is of flow silver.readings, and not of gold.kitchen" + REPLAY),
    ],
)  # fmt: skip
def test_what_is_restored_alone_is_refused(restore: Callable[[Damaged], None], told: str, damaged: Damaged) -> None:
    restore(damaged)
    with pytest.raises(TidemarkError) as refused:
        damaged.go_on()
    assert re.search(told, str(refused.value), re.DOTALL), refused.value


def test_a_checkpoint_of_another_pipeline_generation_or_lake_is_refused(damaged: Damaged, tmp_path: Path) -> None:
    lake, other = Lake(damaged.made, damaged.spark), Lake(conf(tmp_path), damaged.spark)
    readings = lake.tables["silver.readings"]
    with pytest.raises(TidemarkError, match="is of pipeline test, and not of plant"):
        bind(Lake(replace(damaged.made, pipeline="plant"), damaged.spark), "silver.readings", (readings,))
    of_a_group = Generation(generation=2, places={"checkpoints/silver.readings": 2})
    copy_tree(lake.checkpoint("silver.readings").local, of_a_group.checkpoint(damaged.made.lake, "silver.readings").local)
    with pytest.raises(TidemarkError, match="is of generation 1, and not of 2"):
        bind(Lake(damaged.made, damaged.spark, of_a_group), "silver.readings", (readings,))
    ensure(other.tables["silver.readings"])
    copy_tree(lake.checkpoint("silver.readings").local, other.checkpoint("silver.readings").local)
    with pytest.raises(TidemarkError, match=r"belongs to another silver\.readings than the one at"):
        bind(other, "silver.readings", (other.tables["silver.readings"],))
