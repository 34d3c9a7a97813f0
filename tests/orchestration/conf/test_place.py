"""What SQL needs of a conf is read without the rest of it, and is the same."""

import shutil
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.place import place_of

CONF = Path(__file__).parents[3] / "conf"


def test_lake_and_groups_are_those_of_the_whole_conf() -> None:
    place, conf = place_of(CONF), load(CONF)
    assert place is not None
    assert (place.lake, place.stream_of) == (conf.lake, conf.stream_of)


@pytest.mark.parametrize("text", ["", "lake: 1", "lake: [", "lake: $NOWHERE/lake", "other: x"])
def test_what_cannot_be_read_is_left_to_the_whole_conf(text: str, tmp_path: Path) -> None:
    shutil.copytree(CONF, tmp_path / "conf")
    (tmp_path / "conf" / "pipeline.yml").write_text(text)
    assert place_of(tmp_path / "conf") is None
    assert place_of(tmp_path / "nowhere") is None
