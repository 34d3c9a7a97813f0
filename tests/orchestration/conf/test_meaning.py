"""What the files of a conf cannot mean is told in one line: where it is, what is wrong, and the way out. What they can mean is kept."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from orchestration.conf.load import load
from orchestration.conf.model import GateMode, Quality, Reference
from orchestration.quality.store import kind_of
from silver.rules import READING
from silver.schema import READINGS
from tests.orchestration.conf.conftest import changed, mistakes_of

CASES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("mistakes.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_mistake_is_told_on_its_line(case: dict[str, Any], mistakes_after: Callable[..., list[str]]) -> None:
    (file, change), (_, line) = case.items()
    assert mistakes_after(*((file, old, new) for old, new in change.items())) == [f"conf/{line}"]


def test_by_default_nothing_is_held_and_nobody_told(folder: Path) -> None:
    assert load(folder).quality == Quality()


def test_what_is_set_is_kept(folder: Path) -> None:
    (folder / "alerts.yml").write_text('channels: {pager: {webhook: {url: "https://alerts.example/x"}}}\n')
    changed(folder, "pipeline", "gates: {}", "gates: {silver.readings: hold, bronze.events: off}")
    changed(folder, "pipeline", "channels: []", "channels: [pager]")
    changed(folder, "pipeline", "# reference", "reference")
    quality = load(folder).quality
    assert quality.gates == {"silver.readings": GateMode.HOLD, "bronze.events": GateMode.OFF}
    assert quality.channels == ("pager",)
    assert quality.reference == Reference(datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC))


RULE = "metric <> 'door_open' or value in (0, 1)"
REFUSED = {
    "valu >= 0": "uses 'valu', which is not a column (column 1); did you mean 'value'?",
    "'a' in grups": "uses 'grups', which is not a column (column 8); did you mean 'groups'?",
    "data.value > 0": "uses 'data.value', which is not a column (column 1); there are device_id, ",
    "upper(zone)": "is neither true nor false, but a text; ",
}
TAKEN = (
    *("VALUE > 1 and metric in ('a', 'b')", "event_time >= timestamp '2020-01-01 00:00:00'", "true", "'kitchen' in groups"),
    *("date_part('hour', event_time) between 6 and 20", "attributes['quality'] = 'true'", "try_cast(zone as double) > 3"),
)


@pytest.mark.parametrize("predicate", REFUSED)
def test_a_rule_that_cannot_be_computed_is_named_with_file_and_line(
    predicate: str, folder: Path, mistakes_after: Callable[..., list[str]]
) -> None:
    (mistake,) = mistakes_after(("rules", RULE, f'"{predicate}"'))
    assert mistake.startswith(f"conf/rules.yml:8: door_is_open_or_closed.holds {REFUSED[predicate]}")


def test_all_other_rules_are_taken(folder: Path) -> None:
    rules = "\n".join(f'  r{n}: {{holds: "{predicate}"}}' for n, predicate in enumerate(TAKEN))
    (folder / "rules.yml").write_text(f"rules:\n{rules}\n")
    assert [rule.holds for rule in load(folder).rules] == [*TAKEN]


def test_rules_may_ask_for_each_column_of_a_reading_by_its_type() -> None:
    with duckdb.connect() as store:
        declared = store.from_arrow(READINGS.empty_table())
        assert {name: kind_of(str(kind)) for name, kind in zip(declared.columns, declared.types, strict=True)} == READING


@pytest.mark.parametrize(
    ("predicate", "is_warned"),
    [
        ("attributes['quality'] = 'true'", True),
        ("source <> 'plant' or attributes['quality'] = 'true'", False),
        ("coalesce(attributes['quality'], 'true') = 'true'", False),
        ("attributes['quality'] is null or attributes['quality'] = 'true'", False),
    ],
)
def test_a_rule_that_asks_for_what_a_source_does_not_have_is_a_warning(predicate: str, is_warned: bool, folder: Path) -> None:
    (folder / "rules.yml").write_text(f'rules:\n  good: {{holds: "{predicate}"}}\n')
    expected = (
        "rules.yml:2: warning: good.holds uses attributes['quality'], which source plant does not have: all of its measurements would"
        " be quarantined; begin it with: source <> 'plant' or ..., or declare the attribute of the source"
    )
    assert [warning.partition("/")[2] or warning for warning in load(folder).warnings if "quality" in warning] == [expected] * is_warned


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
            "join: {left: power, right: power, until_seconds: 3, key: request_id}",
            "is 'request_id', an attribute that no source and no reference has; declare it in `attributes` of a source or reference",
        ),
        ("sessions: {gap_seconds: 60, when: valu = 1}", "uses 'valu', which is not a column (column 1); did you mean 'value'?"),
        (
            "states: {metric: power, initial: idle, transitions: [{from: ilde, to: on, when: value > 1}]}",
            "is 'ilde', a state that nothing leads to; did you mean 'idle'?",
        ),
        ("states: {metric: power, initial: a, transitions: [{from: a, to: b}]}", "sets none of when, after_seconds; set one"),
        ("states: {metric: power, initial: a, transitions: [{from: a, to: a, after_seconds: 9}]}", "is the state itself"),
        ("counter: {metric: power, every_seconds: 60, wraps_at: 0}", "wraps_at is 0"),
    ],
)
def test_a_mistake_of_a_flow_is_named_with_a_way_out(flow: str, said: str, folder: Path) -> None:
    (folder / "flows.yml").write_text(f"flows:\n  f:\n    {flow}\n")
    assert [said in line for line in mistakes_of(folder)] == [True]


@pytest.mark.parametrize("name", ["kitchen_aggregates", "sessions", "alerts", "live", "oven_history"])
def test_a_flow_may_not_have_the_name_of_another_table(name: str, folder: Path) -> None:
    (folder / "flows.yml").write_text(f"flows:\n  {name}:\n    sessions: {{gap_seconds: 60}}\n")
    (line,) = mistakes_of(folder)
    assert "the name of another table of gold; choose another" in line
