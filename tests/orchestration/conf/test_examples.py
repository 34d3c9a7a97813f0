"""Examples that `tidemark init --example` writes are confs without mistakes, each with what it is an example of."""

from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.starter import examples, write_starter


@pytest.mark.parametrize("name", [*examples()])
def test_an_example_is_a_conf_without_mistakes_and_warnings(name: str, tmp_path: Path) -> None:
    write_starter(tmp_path / "conf", example=name)
    conf = load(tmp_path / "conf")
    assert conf.warnings == ()
    assert bool(conf.alerts) == (name == "alerts") != bool(conf.flows)
    assert f"schema/{'alerts' if name == 'alerts' else 'flows'}.json" in (tmp_path / "conf" / f"{examples()[name][0]}.yml").read_text()


def test_there_is_an_example_of_each_kind_of_question() -> None:
    assert [*examples()] == ["alerts", "joins", "sessions", "state"]
