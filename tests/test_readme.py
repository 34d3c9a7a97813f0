"""What the pages beside the code say is true: commands, options, settings and rules exist, links resolve, examples do what they show."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from orchestration.cli.app import COMMANDS, tidemark
from orchestration.conf.load import load
from orchestration.conf.sink_settings import SinkSettings
from orchestration.conf.starter import starter_sources, write_starter
from silver.aggregation import Aggregation
from silver.rules import BUILT_IN

ROOT = Path(__file__).parent.parent
FOLDERS = ("bronze", "silver", "gold", "expectations", "conf", "orchestration", "tests")
PAGES = sorted(
    str(page.relative_to(ROOT)) for pages in (ROOT.glob("*.md"), *(ROOT.glob(f"{folder}/**/*.md") for folder in FOLDERS)) for page in pages
)
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
PAYLOADS, GOLD = TEXT["silver/README.md"], TEXT["gold/README.md"]
WALK_THROUGH, CONNECTORS = "conf/WALKTHROUGH.md", "orchestration/connectors/README.md"
LONGEST_PAGE = {"README.md": 150, "ARCHITECTURE.md": 250}
BLOCK = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(
    r"```(?:json|csv)(?: (?P<file>\S+))?\n(?P<lines>[^`]*)```\n\n```yaml\n(?P<conf>[^`]*)```\n\n```text\n(?P<readings>[^`]*)```"
)


def blocks(page: str, language: str) -> list[str]:
    return [content for found, _, content in BLOCK.findall(TEXT[page]) if found == language]


def written_out() -> Iterator[str]:
    """Every `tidemark ...` in a block of shell."""
    for page in PAGES:
        for line in "\n".join((*blocks(page, "sh"), *blocks(page, "bash"))).splitlines():
            yield from (part.strip() for part in line.split("&&") if part.strip().startswith("tidemark "))


def mentioned() -> Iterator[str]:
    """Every `tidemark ...` in the running text."""
    for text in TEXT.values():
        in_text = re.findall(r"`(?:\.venv/bin/)?(tidemark [^`\n]+)`", BLOCK.sub("", text))
        yield from (command for command in in_text if not command.startswith("tidemark ["))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Parses a line as the command line does: groups still hand on, what a command would do is left out."""
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)
    return lambda line: tidemark.main(shlex.split(line, comments=True)[1:], obj={}, standalone_mode=False)


def anchors(page: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", TEXT[page]), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("line", sorted(set(written_out())))
def test_every_command_in_a_block_is_one_that_the_command_line_takes(line: str, parsed: Callable[[str], None]) -> None:
    parsed(line)


@pytest.mark.parametrize("line", sorted(set(mentioned())))
def test_every_command_in_the_text_exists_with_the_options_it_names(line: str, parsed: Callable[[str], None]) -> None:
    with suppress(click.MissingParameter, click.exceptions.NoArgsIsHelpError):  # a sentence may name a command without its arguments
        parsed(line)


def test_the_page_of_sources_shows_the_starter_of_every_kind() -> None:
    assert [block for block in blocks(CONNECTORS, "yaml") if "\nsources:\n" in block] == [
        starter_sources()[kind] for kind in re.findall(r"^\| \[`(\w+)`\]", TEXT[CONNECTORS], re.MULTILINE)
    ]
    assert TEXT[CONNECTORS].count("\n| [`") == len(starter_sources())


def test_every_sink_on_the_pages_is_one_that_conf_takes_and_the_page_of_sinks_has_one_of_each_kind(tmp_path: Path) -> None:
    write_starter(tmp_path)
    pipeline = tmp_path / "pipeline.yml"
    starter = re.sub("^sinks:.*\n", "", pipeline.read_text(), flags=re.MULTILINE)
    kinds = []
    for page in PAGES:
        for block in (block for block in blocks(page, "yaml") if block.startswith("sinks:")):
            pipeline.write_text(starter + block)
            sinks = load(tmp_path).sinks.values()
            kinds += [kind for kind in SinkSettings.one_of for sink in sinks if getattr(sink, kind) and page == CONNECTORS]
    assert sorted(kinds) == sorted(SinkSettings.one_of)


@pytest.mark.parametrize("page", ["README.md", CONNECTORS])
def test_the_tables_name_every_kind_of_source_and_sink(page: str) -> None:
    rows = "\n".join(line.split("|")[1] for line in TEXT[page].splitlines() if line.startswith(("| [", "| to [", "| `")))
    assert {*starter_sources(), *SinkSettings.one_of} <= set(re.findall(r"\w+", re.sub(r"\]\([^)]*\)", "", rows)))


def test_the_two_pages_that_are_read_first_are_short() -> None:
    assert {page: len(TEXT[page].splitlines()) for page, most in LONGEST_PAGE.items() if len(TEXT[page].splitlines()) > most} == {}


def test_readme_shows_every_command() -> None:
    assert set(COMMANDS) <= {word for line in (*written_out(), *mentioned()) for word in line.split()}


def test_every_target_of_make_on_the_pages_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for text in TEXT.values() for target in re.findall(r"(?:^|`)make ([a-z0-9-]+)", text, re.MULTILINE)}
    assert named
    assert named - targets == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", TEXT[page])):
        file, _, anchor = target.partition("#")
        if target.startswith("https://"):
            continue
        place = (ROOT / page).parent / file if file else ROOT / page
        if not place.exists() or (anchor and anchor not in anchors(str(place.resolve().relative_to(ROOT)))):
            broken.append(target)
    assert broken == []


def test_the_tables_of_rules_and_aggregation_types_are_those_of_the_code() -> None:
    assert set(BUILT_IN) <= set(re.findall(r"^\| `(\w+)` \|", PAYLOADS, re.MULTILINE))
    assert all(f"`{aggregation}`" in GOLD for aggregation in Aggregation)


def walk_through(folder: Path) -> Path:
    """The conf of the walk-through, written below the folder."""
    conf = folder / "room" / "conf"
    (conf / "expectations").mkdir(parents=True)
    for content in blocks(WALK_THROUGH, "yaml"):
        name = re.match(r"# room/conf/([\w/]+\.yml)\n", content)
        if name:
            (conf / name[1]).write_text(content, encoding="utf-8")
    return conf


def test_the_walk_through_has_a_conf_without_mistakes(tmp_path: Path) -> None:
    written = walk_through(tmp_path)
    conf = load(written)
    assert (len(list(written.rglob("*.yml"))), set(conf.sources), conf.lake.local) == (8, {"room"}, tmp_path / "room" / "lake")
    assert {metric.step_seconds for metric in conf.metrics.values()} == {600, 3600}


def test_silver_has_ten_shapes() -> None:
    """Or the test of payloads would look at fewer than there are."""
    assert len(list(SHAPE.finditer(PAYLOADS))) == 10
