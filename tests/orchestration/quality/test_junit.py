"""JUnit XML of a run: what CI shows of it, and that it is XML whatever is in a row."""

from pathlib import Path
from xml.etree import ElementTree as ET

from orchestration.quality.junit import write_junit
from orchestration.quality.outcome import Outcome
from tests.orchestration.quality import hostile
from tests.orchestration.quality.test_quality_report import run_of


def written(tmp_path: Path, *outcomes: Outcome, text: str = "Every value is finite.") -> ET.Element:
    file = tmp_path / "ci" / "quality.xml"
    write_junit(run_of(*outcomes, text=text), file)
    assert [each.name for each in file.parent.iterdir()] == ["quality.xml"]
    return ET.parse(file).getroot()


def test_each_expectation_is_a_testcase_that_passed_failed_or_was_skipped(tmp_path: Path) -> None:
    failed = Outcome(False, "3 of 10 rows", 30.0, ({"device_id": "oven", "value": "inf"},) * 9)
    root = written(tmp_path, Outcome(True, "none of 10 rows"), failed, Outcome(None, "not checked: there are no rows"))
    (suite,) = root
    assert suite.attrib == {
        "name": "silver.readings silver_readings",
        "timestamp": "2026-01-05T12:00:00",
        "id": "r1",
        "tests": "3",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
    }
    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {"tests": "3", "failures": "1", "skipped": "1"}
    passed, broken, skipped = suite
    assert list(passed) == []
    assert (broken.get("classname"), broken.get("name")) == ("silver.readings silver_readings", "Every value is finite.")
    assert broken[0].attrib == {"type": "critical", "message": "3 of 10 rows"}
    assert (broken[0].text or "").splitlines() == ["expect_column_values_to_be_between: value", *["device_id=oven, value=inf"] * 5]
    assert skipped[0].attrib == {"message": "not checked: there are no rows"}


def test_every_hostile_value_is_held_by_xml(tmp_path: Path) -> None:
    samples = tuple({"value": value, value: "1"} for value in hostile.ALL)
    for value in hostile.ALL:
        root = written(tmp_path, Outcome(False, value, 10.0, samples), Outcome(None, value), text=value)
        assert [each.tag for each in root.iter()] == ["testsuites", "testsuite", "testcase", "failure", "testcase", "skipped"]
        assert len(ET.tostring(root)) < 50_000
    assert hostile.ENTITIES in (root[0][0][0].text or "")
