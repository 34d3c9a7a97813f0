"""Every block of every page is what it says: conf has no mistakes, shells can read commands, Python compiles, README makes its row."""

import ast
import doctest
import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bronze.schema import EVENTS, INSTANT
from orchestration.audit.conf_tests.files import read_tests
from orchestration.audit.conf_tests.outcome import ConfUnderTest
from orchestration.audit.verify.gold_windows import windows
from orchestration.cli.app import COMMANDS
from orchestration.conf.document import read_document
from orchestration.conf.files import FILES
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.schemas import schema_of
from orchestration.connectors.sampling import sample_of_file
from orchestration.quality.suites import suites_of_conf
from silver.decoders.user_code import module_of
from silver.enrich import ReferenceData
from silver.judging import judged, retyped
from silver.policy import SilverConfig
from silver.schema import DEVICES
from tests.rows import at
from tests.test_readme import BLOCK, PAGES, ROOT, SHAPE, TEXT, blocks

BLOCKS = [(page, kind, content) for page in PAGES for kind, _, content in BLOCK.findall(TEXT[page])]
REST_OF_A_SOURCE = "    format: json\n    device: {field: device}\n    time: {field: ts}\n    metrics: [temperature]\n"


def take_shell(content: str, _: str, __: Path) -> None:
    """Bash can read it, and what it names is there; commands of Tidemark are parsed beside this."""
    subprocess.run(["bash", "-n"], input=content, text=True, check=True)
    assert all((ROOT / path).exists() for path in re.findall(r"\b(?:tests|conf|orchestration)/[\w./]+", content))
    assert all(importlib.util.find_spec(module) for module in re.findall(r"python -m ([\w.]+)", content))


def take_yaml(content: str, page: str, folder: Path) -> None:
    """A whole conf, or what is changed of the default one, without mistakes. That of Prometheus is read by the test of metrics."""
    if content.startswith("# prometheus.yml\n"):
        assert page == "orchestration/web/README.md"
        return
    for block in blocks(page, "python"):
        if module := re.match(r"# conf/(\w+\.py)\n", block):
            (folder / module[1]).write_text(block, encoding="utf-8")
    whole = [block for block in blocks(page, "yaml") if re.search(r"^pipeline:", block, re.MULTILINE)]
    for part in re.split(r"^---\n", "---\n".join(blocks(page, "yaml")) if whole else content, flags=re.MULTILINE):
        write_part(part, folder, is_whole=bool(whole))
    if not whole:
        shutil.copytree(ROOT / "conf", folder, dirs_exist_ok=True, ignore=lambda _, names: [n for n in names if (folder / n).exists()])
    conf = load(folder)
    suites_of_conf(conf, folder)
    for file in read_tests(folder) if "\ntests:" in f"\n{content}" else ():
        for test in file.tests:
            assert ConfUnderTest(conf).differences(test, file.path.parent) == []


def write_part(part: str, folder: Path, *, is_whole: bool) -> None:
    """One file of a conf; the fragment of a source is completed, and of other files of the default conf the rest stays."""
    if part.startswith("    "):
        part = f"  plant:\n{part}{REST_OF_A_SOURCE}"
    part = f"sources:\n{part}" if part.startswith("  ") else part
    (folder / "part.yml").write_text(part, encoding="utf-8")
    document, mistakes = read_document(folder / "part.yml")
    (folder / "part.yml").unlink()
    assert document is not None and not mistakes, mistakes
    if "expectations" in document.data:
        (folder / "expectations").mkdir(exist_ok=True)
        (folder / "expectations" / f"suite_{len(part)}.yml").write_text(part, encoding="utf-8")
        return
    if "tests" in document.data:
        (folder / "tests").mkdir(exist_ok=True)
        (folder / "tests" / f"page_{len(part)}.yml").write_text(part, encoding="utf-8")
        return
    name = next(name for name in FILES if document.data.keys() <= schema_of(name)["properties"].keys())
    of_default, _ = read_document(ROOT / "conf" / f"{name}.yml")
    assert of_default is not None or name in {"alerts", "flows"}
    rest = of_default.data if of_default and not is_whole else {}
    for key, value in document.data.items() if rest and name in ("metrics", "devices", "groups") else ():
        document.data[key] = rest[key] | value
    (folder / f"{name}.yml").write_text(json.dumps(rest | document.data), encoding="utf-8")


def take_json(content: str, _: str, __: Path) -> None:
    assert all(isinstance(json.loads(line), dict | list) for line in content.splitlines())


def take_python(content: str, page: str, _: Path) -> None:
    if content.startswith("# conf/"):
        module = module_of("of_page", content)
        assert doctest.testmod(module).failed == 0 < doctest.testmod(module).attempted
    for node in ast.walk(ast.parse(content, page)):
        if isinstance(node, ast.ImportFrom):
            named = importlib.import_module(str(node.module))
            assert all(hasattr(named, name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            assert all(importlib.util.find_spec(name.name) for name in node.names)


def take_csv(content: str, page: str, _: Path) -> None:
    """It is read by the test of payloads."""
    assert any(shape["lines"] == content for shape in SHAPE.finditer(TEXT[page]))


def take_text(content: str, _: str, __: Path) -> None:
    """Output, whose numbers depend on the lake: the commands that it names exist. Of README and of payloads it is compared."""
    assert {command.split()[0] for command in re.findall(r"`tidemark (\w+[^`]*)`", content)} <= set(COMMANDS)


def take_sql(_: str, page: str, __: Path) -> None:
    """tests/gold/test_alert_statistics.py and tests/orchestration/serving/postgres/test_grafana.py run them."""
    assert page in ("gold/alerts/README.md", "orchestration/serving/CONNECT.md")


TAKERS: dict[str, Callable[[str, str, Path], None]] = {
    "sh": take_shell,
    "bash": take_shell,
    "yaml": take_yaml,
    "json": take_json,
    "python": take_python,
    "csv": take_csv,
    "text": take_text,
    "sql": take_sql,
}


@pytest.mark.parametrize(("page", "kind", "content"), BLOCKS, ids=[f"{page}-{n}" for n, (page, *_) in enumerate(BLOCKS)])
def test_every_block_of_every_page_is_what_it_says(page: str, kind: str, content: str, tmp_path: Path) -> None:
    assert kind in TAKERS, f"nothing runs a block of {kind or 'no kind'} on {page}:\n{content}"
    (tmp_path / "conf").mkdir()
    TAKERS[kind](content, page, tmp_path / "conf")


@pytest.mark.parametrize("page", PAGES)
def test_no_block_of_a_page_is_overlooked(page: str) -> None:
    assert TEXT[page].count("```") == 2 * len(BLOCK.findall(TEXT[page]))


def measured(conf: Conf, events: list[dict[str, Any]], devices: Iterable[str]) -> pa.Table:
    """Measurements of events with the rules that they break, without Spark; `devices` are in the kitchen."""
    known = [{"device_id": name, "groups": ["kitchen"], "is_known": True, "registered_at": at("1970-01-01")} for name in devices]
    config = SilverConfig({name: source.payload_format for name, source in conf.sources.items()}, conf.policy, conf.metrics, conf.rules)
    of_bronze, registry = (pa.Table.from_pylist(of, schema) for of, schema in ((events, EVENTS), (known, DEVICES)))
    return pa.concat_tables(judged(of_bronze, ReferenceData(registry), config))


@pytest.mark.parametrize("example", list(SHAPE.finditer(TEXT["silver/README.md"])), ids=lambda example: example["readings"].split()[0])
def test_every_payload_in_readme_gives_the_readings_beside_it(example: re.Match[str], tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    take_yaml(example["conf"], "silver/README.md", tmp_path / "conf")
    conf, file = load(tmp_path / "conf"), tmp_path / (example["file"] or "1.json")
    file.write_text(example["lines"], encoding="utf-8")
    arrived = sample_of_file(conf.sources["plant"], file).to_pylist()
    events = [event | {"ingested_at": at("2026-01-06"), "bronze_batch": 0, "bronze_row": n} for n, event in enumerate(arrived)]
    expected = [line.rsplit(maxsplit=3) for line in example["readings"].splitlines()]
    rows = measured(conf, events, {row[0] for row in expected})
    good = sorted((row for row in rows.to_pylist() if not row["broken_rules"]), key=lambda row: (row["bronze_row"], row["part"]))
    assert [[row["device_id"], row["metric"], f"{row['value']:g}", f"{row['event_time']:%Y-%m-%dT%H:%M:%SZ}"] for row in good] == expected


def test_the_conf_of_readme_makes_the_row_beside_it_of_the_line_before_it(tmp_path: Path) -> None:
    """Sixty events, the first of which is the one on the page: readings as silver has them, a window as the second evaluator has it."""
    for part in blocks("README.md", "yaml")[0].split("---\n"):
        write_part(part, tmp_path, is_whole=True)
    conf = load(tmp_path)
    of_page = json.loads(re.findall(r"`(\{.*?\})`", TEXT["README.md"])[0])
    begin = datetime.fromisoformat(of_page["ts"])
    values = [of_page["temperature"], 185.0, 182.5, *[183.4] * 56, 184.9]
    lines = [of_page | {"temperature": value, "ts": f"{begin:%Y-%m-%dT%H}:{n // 6:02}:{n % 6}0Z"} for n, value in enumerate(values)]
    of_event = {"source": "ovens", "position": "1.json", "ingested_at": at("2026-01-06"), "bronze_batch": 0}
    rows = [of_event | {"payload": json.dumps(line).encode(), "bronze_row": n} for n, line in enumerate(lines)]
    readings = measured(conf, rows, conf.devices)
    assert [*filter(None, readings["broken_rules"].to_pylist())] == []
    with duckdb.connect() as store:
        store.register("evaluated", retyped(readings, INSTANT, pa.timestamp("us")))
        store.execute("create table counted as select *, false as is_late from evaluated")
        windows(store, conf.groups["kitchen"], conf.metrics, datetime(2027, 1, 1, tzinfo=UTC))
        (row,) = store.sql("from windows").to_arrow_table().to_pylist()
    names, cells = (line.split() for line in blocks("README.md", "text")[0].splitlines())
    expected = dict(zip(names, cells, strict=True))
    assert (expected.pop("latest"), expected.pop("revision")) == (f"{row['latest']:g}", "0")
    for name, cell in expected.items():
        value = datetime.fromisoformat(cell).replace(tzinfo=None) if name.startswith("window") else cell
        assert row[name] == (value if isinstance(row[name], str | datetime) else pytest.approx(float(cell), rel=1e-12))
