"""Every mistake of mistakes.yml is told in one line: where it is, what is wrong, and the way out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("mistakes.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_mistake_is_told_on_its_line(case: dict[str, Any], mistakes_after: Callable[..., list[str]]) -> None:
    (file, change), (_, line) = case.items()
    assert mistakes_after(*((file, old, new) for old, new in change.items())) == [f"conf/{line}"]
