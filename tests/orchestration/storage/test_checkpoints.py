"""What the logs of a checkpoint say, in both of Spark's formats."""

from datetime import timedelta
from pathlib import Path

import pytest

from orchestration.location import Location
from orchestration.storage.checkpoints import DamagedCheckpointError, Offsets, last_batch, offsets
from orchestration.utc import EPOCH

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
    assert offsets(Location(tmp_path), 7) == Offsets(EPOCH + timedelta(seconds=2), 1000, read)


@pytest.mark.parametrize("text", ["", "v1", "v1\n{", "v1\n[]\n"])
def test_a_damaged_file_says_which_it_is(text: str, tmp_path: Path) -> None:
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "7").write_text(text)
    for read, log in ((lambda: offsets(Location(tmp_path), 7), "offsets"), (lambda: last_batch(Location(tmp_path)), "commits")):
        with pytest.raises(DamagedCheckpointError, match=f"{tmp_path}/{log}/7 is damaged: restore"):
            read()
