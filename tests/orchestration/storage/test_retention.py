"""What maintenance keeps for streams: also for one whose checkpoint is damaged and which a replay has left behind."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.location import Location
from orchestration.storage.delta import open_table
from orchestration.storage.retention import Position, positions


@pytest.mark.parametrize("left", [0.0, 0.5, 0.9])
def test_for_a_damaged_checkpoint_of_an_earlier_generation_all_is_kept(tmp_path: Path, left: float) -> None:
    write_deltalake(tmp_path / "events", pa.table({"n": [1]}))
    table = open_table(Location(tmp_path / "events"))
    read = f'{{"reservoirId":"{table.metadata().id}","reservoirVersion":7,"index":-1,"isStartingVersion":false}}'
    checkpoint = tmp_path / "checkpoints" / "silver.readings"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    offsets = checkpoint / "offsets" / "0"
    offsets.write_text(whole := f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1}}\n{read}')
    assert positions(Location(tmp_path), table) == [Position(7)]
    offsets.write_text(whole[: int(len(whole) * left)])
    assert positions(Location(tmp_path), table) == [Position(0)]
