"""`tidemark test`: whether a conf does what its tests say, in a second, without Spark."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from expectations.wording import counted
from orchestration.cli.option_types import PATH
from orchestration.errors import ConfError
from orchestration.rendering import show, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestration.audit.conf_tests.files import FileOfTests
    from orchestration.audit.conf_tests.outcome import Difference
    from orchestration.conf.model import Conf


@click.command()
@click.argument("files", metavar="[FILES]...", type=PATH, nargs=-1)
@click.option("--update", is_flag=True, help="Write what came into the files, in place of what was expected. Read it before you keep it.")
@click.pass_obj
def command(obj: dict[str, Any], files: tuple[Path, ...], update: bool) -> int:
    """Run the tests of a conf: all files of `<conf>/tests`, or those named.

    A test gives messages and says what comes of them: readings, quarantine, late rows, duplicates, windows, vectors, flows, alerts. It runs
    in process, by the functions that streams use, from an empty lake; nothing is written, and Spark is not started.

    Exit code 0: all passed; 1: something else came; 2: a file or the conf has mistakes.

    \b
    Examples:
      tidemark test
      tidemark test conf/tests/oven.yml --update
    """
    from orchestration.audit.conf_tests.files import read_tests
    from orchestration.conf.load import load

    folder: Path = obj["conf"]
    conf, read = load(folder), read_tests(folder, files)
    if not read:
        raise ConfError(f"{folder / 'tests'} has no tests; see conf/TESTS.md for how to write one")
    if update:
        from orchestration.audit.conf_tests.update import update_file

        for file in read:
            update_file(conf, file)
            click.echo(f"{file.path}: {counted(len(file.tests), 'test')} as the conf is now; read it before you keep it")
        return 0
    return run_tests(conf, read)


def run_tests(conf: "Conf", read: "Sequence[FileOfTests]") -> int:
    """Run all, print what differs and how many passed; the exit code."""
    from orchestration.audit.conf_tests.outcome import ConfUnderTest

    began, tested, passed, count = time.monotonic(), ConfUnderTest(conf), 0, 0
    for file in read:
        for number, test in enumerate(file.tests):
            count += 1
            position = f"{file.path}:{file.line(number)}"
            try:
                differences = tested.differences(test, file.path.parent)
            except ConfError as error:
                raise ConfError(f"{position}: {error}") from None
            passed += not differences
            _show(f"{position}: {test.name}", differences, is_empty=not test.expect.is_set)
    sys.stdout.write(f"{passed} of {counted(count, 'test')} passed in {time.monotonic() - began:.1f} s\n")
    return 0 if passed == count else 1


def _show(title: str, differences: "Sequence[Difference]", *, is_empty: bool) -> None:
    if differences:
        click.echo(f"FAILED {visible(title)}")
    elif is_empty:
        click.echo(f"{visible(title)}: expects nothing; --update writes what comes")
    for one in differences:
        sys.stdout.write(f"{one.table}: expected {counted(one.expected, 'row')}, {one.came:,} came\n")
        rows = [{"": "expected"} | row for row in one.missing] + [{"": "came"} | row for row in one.unexpected]
        if rows:
            show(rows, "table")
