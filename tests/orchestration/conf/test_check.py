"""`tidemark check`: all mistakes of all files in one pass, exit codes, and no Spark."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.cli.app import exit_code
from tests.orchestration.conf.conftest import changed
from tests.orchestration.conf.test_meaning import CASES

ROOT = Path(__file__).parents[3]

PLANTED = [
    *("unknown group of a device", "device with a blank"),
    *("unknown key", "feature of an unknown device"),
    *("not one of the choices", "bound of a setting without a default"),
    *("unassigned without the group", "memory with a blank", "unknown table", "unknown channel"),
    *("rule with an open parenthesis", "rule with an open quote"),
    *("field path with an empty part", "unknown time zone", "header of JSON"),
]
"""Names of mistakes.yml, in the order in which they are told."""


def test_fifteen_planted_mistakes_are_found_in_one_pass(
    folder: Path, mistakes_after: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [[*CASES[name].items()] for name in PLANTED]
    mistakes = mistakes_after(*((file, old, new) for (file, change), _ in cases for old, new in change.items()))
    assert mistakes == [f"conf/{line}" for _, (_, line) in cases]
    assert len(mistakes) == 15
    assert all(";" in mistake for mistake in mistakes)  # the way out
    assert exit_code(["check"]) == 2
    assert capsys.readouterr().out.splitlines() == mistakes


def test_a_sound_conf_is_summed_up_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--conf", "conf", "check"]) == 0
    assert capsys.readouterr().out == (
        "conf: no mistakes; pipeline tidemark with 1 source, 5 metrics, 20 devices, 3 groups in 2 streams, 18 rules (3 of your own)\n"
    )


def test_what_is_probably_wrong_is_told_on_its_line_and_the_conf_can_be_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(folder, "sources", "format: iso", "format: 'yyyy-mm-dd HH:MM:ss'")
    assert exit_code(["check"]) == 0
    warning, summary = capsys.readouterr().out.splitlines()
    assert warning == (
        "conf/sources.yml:13: warning: plant.time.format 'yyyy-mm-dd HH:MM:ss' has minutes (m) that stand beside no hour; "
        "MM is the month, mm are minutes"
    )
    assert summary.startswith("conf: no mistakes")
    changed(folder, "sources", "time_zone: UTC", "time_zone: Mars")
    assert exit_code(["check"]) == 2
    assert [": warning: " in line for line in capsys.readouterr().out.splitlines()] == [True, False]


def test_control_characters_of_a_conf_do_not_reach_the_terminal(mistakes_after: Callable[..., list[str]]) -> None:
    (line,) = mistakes_after(("devices", "zone: hall-1", '"fi\\e[31mld": hall-1'))
    assert line.isprintable()
    assert "fi\\x1b[31mld" in line


@pytest.mark.parametrize("arguments", [["check"], ["check", "--help"], ["init", "--help"]])
def test_neither_spark_nor_pandas_is_imported(arguments: list[str]) -> None:
    heavy = "{'pyspark', 'pandas', 'great_expectations', 'matplotlib'} & set(sys.modules)"
    code = f"import sys; from orchestration.cli.app import exit_code; sys.exit(exit_code({arguments!r}) or len({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("other", ["", "  a: {groups: [twice]}\n"])
def test_every_mistake_of_a_feature_that_reads_two_ways_names_both(
    folder: Path, other: str, mistakes_after: Callable[..., list[str]]
) -> None:
    """Also where only one of the devices is known: gold goes by the names of metrics."""
    lines = mistakes_after(
        ("metrics", "metrics:\n", "metrics:\n  c: {aggregation: sum, step_seconds: 60}\n  b.c: {aggregation: sum, step_seconds: 60}\n"),
        ("devices", "devices:\n", "devices:\n  a.b: {groups: [twice]}\n" + other),
        ("groups", "groups:\n", "groups:\n  twice: {metrics: [c, b.c], vector: {entity: group, features: [a.b.c]}}\n"),
    )
    assert lines == [
        "conf/groups.yml:6: twice.vector.features names 'a.b.c', which can be read as b.c of a and as c of a.b; rename one of them"
    ]


def test_an_object_that_is_wrong_hides_no_mistake_of_another_and_makes_none(mistakes_after: Callable[..., list[str]]) -> None:
    lines = mistakes_after(
        ("pipeline", "lake: ./lake", "lake: 5"),
        ("pipeline", "# driver_memory: 4g", "driver_memory: 1m"),
        ("pipeline", "sinks: {}", "sinks: {a: {}, b: {table: silver.reading, python: 'a:b'}}"),
        ("sources", "sources:\n", "sources:\n  lab: {path: lake}\n"),
        ("sources", "    metric: {field: metric}\n", "    metric: {constant: powr}\n"),
        ("metrics", "  power:\n", "  power:\n    words: 5\n"),
        ("devices", "oven-01: {groups", "oven-01: {groop"),
        ("devices", "devices:\n", "devices:\n  broken: 5\n  lost: {groups: [kichen]}\n"),
    )
    assert [line.split("; ")[0] for line in lines] == [
        "conf/devices.yml:6: broken is a number, but must be a mapping",
        "conf/devices.yml:7: lost.groups names 'kichen', which groups.yml does not declare",
        "conf/devices.yml:8: oven-01.groop is not a setting",
        "conf/metrics.yml:36: power.words is a number, but must be a mapping",
        "conf/pipeline.yml:7: lake is a number, but must be a text",
        "conf/pipeline.yml:18: engine.driver_memory is '1m', with which Spark does not start",
        "conf/pipeline.yml:37: a.table is missing",
        "conf/pipeline.yml:37: b.table is 'silver.reading', which cannot be sent",
        "conf/sources.yml:5: lab.device is missing",
        "conf/sources.yml:5: lab.format is missing",
        "conf/sources.yml:5: lab.time is missing",
        "conf/sources.yml:15: plant.metric names 'powr', which metrics.yml does not declare",
    ]


def test_a_setting_of_an_aggregation_type_is_asked_of_it_and_refused_of_others(mistakes_after: Callable[..., list[str]]) -> None:
    metrics = {
        "a": "aggregation: quantile",
        "b": "aggregation: quantile, quantile: 95",
        "c": "aggregation: quantile, quantile: -0.1",
        "d": "aggregation: max, quantile: 0.5",
        "e": "aggregation: quantile, quantile: 0.5, counter: {wraps_at: 5}",
        "f": "aggregation: counter_increase, counter: {glitch_share: 2}",
        "g": "aggregation: counter_increase, counter: {wraps_at: 0}",
        "h": "aggregation: time_weigthed_average",
        "i": "aggregation: counter_increase",
        "j": "aggregation: quantile, quantile: 1",
        "k": "aggregation: average, max_hold_seconds: 60",
    }
    added = "".join(f"  {name}: {{step_seconds: 60, {of}}}\n" for name, of in metrics.items())
    assert [line.partition(": ")[2] for line in mistakes_after(("metrics", "metrics:\n", f"metrics:\n{added}"))] == [
        "a.quantile is missing, and says which quantile to take; write for example 0.95",
        "b.quantile is 95; it must be at most 1",
        "c.quantile is -0.1; it must be at least 0",
        "d.quantile is only for the aggregation quantile, but the metric has max; remove it, or choose quantile",
        "e.counter is only for the aggregation counter_increase, but the metric has quantile; remove it, or choose counter_increase",
        "f.counter.glitch_share is 2; it must be at most 0.5",
        "g.counter.wraps_at is 0; it must be at least 1",
        "h.aggregation is 'time_weigthed_average'; did you mean 'time_weighted_average'?",
        "k.max_hold_seconds is only for the aggregation time_weighted_average, but the metric has average; remove it, or choose"
        " time_weighted_average",
    ]
