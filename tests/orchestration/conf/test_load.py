"""Loading: the default conf, paths, defaults, what SQL needs alone, and no exception but ConfError whatever the files hold."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestration.conf.document import read_document
from orchestration.conf.files import FILES, MODELS
from orchestration.conf.load import load
from orchestration.conf.place import place_of
from orchestration.conf.reference import generated
from orchestration.conf.schemas import resolved
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError
from silver.aggregation import Aggregation
from tests.orchestration.conf.conftest import changed, landing_of

DEFAULT = Path(__file__).parents[3] / "conf"


def test_the_default_conf_has_what_the_demo_shows() -> None:
    conf = load(DEFAULT)
    assert (len(conf.devices), len(conf.metrics), sorted(conf.groups)) == (20, 5, ["building", "kitchen", "press_line"])
    assert conf.groups["press_line"].stream == conf.groups["building"].stream != conf.groups["kitchen"].stream
    assert {metric.step_seconds for metric in conf.metrics.values()} == {600, 3600}
    assert conf.metrics["vibration"].slide_seconds == 300
    assert len({metric.aggregation for metric in conf.metrics.values()}) == 4
    assert conf.metrics["temperature"].aggregation is Aggregation.AVERAGE


def test_the_examples_in_the_comments_of_the_default_conf_are_sound(folder: Path) -> None:
    text = (folder / "sources.yml").read_text()
    start = text.index("#   lab:")
    (folder / "sources.yml").write_text(text[:start] + text[start:].replace("\n# ", "\n").removeprefix("# "))
    sources = load(folder).sources
    assert list(sources) == ["plant", "lab", "gateway"]
    assert (sources["lab"].payload_format.format, sources["gateway"].payload_format.each) == ("csv", "data.readings")


def test_paths_start_at_the_parent_of_the_conf_folder(folder: Path) -> None:
    conf = load(folder)
    assert (conf.folder, conf.lake.local) == (Path.cwd() / "conf", Path.cwd() / "lake")
    assert landing_of(conf, "plant").path == Path.cwd() / "landing"


def test_home_and_variables_expand_in_paths(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mistakes_after: Callable[..., list[str]]
) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    monkeypatch.setenv("PLANT", "/data/$ plant")
    assert mistakes_after(("pipeline", "./lake", "~/lake"), ("sources", "./landing", "${PLANT}/in")) == []
    assert (load(folder).lake.local, landing_of(load(folder), "plant").path) == (Path("/home/op/lake"), Path("/data/$ plant/in"))


def test_lake_and_groups_are_those_of_the_whole_conf() -> None:
    place, conf = place_of(DEFAULT), load(DEFAULT)
    assert place is not None
    assert (place.lake, place.stream_of) == (conf.lake, conf.stream_of)


@pytest.mark.parametrize("text", ["", "lake: 1", "lake: [", "lake: $NOWHERE/lake", "other: x"])
def test_what_cannot_be_read_is_left_to_the_whole_conf(text: str, tmp_path: Path) -> None:
    shutil.copytree(DEFAULT, tmp_path / "conf")
    (tmp_path / "conf" / "pipeline.yml").write_text(text)
    assert place_of(tmp_path / "conf") is None
    assert place_of(tmp_path / "nowhere") is None


def test_what_is_left_out_has_the_default_that_the_schema_names(folder: Path) -> None:
    (folder / "pipeline.yml").write_text("pipeline: p\nlake: ./lake\npolicy: {lateness_seconds: 42}\n")
    (folder / "groups.yml").write_text(
        "groups: {kitchen: {metrics: [power], vector: {}}, press_line: {metrics: [power]}, building: {metrics: [power]}}\n"
    )
    conf = load(folder)
    schema = json.loads((DEFAULT / "schema" / "pipeline.json").read_text())["$defs"]
    for part, built in (("Policy", conf.policy), ("Engine", conf.engine)):
        defaults = {key: setting["default"] for key, setting in schema[part]["properties"].items() if "default" in setting}
        assert defaults
        assert defaults == {key: getattr(built, key) for key in defaults}
    kitchen = conf.groups["kitchen"]
    assert (kitchen.lateness_seconds, kitchen.stream, kitchen.idle_close_seconds) == (42, "kitchen", None)
    assert kitchen.vector is not None
    assert (kitchen.vector.entity, kitchen.vector.features, kitchen.vector.max_fill_seconds) == ("device", ("power",), 0)
    assert conf.groups["building"].vector is None


@pytest.mark.parametrize("file", ["devices", "groups", "rules"])
def test_a_noun_without_entries_is_allowed(file: str, folder: Path) -> None:
    for name in {"devices", file}:
        (folder / f"{name}.yml").write_text(f"{name}:\n")
    if file != "groups":
        text = (folder / "groups.yml").read_text()
        (folder / "groups.yml").write_text(text[: text.index("  building:")])  # its features name devices
    assert not getattr(load(folder), file)


def test_the_schemas_and_the_reference_are_those_of_the_declared_settings() -> None:
    for path, text in generated().items():
        assert (DEFAULT / path).read_text(encoding="utf-8") == text, f"conf/{path}: run `make conf`"


def test_the_conf_of_the_reference_is_a_whole_one(tmp_path: Path) -> None:
    page = (DEFAULT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "conf").mkdir()
    for name, text in re.findall(r"^```yaml\n# (\w+\.yml)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        (tmp_path / "conf" / name).write_text(text)
    conf = load(tmp_path / "conf")
    (example,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert json.loads(example)["device"] in conf.devices
    assert set(json.loads(example)) == {"device", "metric", "value", "ts"}


def test_every_link_of_the_reference_has_its_target() -> None:
    page = (DEFAULT / "README.md").read_text(encoding="utf-8")
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE)}
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert {target[1:] for target in targets if target.startswith("#")} <= anchors
    assert all((DEFAULT / target).exists() for target in targets if not target.startswith("#"))


def test_a_whole_number_may_be_written_with_a_point(folder: Path) -> None:
    changed(folder, "metrics", "step_seconds: 600", "step_seconds: 600.0")
    step = load(folder).metrics["temperature"].step_seconds
    assert (step, type(step)) == (600, int)


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_of_a_schema_explains_itself(name: str) -> None:
    schema = json.loads((DEFAULT / "schema" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    objects = [schema, *(node for node in schema["$defs"].values() if "properties" in node)]
    for path, setting in ((key, setting) for node in objects for key, setting in node["properties"].items()):
        assert resolved(setting, schema).get("description"), path
        assert setting.get("examples") or "default" in setting, path


@pytest.mark.parametrize("name", FILES)
def test_editors_take_the_default_conf_and_refuse_what_check_refuses(name: str) -> None:
    text = example(name).read_text()
    assert text.startswith(f"# yaml-language-server: $schema=schema/{name}.json\n")
    editor = jsonschema.Draft202012Validator(json.loads((DEFAULT / "schema" / f"{name}.json").read_text()))
    data = read_document(example(name))[0].data  # type: ignore[union-attr]
    assert editor.is_valid(data)
    for at, step in places_of(data):
        for value in (None, 5, 5.5, -1, True, "", "a\nb", [], ["a", "a"], {}, {"odd": 1}):
            before, at[step] = at[step], value
            assert editor.is_valid(data) == (check_structure(name, data).findings == []), (step, value)
            at[step] = before


def example(name: str) -> Path:
    """That file of the default conf, which has no alerts, or a file of these tests."""
    file = f"{name}.yml"
    return DEFAULT / file if (DEFAULT / file).exists() else Path(__file__).with_name(file)


def places_of(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its steps."""
    for step in (list(data) if isinstance(data, dict) else range(len(data))) if isinstance(data, dict | list) else ():
        yield data, step
        yield from places_of(data[step])


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["kitchen", "temperature", "a.b", "(", "$"])
)
keys = st.text(max_size=5) | st.sampled_from(
    ["field", "constant", "groups", "metrics", "vector", "features", "entity", "holds", "path", "format", "each"]
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8)


def loaded_or_refused(file: str, content: bytes) -> None:
    """Loads the default conf with one file replaced."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "conf"
        shutil.copytree(DEFAULT, folder, ignore=shutil.ignore_patterns("__pycache__", "schema", "*.py"))
        (folder / f"{file}.yml").write_bytes(content)
        try:
            load(folder)
        except ConfError as error:
            assert all(line.startswith(str(folder)) for line in str(error).split("\n"))


@given(
    st.sampled_from(FILES), st.text().map(str.encode) | st.binary() | st.text("-:{}[]&*!|>'\"#%@, \n\tab<1", max_size=60).map(str.encode)
)
def test_any_text_at_all_is_loaded_or_refused(file: str, content: bytes) -> None:
    loaded_or_refused(file, content)


@given(st.data())
def test_any_value_in_place_of_a_setting_is_loaded_or_refused(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    content = yaml.safe_load(example(file).read_text())
    at = content
    while True:
        step = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else list(range(len(at)))))
        if not at[step] or not isinstance(at[step], dict | list) or data.draw(st.booleans()):
            break
        at = at[step]
    at[step] = data.draw(values)
    if isinstance(at, dict):
        at |= data.draw(st.dictionaries(keys, values, max_size=2))
    loaded_or_refused(file, yaml.safe_dump(content, allow_unicode=True).encode())
