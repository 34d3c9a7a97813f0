"""What `tidemark check` says of mistakes in flows.yml: where, what, and what to do."""

from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.starter import write_starter
from orchestration.errors import ConfError


def mistake(folder: Path, flow: str) -> str:
    write_starter(folder / "conf")
    (folder / "conf" / "flows.yml").write_text(f"flows:\n  f:\n    {flow}\n")
    with pytest.raises(ConfError) as refused:
        load(folder / "conf")
    return str(refused.value).rpartition("flows.yml:")[2]


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (
            "sessions: {metric: temprature, gap_seconds: 60}",
            "names 'temprature', which metrics.yml does not declare; did you mean 'temperature'?",
        ),
        ("{group: kitchn, sessions: {gap_seconds: 60}}", "names 'kitchn', which groups.yml does not declare; did you mean 'kitchen'?"),
        ("{sessions: {gap_seconds: 60}, silence: {after_seconds: 60}}", "sets sessions and silence; keep one of them"),
        ("{group: kitchen}", "sets none of sessions, join, states, silence, distance, duty_cycle, counter; set one"),
        (
            "join: {left: power, right: power, from_seconds: 9, until_seconds: 3}",
            "is 9, behind until_seconds (3): no reading is in between; swap them",
        ),
        (
            "join: {left: power, right: power, until_seconds: 3, left_when: valu > 3}",
            "uses 'valu', which is not a column (column 1); did you mean 'value'?",
        ),
        (
            "states: {metric: power, initial: idle, transitions: [{from: ilde, to: on, when: value > 1}]}",
            "is 'ilde', a state that nothing leads to; did you mean 'idle'?",
        ),
        ("states: {metric: power, initial: a, transitions: [{from: a, to: b}]}", "sets none of when, after_seconds; set one"),
        ("states: {metric: power, initial: a, transitions: [{from: a, to: a, after_seconds: 9}]}", "is the state itself"),
        ("counter: {metric: power, every_seconds: 60, wraps_at: 0}", "wraps_at is 0"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_way_out(flow: str, said: str, tmp_path: Path) -> None:
    assert said in mistake(tmp_path, flow)


@pytest.mark.parametrize("name", ["kitchen_aggregates", "sessions", "alerts", "live", "oven_history"])
def test_a_flow_may_not_have_the_name_of_another_table(name: str, tmp_path: Path) -> None:
    write_starter(tmp_path / "conf")
    (tmp_path / "conf" / "flows.yml").write_text(f"flows:\n  {name}:\n    sessions: {{gap_seconds: 60}}\n")
    with pytest.raises(ConfError, match="the name of another table of gold; choose another"):
        load(tmp_path / "conf")
