"""What the logs of a checkpoint say, in both of Spark's formats."""

from pathlib import Path

import pytest

from orchestration.location import Location
from orchestration.storage.checkpoints import Offsets, offsets

WHOLE = '{"batchWatermarkMs":1000,"batchTimestampMs":2000,"conf":{}}'


@pytest.mark.parametrize(
    ("version", "lines", "read"),
    [
        ("v1", ['{"reservoirVersion":2}', "-"], {"0": {"reservoirVersion": 2}}),
        (
            "v2",
            ['0:{"reservoirVersion":2}', "plant:-", 'room:{"reservoirVersion":3}'],
            {"0": {"reservoirVersion": 2}, "room": {"reservoirVersion": 3}},
        ),
    ],
)
def test_sources_are_known_by_their_names_or_their_places(
    version: str, lines: list[str], read: dict[str, dict[str, int]], tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("\n".join([version, WHOLE, *lines]))
    assert offsets(Location(tmp_path), 7) == Offsets(1000, 2000, read)
