"""A file that cannot be read is one line; what YAML can do is either read as YAML 1.2 says or refused in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.document import read_document
from orchestration.conf.load import load

UNREADABLE = [
    pytest.param(b"", "1: is empty; `tidemark init DIR` writes a conf folder with an example of it", id="empty"),
    pytest.param(b"# only this\n", "1: is empty; `tidemark init DIR` writes a conf folder with an example of it", id="comment"),
    pytest.param(b"a: 1\n---\nb: 2\n", "2: holds a second document ('---'); keep one document in a file", id="documents"),
    pytest.param(b"a:\n\tb: 1\n", "2: is indented with a tab; YAML wants spaces", id="tab"),
    pytest.param(b"a: 1\nb: \xff\n", "2: is not UTF-8 (byte 0xff); save the file as UTF-8", id="not UTF-8"),
    pytest.param(b"a: 1\nb: \x01\n", "2: holds the control character U+0001; remove it", id="control character"),
    pytest.param(b"[" * 100_000, "1: is nested deeper than 20 levels, which no setting is; check the brackets", id="deep"),
    pytest.param(b"a: &a [*a]\n", "1: names an anchor that contains itself; write the value out", id="circle"),
    pytest.param(b"a: *b\nb: &b 1\n", "1: names an anchor that is not there before it; write the value out", id="anchor behind its alias"),
    pytest.param(b"a: &a {<<: *a}\n", "1: names an anchor that contains itself; write the value out", id="circle of merges"),
    pytest.param(
        b"a0: &a0 [1]\n" + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)),
        "8: becomes too large when its aliases are written out; use fewer of them",
        id="aliases of aliases",
    ),
]


@pytest.mark.parametrize(("content", "line"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_one_line(content: bytes, line: str, folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    (folder / "rules.yml").write_bytes(content)
    assert mistakes_after() == [f"conf/rules.yml:{line}"]


def test_rules_may_be_missing(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    (folder / "rules.yml").unlink()
    assert mistakes_after() == []
    assert load(folder).rules == ()


def test_what_yaml_cannot_parse_is_told_with_its_line(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    (folder / "rules.yml").write_text("rules:\n  a: {holds: b\n")
    (line,) = mistakes_after()
    assert line.startswith("conf/rules.yml:3: is not YAML: while parsing a flow mapping did not find expected ',' or '}'; check quotes")


def test_a_missing_file_is_one_line_and_hides_no_other_mistake(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    (folder / "metrics.yml").unlink()
    assert mistakes_after(("devices", "zone: hall-1", "zome: hall-1")) == [
        "conf/devices.yml:6: oven-01.zome is not a setting; did you mean 'zone'?",
        "conf/metrics.yml:1: is missing; `tidemark init DIR` writes a whole conf folder to start from",
    ]


def test_a_missing_folder_is_one_line(tmp_path: Path, mistakes_after: Callable[..., list[str]], folder: Path) -> None:
    folder.rename("elsewhere")
    assert mistakes_after() == ["conf:1: is not a folder; name the conf folder with --conf, or write one with `tidemark init DIR`"]


@pytest.mark.parametrize("content", ["- a\n", "text\n", "5\n"])
def test_a_file_that_is_no_mapping_is_one_line(content: str, folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    (folder / "rules.yml").write_text(content)
    (line,) = mistakes_after()
    assert line.startswith("conf/rules.yml:1: the file is a ")
    assert "but must be a mapping" in line


def read(tmp_path: Path, text: str) -> tuple[object, list[str]]:
    """The data of a YAML text, and its mistakes without the path."""
    file = tmp_path / "a.yml"
    file.write_text(text)
    document, mistakes = read_document(file)
    return document.data if document else None, [str(mistake).removeprefix(f"{file}:") for mistake in mistakes]


def test_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    text = "[no, on, 12:30, 0123, 2026-01-01, 1_000, 12, -0.5, 1e-3, .5, true, null, ~, 'true']"
    values = ["no", "on", "12:30", "0123", "2026-01-01", "1_000", 12, -0.5, 0.001, 0.5, True, None, None, "true"]
    assert read(tmp_path, text) == (values, [])


def test_keys_are_texts(tmp_path: Path) -> None:
    assert read(tmp_path, "{1: a, no: b, 2026-01-01: c, null: d}") == ({"1": "a", "no": "b", "2026-01-01": "c", "null": "d"}, [])


def test_own_keys_win_over_merged_ones_and_earlier_merges_over_later(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\n"
    data, mistakes = read(tmp_path, text)
    assert isinstance(data, dict)
    assert (data["c"], mistakes) == ({"x": 3, "y": 1, "z": 2}, [])


def test_a_mistake_in_a_merged_setting_is_told_where_it_is_written(mistakes_after: Callable[..., list[str]]) -> None:
    lines = mistakes_after(
        ("devices", "{groups: [kitchen, building], zone: hall-1}", "&oven\n    groups: [kitchen, building]\n    zome: hall-1"),
        ("devices", "oven-02: {groups: [kitchen, building], zone: hall-1}", "oven-02: {<<: *oven}"),
    )
    assert lines == [f"conf/devices.yml:8: {device}.zome is not a setting; did you mean 'zone'?" for device in ("oven-01", "oven-02")]


REFUSED = [
    pytest.param("a: 1\nb: 2\na: 3\n", "3: 'a' is there twice, first on line 1; keep one", id="duplicate key"),
    pytest.param(
        "a: !!python/name:os.system x\n", "1: the tag 'tag:yaml.org,2002:python/name:os.system' is not read here; remove it", id="tag"
    ),
    pytest.param("a: !b {c: 1}\n", "1: the tag '!b' is not read here; remove it", id="tag of a mapping"),
    pytest.param("? [a]\n: 1\n", "1: a list or mapping cannot be a key; write a text", id="key"),
    pytest.param("a: {<<: 5}\n", "1: '<<' merges mappings only; name the anchor of a mapping", id="merge"),
    pytest.param("a: !!int x\n", "1: 'x' is not a number that can be used; write a finite one of at most 18 digits", id="int"),
    pytest.param("a: .nan\n", "1: '.nan' is not a number that can be used; write a finite one of at most 18 digits", id="nan"),
    pytest.param("a: 1e999\n", "1: '1e999' is not a number that can be used; write a finite one of at most 18 digits", id="overflow"),
]


@pytest.mark.parametrize(("text", "line"), REFUSED)
def test_what_could_surprise_is_refused(text: str, line: str, tmp_path: Path) -> None:
    assert read(tmp_path, text)[1] == [line]


def test_a_byte_order_mark_and_windows_line_ends_are_read(folder: Path) -> None:
    expected = load(folder)
    for file in folder.glob("*.yml"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert load(folder) == expected
