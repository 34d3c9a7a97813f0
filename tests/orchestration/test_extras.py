"""An installation without the extras: what needs none works, and what needs one says which to install."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from orchestration.errors import EXTRAS

ROOT = Path(__file__).parents[2]
WITHOUT_EXTRAS = f"""
import sys
class Finder:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {set(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Finder())
"""
TIDEMARK = f"{WITHOUT_EXTRAS}\nfrom orchestration.cli.app import main; main()"
MODULES = {
    "kafka": ("connectors.sources.kafka", "connectors.sinks.kafka", "connectors.channels.kafka", "alerts.watch"),
    "mqtt": ("connectors.collector.mqtt",),
    "postgres": ("connectors.sinks.postgres",),
    "s3": ("connectors.sources.s3", "connectors.collector.kinesis", "storage.duckdb_files"),
    "quality": ("quality.check",),
    "dbt": ("serving.dbt.build",),
    "alerts": ("connectors.channels.apprise",),
    "plots": ("serving.plots.vectors",),
    "otel": ("supervisor.traces",),
}
DESCRIBED = """
import importlib, json
from orchestration.errors import describe
said = {}
for module in json.loads(sys.argv[1]):
    try:
        importlib.import_module(f"orchestration.{module}")
    except ModuleNotFoundError as error:
        said[module] = describe(error)
print(json.dumps(said))
"""


def tidemark(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", TIDEMARK, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a conf that was made of a file, without any extra."""
    made = tmp_path_factory.mktemp("without extras")
    (made / "room.csv").write_text("time,device,temperature\n2026-01-05T12:00:00Z,oven,20.5\n")
    ended = tidemark(made, "init", "conf", "--from", "room.csv")
    assert ended.returncode == 0, ended.stderr
    return made


def test_what_needs_an_extra_says_which_to_install() -> None:
    modules = [module for of_extra in MODULES.values() for module in of_extra]
    asked = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + DESCRIBED, json.dumps(modules)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    said = json.loads(asked.stdout)
    assert {extra: [f"pip install 'tidemark[{extra}]'" in said[module] for module in of_extra] for extra, of_extra in MODULES.items()} == {
        extra: [True] * len(of_extra) for extra, of_extra in MODULES.items()
    }


def test_the_extras_of_the_package_are_those_of_the_sentence_and_all_of_them() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*declared} - {"all", "dev"} == {*EXTRAS.values()} == MODULES.keys()
    assert declared["all"] == [f"tidemark[{','.join(name for name in declared if name not in {'all', 'dev'})}]"]


def test_without_any_extra_a_conf_is_made_checked_and_tried_and_the_flows_can_be_imported(folder: Path) -> None:
    for arguments in (("check",), ("preview", "room.csv"), ("status", "--format", "json")):
        ended = tidemark(folder, *arguments)
        assert ended.returncode == 0, ended.stderr
    of_a_run = "import orchestration.supervisor.run, orchestration.connectors.collector.collect, orchestration.web.server"
    subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS + of_a_run], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("arguments", "extra"), [(("plot", "all"), "plots"), (("dbt", "build"), "dbt"), (("quality",), "quality")], ids=lambda value: value[0]
)
def test_a_command_that_needs_an_extra_ends_with_one_sentence(arguments: tuple[str, ...], extra: str, folder: Path) -> None:
    ended = tidemark(folder, *arguments)
    assert (ended.returncode, ended.stdout) == (4, ""), ended
    assert ended.stderr.splitlines()[-1].endswith(f"is not installed: `pip install 'tidemark[{extra}]'`"), ended.stderr
