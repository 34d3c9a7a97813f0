"""The first run of an installation, which `make install` makes before any test."""

from orchestration.engine.java import archive


def test_the_installation_has_left_its_classes_for_later_starts() -> None:
    """Without them everything works, and starts slower: nothing else would tell that they could not be made."""
    assert archive().exists(), "`make install` made no class archive: .venv/first-run.log says why"
