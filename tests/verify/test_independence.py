"""The second evaluator shares nothing with the layers but the words: frozen data classes of conf, as written or remembered, and errors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import orchestration.verify

FOLDER = Path(orchestration.verify.__file__).parent
OURS = {"bronze", "silver", "gold", "expectations", "orchestration", "conf"}
WORDS = {"silver.spec", "gold.spec", "expectations.rule"} | {
    f"orchestration.{word}" for word in ("conf.model", "errors", "former_sources", "generations", "snapshot")
}
ENGINES = {"pyspark", "delta", "py4j"}


def imports() -> Iterator[tuple[str, str]]:
    """Module of the evaluator, module that it imports."""
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            yield from ((file.name, name) for name in names)


def test_of_ours_it_imports_the_words_and_itself() -> None:
    taken = {name for _, name in imports() if name.split(".")[0] in OURS and not name.startswith("orchestration.verify")}
    assert taken == WORDS


def test_it_imports_no_spark() -> None:
    assert [found for found in imports() if found[1].split(".")[0] in ENGINES] == []
