"""The settings of a conf as texts: they make the same conf again, hold no secret, and know what makes no difference."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.texts import digest_of, texts_of, with_settings
from tests.orchestration.conf.conftest import changed

ROOT = Path(__file__).parents[3]
DECIDE = ("policy", "sources", "metrics", "devices", "groups", "rules", "flows", "alerts")
BLOCK = re.compile(r"```yaml\n((?:flows|alerts):\n.*?)```", re.DOTALL)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def same_again(conf: Conf) -> None:
    nothing = replace(conf, metrics={}, devices={}, groups={}, rules=(), flows={}, alerts={})
    again = with_settings(nothing, texts_of(conf))
    assert {name: getattr(again, name) for name in DECIDE} == {name: getattr(conf, name) for name in DECIDE}
    assert texts_of(again) == texts_of(conf)


def test_the_texts_of_every_source_shape_make_the_same_conf_again() -> None:
    same_again(load(ROOT / "tests" / "cases" / "conf"))
    same_again(load(ROOT / "conf"))


@pytest.mark.parametrize("page", ["gold/flows/README.md", "gold/alerts/README.md"])
def test_the_texts_of_every_example_of_a_flow_and_an_alert_make_the_same_conf_again(page: str, folder: Path) -> None:
    examples = blocks(page)
    assert len(examples) > 2
    before = {file: file.read_text() for file in folder.glob("*.yml")}
    for example in examples:
        for file, text in before.items():
            file.write_text(text)
        for document in example.split("---\n"):
            noun, _, entries = document.partition(":\n")
            file = folder / f"{noun}.yml"
            file.write_text(before[file] + entries if noun == "metrics" else document)
        same_again(load(folder))


def test_a_source_that_the_conf_no_longer_has_is_read_as_it_was_and_brings_nothing(folder: Path) -> None:
    conf = load(folder)
    plant = with_settings(replace(conf, sources={}), texts_of(conf)).sources["plant"]
    assert (plant.payload_format, plant.is_paused) == (conf.sources["plant"].payload_format, True)


def test_a_source_keeps_its_bounds_of_then(folder: Path) -> None:
    now = load(folder)
    changed(folder, "sources", "    format: json", "    format: json\n    lateness_seconds: 60\n    ahead_seconds: 7200")
    then = load(folder)
    assert with_settings(now, texts_of(then)).bounds == then.bounds != now.bounds


def test_a_comment_a_default_that_is_written_out_and_another_order_make_no_difference(folder: Path) -> None:
    before = digest_of(texts_of(load(folder)))
    changed(folder, "sources", "    format: json", "    # read line by line\n    format: json\n    paused: false")
    changed(folder, "metrics", "metrics:\n", "metrics:\n  zinc: {aggregation: sum, step_seconds: 60}\n")
    with_zinc = digest_of(texts_of(load(folder)))
    assert with_zinc != before
    text = (folder / "metrics.yml").read_text()
    line = "  zinc: {aggregation: sum, step_seconds: 60}\n"
    (folder / "metrics.yml").write_text(text.replace(line, "") + line)
    assert digest_of(texts_of(load(folder))) == with_zinc
    (folder / "metrics.yml").write_text(text.replace(line, ""))
    assert digest_of(texts_of(load(folder))) == before


def test_of_what_no_message_shows_the_texts_have_a_digest_and_references_as_they_are(folder: Path) -> None:
    address = "https://hooks.example.com/services/T000/canary"
    (folder / "alerts.yml").write_text(
        f"channels:\n  night: {{webhook: {{url: '{address}'}}}}\n  day: {{webhook: {{url: '${{env:DAY}}'}}}}\n"
    )
    texts = texts_of(load(folder))
    assert "canary" not in json.dumps(texts)
    channels = json.loads(texts["pipeline"])["channels"]
    assert re.fullmatch("hidden, digest [0-9a-f]{8}", channels["night"]["webhook"]["url"])
    assert channels["day"]["webhook"]["url"] == "${env:DAY}"
