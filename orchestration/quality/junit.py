"""A run as JUnit XML: a testsuite for each table and suite, a testcase for each expectation."""

from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

from orchestration.quality.outcome import Result, Run, TableResult
from orchestration.quality.report import printable, replace_by

SAMPLES = 5
# XML 1.0 cannot hold these two, not even escaped; `printable` leaves them.
NEVER_IN_XML = str.maketrans({"\ufffe": r"\ufffe", "\uffff": r"\uffff"})


def write_junit(run: Run, file: Path) -> None:
    replace_by(file, ET.tostring(document(run), encoding="utf-8", xml_declaration=True))


def document(run: Run) -> ET.Element:
    """Every value is shortened, and characters that XML cannot hold become backslash escapes."""
    root = ET.Element("testsuites", {"name": xml_text(f"data quality of {run.pipeline}")})
    for table in run.tables:
        of_suites = groupby(table.results, key=lambda result: result.suite)
        root.extend(_testsuite(run, table, suite, list(results)) for suite, results in of_suites)
    for count in ("tests", "failures", "skipped"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    return root


def xml_text(text: object) -> str:
    """The value as text that XML can hold."""
    return printable(text).translate(NEVER_IN_XML)


def _testsuite(run: Run, table: TableResult, suite: str, results: list[Result]) -> ET.Element:
    name = xml_text(f"{table.table} {suite}")
    element = ET.Element("testsuite", {"name": name, "timestamp": run.run_at.strftime("%Y-%m-%dT%H:%M:%S"), "id": run.run_id})
    element.extend(_testcase(name, result) for result in results)
    counts = {
        "tests": len(results),
        "failures": len(element.findall("*/failure")),
        "skipped": len(element.findall("*/skipped")),
        "errors": 0,
    }
    element.attrib.update({count: str(n) for count, n in counts.items()})
    return element


def _testcase(classname: str, result: Result) -> ET.Element:
    expectation, outcome = result.expectation, result.outcome
    case = ET.Element("testcase", {"classname": classname, "name": xml_text(expectation.description), "time": "0"})
    if outcome.is_success is None:
        ET.SubElement(case, "skipped", {"message": xml_text(outcome.observed)})
    elif not outcome.is_success:
        failure = ET.SubElement(case, "failure", {"type": expectation.severity.value, "message": xml_text(outcome.observed)})
        samples = (", ".join(f"{xml_text(name)}={xml_text(cell)}" for name, cell in row.items()) for row in outcome.samples[:SAMPLES])
        failure.text = "\n".join([xml_text(f"{expectation.type}: {', '.join(expectation.columns)}"), *samples])
    return case
