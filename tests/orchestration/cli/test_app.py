"""The command line: exit codes, one sentence for every error, and quick answers."""

import re
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import click
import pytest

from orchestration.cli import app
from orchestration.errors import ConfError, HeldError, TidemarkError
from tests.commands import Tidemark

JAVA = """An error occurred while calling o45.count.
: org.apache.spark.SparkException: [NO_DISK] the disk is full
\tat org.apache.spark.Here.there(Here.scala:1)"""

TALKATIVE = """
import sys, types, click
from orchestration.cli import app
module = sys.modules["orchestration.cli.status"] = types.ModuleType("orchestration.cli.status")
module.command = click.command()(lambda: [print("line") for _ in range(100_000)] and 0)
sys.argv = ["tidemark", "status"]
app.main()
"""


class Py4JJavaError(Exception):
    """As py4j names its own."""


Put = Callable[[Callable[[], object]], None]


@pytest.fixture
def a_command_that(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a command named `status` in place, which does what it is told."""

    def put(does: Callable[[], object]) -> None:
        module = ModuleType("orchestration.cli.status")
        module.command = click.command()(does)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "orchestration.cli.status", module)

    return put


def raising(error: BaseException) -> Callable[[], object]:
    def does() -> None:
        raise error

    return does


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (TidemarkError("the lake is dry:\n  fill it."), 4, "tidemark: the lake is dry:\n  fill it.\n"),
        (ConfError("a.yml:1: x\nb.yml:2: y"), 2, "tidemark: a.yml:1: x\ntidemark: b.yml:2: y\n"),
        (HeldError("someone runs"), 3, "tidemark: someone runs\n"),
        (ValueError("no\nsecond line"), 4, "tidemark: it broke: ValueError: no (--debug shows the trace)\n"),
        (ValueError(), 4, "tidemark: it broke: ValueError: without a message (--debug shows the trace)\n"),
        (
            Py4JJavaError(JAVA),
            4,
            "tidemark: it broke: Py4JJavaError: org.apache.spark.SparkException: [NO_DISK] the disk is full (--debug shows the trace)\n",
        ),
        (TidemarkError("file \x1b[2J"), 4, "tidemark: file \\x1b[2J\n"),
        (BrokenPipeError("the JVM left"), 4, "tidemark: it broke: BrokenPipeError: the JVM left (--debug shows the trace)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_one_sentence_and_an_exit_code(
    error: BaseException, code: int, sentence: str, a_command_that: Put, tidemark: Tidemark
) -> None:
    a_command_that(raising(error))
    assert tidemark("status") == (code, "", sentence)


def test_debug_shows_the_trace_above_the_sentence(a_command_that: Put, tidemark: Tidemark) -> None:
    a_command_that(raising(ValueError("no")))
    said = tidemark("--debug", "status")
    assert (said.code, said.err.startswith("Traceback")) == (4, True)


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1)])
def test_a_command_returns_its_exit_code(returned: int | None, code: int, a_command_that: Put) -> None:
    a_command_that(lambda: returned)
    assert app.exit_code(["status"]) == code


@pytest.mark.parametrize("arguments", [["fly"], ["--conf"], ["--nonsense", "run"], ["plot"]])
def test_wrong_usage_is_2(arguments: list[str], tidemark: Tidemark) -> None:
    said = tidemark(*arguments)
    assert (said.code, "Error: " in said.err) == (2, True)


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str, tidemark: Tidemark) -> None:
    said = tidemark(name, "--help")
    assert said.code == 0
    assert re.search(rf"Examples?:\s+(.*\n)?\s*tidemark ([-\w/]+ )*{name}", said.out)


def test_help_imports_nothing_that_is_slow() -> None:
    program = "import sys; from orchestration.cli.app import exit_code; exit_code(['--help']); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(out.splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert loaded & {"pyspark", "pandas", "pyarrow", "numpy", "matplotlib", "deltalake", "rich", "yaml", "great_expectations"} == set()
    assert "tidemark init conf" in out


@pytest.mark.parametrize("flags", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_reader_that_has_seen_enough_is_no_error(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with subprocess.Popen([sys.executable, *flags, "-c", TALKATIVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
