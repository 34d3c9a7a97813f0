"""What the logs of a checkpoint say, in both of Spark's formats."""

import json
from pathlib import Path

import pytest

from orchestration.location import Location
from orchestration.storage.checkpoints import NewFile, Offsets, files, knows_sources_by_name, offsets

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
    assert knows_sources_by_name(Location(tmp_path)) is (version == "v2")


def test_files_of_a_batch_are_those_logged_since_the_batch_before_also_in_a_compacted_log(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for source in ("plant", "room"):
        (tmp_path / "sources" / source).mkdir(parents=True)
    entries = [json.dumps({"path": f"file:///{n}.json", "timestamp": n * 1000, "batchId": n}) for n in range(3)]
    (tmp_path / "sources/plant/0").write_text(f"v1\n{entries[0]}")
    (tmp_path / "sources/plant/1").write_text(f"v1\n{entries[1]}")
    (tmp_path / "sources/plant/2.compact").write_text("\n".join(["v1", *entries]))
    (tmp_path / "sources/room/0").write_text(f"v1\n{entries[0]}")
    for batch, lines in enumerate((['plant:{"logOffset":0}', "room:-"], ['plant:{"logOffset":2}', 'room:{"logOffset":0}'])):
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(["v2", WHOLE, *lines]))
    assert files(Location(tmp_path), 0) == [NewFile("plant", "file:///0.json", 0)]
    assert files(Location(tmp_path), 1) == [
        NewFile("plant", "file:///1.json", 1000),
        NewFile("plant", "file:///2.json", 2000),
        NewFile("room", "file:///0.json", 0),
    ]
