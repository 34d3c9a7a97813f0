"""What a command line of dbt needs from Tidemark."""

from dataclasses import replace

import pytest

from orchestration.serving.dbt.invocation import CommandLine


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("build", "build"),
        ("--quiet build --select hourly", "build"),
        ("--log-level debug run -s test", "run"),  # debug is a command too, but here it is a value
        ("--log-level=debug test", "test"),
        ("docs generate", "docs"),
        ("bulid", None),
        ("", None),
    ],
)
def test_the_command_is_the_first_word_that_is_no_option_and_no_value_of_one(line: str, command: str | None) -> None:
    assert CommandLine.parse(line.split()).command == command


@pytest.mark.parametrize(
    ("line", "writes", "is_offline", "builds_views"),
    [
        ("build", True, False, True),
        ("run --select hourly", True, False, False),
        ("run --exclude=hourly", True, False, False),
        ("snapshot", True, False, False),
        ("seed", True, False, False),
        ("retry", True, False, False),
        ("run-operation some_macro", True, False, False),
        ("test", False, False, False),
        ("source freshness", False, False, False),
        ("docs generate", False, False, False),
        ("docs serve", False, True, False),
        ("ls --output json", False, True, False),
        ("deps", False, True, False),
        ("bulid", False, True, False),
    ],
)
def test_only_what_may_write_marts_is_guarded_and_what_needs_no_table_starts_no_spark(
    line: str, writes: bool, is_offline: bool, builds_views: bool
) -> None:
    command_line = CommandLine.parse(line.split())
    assert (command_line.writes, command_line.is_offline, command_line.builds_views) == (writes, is_offline, builds_views)


def test_what_decides_what_the_project_is_goes_to_every_command() -> None:
    assert CommandLine.parse(["build", "--vars", "{a: 1}", "-s", "x", "--target=lake"]).parsing_options == [
        "--vars",
        "{a: 1}",
        "--target=lake",
    ]


@pytest.mark.parametrize(
    ("line", "selects_own"),
    [
        ("build", True),
        ("--quiet test --fail-fast", True),
        ("docs generate", True),
        ("build --exclude hot --resource-type model", True),
        ("build --select tag:hourly", False),
        ("test -s=hot", False),
        ("run --selector nightly", False),
        ("compile --inline=select", False),
        ("retry", False),  # it repeats what the command before has selected
        ("source freshness", False),
    ],
)
def test_a_line_that_names_nothing_is_about_the_own_project_and_what_it_needs(line: str, selects_own: bool) -> None:
    command_line = CommandLine.parse(line.split())
    assert (command_line.selection, bool(replace(command_line, is_own=True).selection)) == ((), selects_own)
