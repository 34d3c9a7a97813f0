"""Suites of a conf: they add to the packaged ones or replace them, and every mistake in them is told with its line and the way out."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.errors import ConfError
from orchestration.quality.suites import packaged, suites, suites_of_conf
from tests.commands import Tidemark
from tests.orchestration.conf.conftest import folder  # noqa: F401

ROOT = Path(__file__).parents[3]
BETWEEN = "expect_column_values_to_be_between"
SOUND = f"""table: silver.readings
sample: [device_id]
columns:
  temperature: case when metric = 'temperature' then value end
expectations:
  - {{type: {BETWEEN}, kwargs: {{column: temperature, min_value: 0}}, severity: critical, description: A.}}
"""


@pytest.fixture
def conf(folder: Path) -> Path:  # noqa: F811
    """The default conf, with a folder for suites."""
    (folder / "expectations").mkdir()
    return folder


def write(conf: Path, text: str, name: str = "mine.yml") -> None:
    (conf / "expectations" / name).write_text(text)


def mistakes_of(conf: Path) -> list[str]:
    with pytest.raises(ConfError) as error:
        suites_of_conf(load(conf), conf)
    return str(error.value).splitlines()


def test_a_suite_of_the_conf_adds_to_the_packaged_ones_and_replaces_the_one_of_its_name(conf: Path) -> None:
    write(conf, SOUND)
    write(conf, SOUND, "silver_readings.yml")
    found = {suite.name: suite for suite in suites(load(conf))}
    assert found.keys() == {*(suite.name for suite in packaged()), "mine"}
    assert len(found["silver_readings"].expectations) == 1


def test_a_running_process_keeps_the_suites_that_it_began_with(conf: Path) -> None:
    write(conf, SOUND)
    before = suites(load(conf))
    write(conf, SOUND.replace("min_value", "min_valu"))
    assert suites(load(conf)) == before


def test_the_packaged_suites_pass_the_checks_of_a_suite_of_a_conf(conf: Path) -> None:
    for file in (ROOT / "expectations").glob("*.yml"):
        write(conf, file.read_text(), file.name)
    assert len(suites_of_conf(load(conf), conf)) == len(packaged()) > 5


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("table: s", "tabel: s", "1: tabel is not a setting; did you mean 'table'?"),
        ("silver.readings", "silver.reading", "1: table is 'silver.reading', which no table is called; did you mean 'silver.readings'?"),
        (
            "silver.readings",
            "gold.*_agregates",
            "1: table is 'gold.*_agregates', which no table is called; did you mean 'gold.*_aggregates'?",
        ),
        (
            "sample:",
            "together_with: [silver.lat]\nsample:",
            "2: together_with names 'silver.lat', which no table is called; did you mean 'silver.late'?",
        ),
        ("[device_id]", "[device]", "2: sample.1 names 'device', which silver.readings does not have; did you mean 'device_id'?"),
        (
            "then value",
            "then valu",
            "4: columns.temperature uses 'valu', which is not a column (column 39); did you mean 'value'?",
        ),
        (
            "then value",
            "then",
            "4: columns.temperature cannot be read (column 41): something is missing there, or does not belong there; ",
        ),
        (
            "columns:",
            "columns_in_sql: {mean: (select avg(value))}\ncolumns:",
            "3: columns_in_sql.mean is no expression, or holds a subquery; write one",
        ),
        (
            "columns:",
            "columns_in_sql: {mean: avg(valu) over ()}\ncolumns:",
            "3: columns_in_sql.mean uses 'valu', which is not a column; did you mean 'value'?",
        ),
        ("  temperature:", "  unit: unit\n  temperature:", "4: columns.unit has the name of another column; choose another"),
        (
            "values_to_be_bet",
            "value_to_be_bet",
            f"6: expectations.1.type is 'expect_column_value_to_be_between', which is not an expectation; did you mean '{BETWEEN}'?",
        ),
        (
            BETWEEN,
            "expect_column_values_to_be_of_type",
            "6: expectations.1.type is 'expect_column_values_to_be_of_type', which gives no right answer here; the declared",
        ),
        (
            "column: temperature",
            "column: temprature",
            "6: expectations.1.kwargs.column names 'temprature', which silver.readings does not have; did you mean 'temperature'?",
        ),
        ("min_value", "min_valu", f"6: expectations.1.kwargs.min_valu is no argument of {BETWEEN}; did you mean 'min_value'?"),
        (
            "min_value: 0",
            "min_value: 0, mostly: 1.5",
            f"6: expectations.1.kwargs.mostly is 1.5, which {BETWEEN} does not take (ensure this value is less",
        ),
        (
            "min_value: 0",
            "min_value: 0, row_condition: a",
            f"6: expectations.1.kwargs.row_condition is no argument of {BETWEEN}; rows are chosen in `columns`",
        ),
        (
            ", min_value: 0",
            "",
            f"6: expectations.1.kwargs cannot be used by {BETWEEN}: min_value and max_value cannot both be None; correct it",
        ),
        ("column: temperature, ", "", f"6: expectations.1.kwargs lacks column, which {BETWEEN} needs; add it"),
        (
            "min_value: 0",
            "min_value: {$PARAMETER: lateness}",
            "6: expectations.1.kwargs.min_value names 'lateness', which is no $PARAMETER; did you mean 'lateness_seconds'?",
        ),
        ("min_value: 0", "min_value: {$PARAMETER: sources}", "6: expectations.1.kwargs.min_value is ['plant'], which"),
        (
            "column: temperature",
            "column: device_id",
            "6: expectations.1.kwargs cannot be computed: ColumnValuesBetween metrics cannot be computed on column of type VARCHAR",
        ),
        ("severity: critical", "severity: fatal", "6: expectations.1.severity is 'fatal'; choose one of critical, warning, info"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_way_out(conf: Path, old: str, new: str, mistake: str) -> None:
    write(conf, SOUND.replace(old, new, 1))
    (line,) = mistakes_of(conf)
    assert line.startswith(f"conf/expectations/mine.yml:{mistake}")
    assert ";" in line


@pytest.mark.parametrize(
    ("kwargs", "mistake"),
    [
        ("column: value, max_seconds: 60", ""),
        ("column: value, max_second: 60", "kwargs.max_second is no argument of tidemark_rows_to_be_fresh; did you mean 'max_seconds'?"),
        ("column: value, max_seconds: soon", "kwargs.max_seconds is 'soon', which tidemark_rows_to_be_fresh does not take; write a number"),
        ("column: value", "kwargs lacks max_seconds, which tidemark_rows_to_be_fresh needs; add it"),
        ("column: valu, max_seconds: 60", "kwargs.column names 'valu', which silver.readings does not have; did you mean 'value'?"),
    ],
)
def test_measures_are_checked_too(conf: Path, kwargs: str, mistake: str) -> None:
    write(conf, SOUND.replace(BETWEEN, "tidemark_rows_to_be_fresh").replace("column: temperature, min_value: 0", kwargs))
    if not mistake:
        assert len(suites_of_conf(load(conf), conf)) == 1
    else:
        assert f"conf/expectations/mine.yml:6: expectations.1.{mistake}" in mistakes_of(conf)


def test_a_measure_about_another_table_is_refused(conf: Path) -> None:
    write(conf, SOUND.replace(BETWEEN, "tidemark_windows_to_be_new").replace("column: temperature, min_value: 0", "max_seconds: 60"))
    assert "which is about gold.*_aggregates and not silver.readings; move it to a suite of gold.*_aggregates" in mistakes_of(conf)[0]


def test_mistakes_of_all_suites_are_told_at_once_and_end_check_and_quality_with_2(conf: Path, tidemark: Tidemark) -> None:
    write(conf, SOUND.replace("min_value", "min_valu"))
    write(conf, SOUND.replace("device_id", "device"), "other.yml")
    write(conf, SOUND, "forgotten.yaml")
    lines = mistakes_of(conf)
    assert [line.split(":")[0] for line in lines] == [f"conf/expectations/{name}" for name in ("forgotten.yaml", "mine.yml", "other.yml")]
    said = tidemark("check")
    assert (said.code, said.out.splitlines()) == (2, lines)
    assert tidemark("quality").code == 2


def test_without_suites_of_the_conf_check_does_not_import_great_expectations(conf: Path) -> None:
    code = "import sys; from orchestration.cli.app import exit_code; sys.exit(exit_code(['check']) or 'great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": str(ROOT)}).returncode == 0
