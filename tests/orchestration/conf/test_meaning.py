"""Metrics, rules, paths and policies that contradict themselves are one line each, with the way out."""

from collections.abc import Callable

import pytest

CASES = [
    pytest.param(
        "metrics",
        "slide_seconds: 300",
        "slide_seconds: 400",
        (
            "conf/metrics.yml:30: vibration.slide_seconds is 400, which does not divide step_seconds (600); choose "
            "one of its divisors, or leave it out"
        ),
        id="slide that does not divide the step",
    ),
    pytest.param(
        "metrics",
        "slide_seconds: 300",
        "slide_seconds: 1200",
        (
            "conf/metrics.yml:30: vibration.slide_seconds is 1200, which does not divide step_seconds (600); "
            "choose one of its divisors, or leave it out"
        ),
        id="slide longer than the step",
    ),
    pytest.param(
        "metrics",
        "minimum: -60",
        "minimum: 500",
        "conf/metrics.yml:11: temperature.minimum is 500, above its maximum 400; swap them or correct one",
        id="minimum above maximum",
    ),
    pytest.param(
        "metrics",
        "      K:",
        "      degC:",
        "conf/metrics.yml:15: temperature.conversions.degC converts the metric's own unit; remove it",
        id="conversion of the own unit",
    ),
    pytest.param(
        "metrics",
        "      K:",
        '      "K ":',
        "conf/metrics.yml:15: 'K ' has a blank at an end, which metrics and units of events never have; remove it",
        id="unit with a blank",
    ),
    pytest.param(
        "metrics",
        "    unit: mm/s\n",
        "",
        "conf/metrics.yml:31: vibration.conversions has no unit to convert to; add `unit` to the metric",
        id="conversion without a unit",
    ),
    pytest.param(
        "metrics",
        "{multiply: 1000}",
        "{multiply: 0}",
        ("conf/metrics.yml:33: vibration.conversions.m/s.multiply is 0, which makes every value the same; write the factor"),
        id="conversion to nothing",
    ),
    pytest.param(
        "pipeline",
        "unknown_device: quarantine",
        "unknown_device: unassigned",
        (
            "conf/pipeline.yml:14: policy.unknown_device is 'unassigned', but groups.yml declares no group of that "
            "name; declare it or choose 'quarantine'"
        ),
        id="unassigned without the group",
    ),
    pytest.param(
        "pipeline",
        "driver_memory: 2g",
        "driver_memory: 256m",
        "conf/pipeline.yml:18: engine.driver_memory is '256m', with which Spark does not start; give it at least 512m",
        id="too little memory for Spark",
    ),
    pytest.param(
        "sources",
        'files: "*"',
        "files: a/*",
        "conf/sources.yml:9: plant.files is a glob on names, but holds a '/'; put folders into plant.path",
        id="glob with a folder",
    ),
    pytest.param(
        "pipeline",
        "lake: ./lake",
        "lake: ${TIDEMARK_NOT_SET}/lake",
        ("conf/pipeline.yml:7: lake names the variable TIDEMARK_NOT_SET, which is not set; set it, or write the path out"),
        id="variable that is not set",
    ),
    pytest.param(
        "pipeline",
        "lake: ./lake",
        "lake: ./lake$",
        "conf/pipeline.yml:7: lake holds a $ that names no variable; write ${NAME}, or $$ for a dollar sign",
        id="dollar sign without a variable",
    ),
    pytest.param(
        "pipeline",
        "lake: ./lake",
        "lake: landing/lake",
        "conf/sources.yml:8: plant.path holds the folder of the lake; give each a folder of its own",
        id="lake in a landing folder",
    ),
    pytest.param(
        "pipeline",
        "lake: ./lake",
        "lake: ./[lake]",
        "conf/pipeline.yml:7: lake has '[' in its path, below which no table can be read; choose another folder",
        id="lake where delta-rs reads nothing",
    ),
    pytest.param(
        "sources",
        "path: ./landing",
        "path: lake/in",
        "conf/sources.yml:8: plant.path lies inside the folder of the lake; give each a folder of its own",
        id="landing folder in the lake",
    ),
    pytest.param(
        "sources",
        "sources:\n",
        "sources:\n  lab: {path: landing, format: json, device: {field: d}, time: {field: t}, metrics: {power: p}}\n",
        "conf/sources.yml:9: plant.path is the folder of source lab; give each a folder of its own",
        id="two sources of one folder",
    ),
    pytest.param(
        "sources",
        "sources:\n",
        ("sources:\n  lab: {path: landing/a, format: json, device: {field: d}, time: {field: t}, metrics: {power: p}}\n"),
        "conf/sources.yml:9: plant.path holds the folder of source lab; give each a folder of its own",
        id="landing folder in another",
    ),
    pytest.param(
        "rules",
        "door_is_open_or_closed",
        "value_is_a_number",
        "conf/rules.yml:7: 'value_is_a_number' is the name of a built-in rule; choose another",
        id="rule with the name of a built-in one",
    ),
    pytest.param(
        "rules",
        "'2020-01-01 00:00:00'",
        "'2020-01-01 00:00:00",
        (
            'conf/rules.yml:14: event_time_is_after_2020.holds cannot be read: "event_time >= timestamp \'2020-01-01 00:00:00" is no '
            "expression of Spark's SQL; look for an open quote"
        ),
        id="rule with an open quote",
    ),
    pytest.param(
        "rules",
        "(0, 1)",
        "(0, 1",
        (
            "conf/rules.yml:8: door_is_open_or_closed.holds cannot be read: \"metric <> 'door_open' or value in (0, 1\" is no "
            "expression of Spark's SQL; look at line 1, character 39 of it"
        ),
        id="rule with an open parenthesis",
    ),
    pytest.param(
        "rules",
        "(0, 1)",
        "0, 1)",
        (
            "conf/rules.yml:8: door_is_open_or_closed.holds cannot be read: \"metric <> 'door_open' or value in 0, 1)\" is no "
            "expression of Spark's SQL; look at line 1, character 36 of it"
        ),
        id="rule with a closed parenthesis",
    ),
    pytest.param(
        "rules",
        "(0, 1)",
        "(0, 1) -- both",
        (
            "conf/rules.yml:8: door_is_open_or_closed.holds contains a comment or a semicolon; "
            "write a comment behind a # in the YAML instead"
        ),
        id="rule with a comment",
    ),
    pytest.param(
        "rules",
        "metric <> 'door_open' or value in (0, 1)",
        "''",
        "conf/rules.yml:8: door_is_open_or_closed.holds is ''; write a SQL predicate",
        id="rule that is empty",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "line"), CASES)
def test_a_contradiction_is_told_on_its_line(file: str, old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]) -> None:
    assert mistakes_after((file, old, new)) == [line]
