"""The page of the collector does what it says: its conf loads, and its commands bring events to the spool."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestration.conf.load import load
from tests.collectors import FILES, collecting, spooled

PAGE = (Path(__file__).parents[4] / "orchestration/connectors/collector/README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOOLS = {"curl": ("web", '{"accepted":1}'), "nc": ("line", "1\n")}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_example_is_acknowledged(tool: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing")
    blocks = BLOCK.findall(PAGE)
    (tmp_path / "conf").mkdir()
    sources = next(content for kind, content in blocks if kind == "yaml").replace("port: 8080", "port: 0").replace("port: 9000", "port: 0")
    for name, text in {**FILES, "sources": sources}.items():
        (tmp_path / "conf" / f"{name}.yml").write_text(text)
    commands = next(content for kind, content in blocks if kind == "bash").replace("\\\n", " ").splitlines()
    command = next(line for line in commands if f"{tool} " in line)
    source, answer = TOOLS[tool]
    with collecting(tmp_path / "conf") as collector:
        command = re.sub("localhost[: ](8080|9000)", lambda found: f"{found[0][:-4]}{collector.ports[source]}", command)
        assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout == answer
    assert [payload.startswith(b'{"device": "oven-01"') for _, payload in spooled(tmp_path, source)] == [True]


def test_the_settings_for_mqtt_kinesis_and_other_machines_are_settings(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    first, broker, stream, other = (content for kind, content in BLOCK.findall(PAGE) if kind == "yaml")
    for name, text in {
        **FILES,
        "sources": first.replace("    http: {port: 8080}\n", other) + broker + stream.replace("line:", "stream:"),
    }.items():
        (tmp_path / "conf" / f"{name}.yml").write_text(text)
    sources = load(tmp_path / "conf").sources
    assert sources["web"].transport.host == "0.0.0.0"  # type: ignore[union-attr]
    assert sources["stream"].transport.stream == "plant-events"  # type: ignore[union-attr]
    assert sources["hall"].transport.topics == ("plant/+/+",)  # type: ignore[union-attr]
