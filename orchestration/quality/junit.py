"""A run as JUnit XML, for what shows tests: a testsuite for each table and suite, a testcase for each expectation."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

from orchestration.quality.outcome import Result, Run, TableResult
from orchestration.quality.report import replace_by, shown

SAMPLES = 5
# XML has no way to say these two, not even escaped; `shown` leaves them, as they steer nothing.
NEVER_IN_XML = str.maketrans({"\ufffe": r"\ufffe", "\uffff": r"\uffff"})


def write_junit(run: Run, file: Path) -> None:
    """Write it; a reader who opens it meanwhile sees the former one or this one, never half of it."""
    replace_by(file, ET.tostring(document(run), encoding="utf-8", xml_declaration=True))


def document(run: Run) -> ET.Element:
    """Every value is cut where it is long, and what XML cannot hold becomes its backslash escape."""
    root = ET.Element("testsuites", {"name": said(f"data quality of {run.pipeline}")})
    for table in run.tables:
        for suite, results in groupby(table.results, key=lambda result: result.suite):
            root.append(_testsuite(run, table, suite, list(results)))
    for count in ("tests", "failures", "skipped"):
        root.set(count, str(sum(int(each.get(count, 0)) for each in root)))
    return root


def said(text: object) -> str:
    """As text that XML can hold."""
    return shown(text).translate(NEVER_IN_XML)


def _testsuite(run: Run, table: TableResult, suite: str, results: list[Result]) -> ET.Element:
    name = said(f"{table.table} {suite}")
    element = ET.Element("testsuite", {"name": name, "timestamp": run.run_at.strftime("%Y-%m-%dT%H:%M:%S"), "id": run.run_id})
    for result in results:
        element.append(_testcase(name, result))
    counts = (("tests", len(results)), ("failures", len(element.findall("*/failure"))), ("skipped", len(element.findall("*/skipped"))))
    for count, n in (*counts, ("errors", 0)):
        element.set(count, str(n))
    return element


def _testcase(classname: str, result: Result) -> ET.Element:
    expectation, outcome = result.expectation, result.outcome
    case = ET.Element("testcase", {"classname": classname, "name": said(expectation.description), "time": "0"})
    if outcome.is_success is None:
        ET.SubElement(case, "skipped", {"message": said(outcome.observed)})
    elif not outcome.is_success:
        failure = ET.SubElement(case, "failure", {"type": expectation.severity.value, "message": said(outcome.observed)})
        failure.text = "\n".join([said(f"{expectation.type}: {', '.join(expectation.columns)}"), *map(_line, outcome.samples[:SAMPLES])])
    return case


def _line(sample: Mapping[str, str]) -> str:
    return ", ".join(f"{said(column)}={said(value)}" for column, value in sample.items())
