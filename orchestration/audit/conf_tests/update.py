"""Writes what came into a file of tests, in place of what was expected; tests that pass, and all else of the file, stay as they are."""

from collections.abc import Iterator
from typing import Any

import msgspec

from orchestration.audit.conf_tests.files import FileOfTests
from orchestration.audit.conf_tests.outcome import ConfUnderTest, Row
from orchestration.conf.conf_tests import COLUMNS, ConfTest
from orchestration.conf.model import Conf
from orchestration.rendering import plain

FIRST = ("readings", "quarantine")
"""Tables that a test has where it names none."""
MOST_WHOLE = 1e15
"""A greater number is written with an exponent: no file of conf has more than 18 digits."""
OF_INTEREST = {
    "readings": ("device_id", "metric", "event_time", "value", "unit", "zone"),
    "quarantine": ("rules", "device_id", "metric", "value"),
    "without_measurements": ("payload",),
    "late": ("device_id", "metric", "event_time", "value"),
    "duplicates": ("device_id", "metric", "event_time", "value", "is_conflict"),
    "windows": ("group", "device_id", "metric", "window_end", "value", "count"),
    "vectors": ("group", "entity", "window_end", "vector", "missing"),
    "flows": COLUMNS["flows"],
    "alerts": ("alert", "entity", "state", "changed_at", "known_at", "severity", "summary"),
}
"""Columns of a table where a test names none."""


def update_file(conf: Conf, file: FileOfTests) -> None:
    """Write what comes of each test of a file into its `expect`."""
    tested, lines = ConfUnderTest(conf), file.path.read_text(encoding="utf-8").splitlines()
    for number, test in reversed([*enumerate(file.tests)]):
        if test.expect.is_set and not tested.differences(test, file.path.parent):
            continue
        names = [name for name in COLUMNS if getattr(test.expect, name) is not None] or FIRST
        came = tested.rows(test, file.path.parent, names)
        begin, end = _block(file, lines, number)
        indent = " " * (len(lines[file.line(number) - 1]) - len(lines[file.line(number) - 1].lstrip("- ")))
        lines[begin:end] = [f"{indent}{line}" for line in _expect(test, {name: came[name] for name in names})]
    file.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _block(file: FileOfTests, lines: list[str], number: int) -> tuple[int, int]:
    """Return the lines of a test that its `expect` takes; an empty range behind the test where it has none."""
    steps = ("tests", number)
    has_one = "expect" in file.document.data["tests"][number]
    first = file.document.line((*steps, "expect")) - 1 if has_one else file.line(number)
    column = _column(lines[first] if has_one else lines[file.line(number) - 1])
    until = next((at for at in range(first + 1, len(lines)) if _is_over(lines[at], column, has_one)), len(lines))
    while until > first + 1 and (not lines[until - 1].strip() or lines[until - 1].lstrip().startswith("#")):
        until -= 1
    return (first, until) if has_one else (until, until)


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_over(line: str, column: int, is_block: bool) -> bool:
    """Whether a line stands behind what begins in a column: a list may begin in the column of its key."""
    text = line.lstrip()
    return (
        bool(text)
        and not text.startswith("#")
        and _column(line) <= column
        and not (is_block and _column(line) == column and text[0] == "-")
    )


def _expect(test: ConfTest, came: dict[str, list[Row]]) -> Iterator[str]:
    yield "expect:"
    for name, rows in came.items():
        written = getattr(test.expect, name)
        if isinstance(written, int) or not rows:
            yield f"  {name}: {len(rows)}"
            continue
        named = dict.fromkeys(column for row in written or () for column in row) or OF_INTEREST[name]
        yield f"  {name}:"
        for row in rows:
            cells = {column: row.get(column) for column in named}
            yield f"  - {{{', '.join(f'{column}: {_written(value)}' for column, value in cells.items() if value is not None)}}}"


def _written(value: Any) -> str:
    """A value as YAML, of which JSON is a part."""
    match value:
        case bytes():
            value = value.decode("utf-8", "backslashreplace")
        case float():
            value = float(f"{value:.12g}")
            value = int(value) if value.is_integer() and abs(value) < MOST_WHOLE else value
        case list():
            return f"[{', '.join(map(_written, value))}]"
    return msgspec.json.encode(plain(value)).decode()
