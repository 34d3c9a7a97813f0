"""What a step of amendments looks at, by the logs of tables written by hand."""

from pathlib import Path

import pytest

from orchestration.engine.lake import Lake
from orchestration.jobs.gold.amendments import NOWHERE, Step, _may_be_late
from orchestration.storage.commit import append_rows
from orchestration.storage.positions import GoldPosition
from orchestration.storage.tables import ensure
from tests.lakes import conf


@pytest.mark.parametrize(("seen", "is_due"), [(-1, True), (0, False)])
def test_late_rows_of_the_first_micro_batch_of_a_generation_are_folded_in_once(seen: int, is_due: bool, tmp_path: Path) -> None:
    lake = Lake(conf(tmp_path))
    table = lake.gold("kitchen")[2]
    ensure(table)
    append_rows(table.location, table.schema.empty_table(), lake.app_id("gold.kitchen", table.name), 0)
    after = GoldPosition(seen, 0, 5, 5)
    assert _may_be_late(lake, "kitchen", Step(1, after, GoldPosition(1, 0, 6, 6))) == is_due
    assert not _may_be_late(lake, "presses", Step(1, NOWHERE, after))
