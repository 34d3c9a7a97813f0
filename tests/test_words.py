"""The words of the source: names say what they hold, and a docstring begins with what the thing does or is."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("bronze", "silver", "gold", "expectations", "orchestration")
VAGUE_NAMES = {"of", "each", "found", "told", "known", "begun", "place"}
VAGUE_STARTS = ("Of ", "What ", "Those ", "As ", "By ", "Where ")
ON_DISK = {
    ("orchestration/alerts/stages.py", "told"),
    ("orchestration/alerts/watch.py", "of"),
    ("orchestration/jobs/watched_fields.py", "told"),
    ("orchestration/storage/gate_state.py", "found"),
}
"""Fields of files in lakes: another name would make the files of earlier versions unreadable."""
SETTINGS = {
    *(("orchestration/conf/sample.py", "each"), ("silver/spec.py", "each"), ("gold/alerts/spec.py", "of")),
}
"""Fields that hold settings which users write: `each` of a source, and `of` how many samples an alert flaps."""
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each name that the code binds: variables, parameters and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each text that stands by itself: of modules, classes, functions, constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def vague(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    path = str(file.relative_to(ROOT))
    yield from (
        f"{path}:{line}: the name {name}" for line, name in names(tree) if name in VAGUE_NAMES and (path, name) not in ON_DISK | SETTINGS
    )
    yield from (f"{path}:{line}: {text[:40]!r}" for line, text in docstrings(tree) if text.startswith(VAGUE_STARTS))


def test_names_say_what_they_hold_and_docstrings_begin_with_what_the_thing_does() -> None:
    assert [offence for file in FILES for offence in vague(file)] == []


def test_the_rule_finds_what_it_is_about() -> None:
    tree = ast.parse('def f(of: int) -> int:\n    """What f does."""\n    found = of\n    return found\n')
    assert {name for _, name in names(tree)} == {"of", "found"}
    assert [text for _, text in docstrings(tree)] == ["What f does."]
