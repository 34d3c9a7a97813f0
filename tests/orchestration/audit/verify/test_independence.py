"""The second evaluator shares no line with the layers but decoders: what it imports, at any depth, reaches only what the user declared."""

import ast
from collections.abc import Iterator
from pathlib import Path

import orchestration.audit.verify
from orchestration.audit.verify.proofs import EVALUATOR

PACKAGE = orchestration.audit.verify.__name__
ROOT = Path(orchestration.audit.verify.__file__).parents[PACKAGE.count(".") + 1]
LAYERS = {"bronze", "silver", "gold", "expectations"}
DECLARATIONS = {
    *("silver.metric", "silver.spec", "silver.short_forms", "silver.paths", "silver.policy", "silver.aggregation", "silver.text_encoding"),
    *("gold.windows.spec", "gold.flows", "gold.flows.spec", "gold.alerts.spec", "gold.anomalies.spec"),
    *("expectations.rule", "expectations.settings", "expectations.wording"),
}
"""What the user declares, how it is read from conf, and what is wrong with it; nothing of how rows are judged."""
SCHEMAS = {"bronze.schema", "gold.schema"}
"""Names and types of columns."""
DECODERS = {"silver.avro_values", "silver.protobuf_values", "silver.numbers", "silver.records"}
"""Decoders, which verify calls, and what they are made of; all behind them is its own, and so are its readers of binary formats."""
ENGINES = {"pyspark", "delta", "py4j"}
OF_ROWS = {*ENGINES, "pyarrow", "numpy", "duckdb", "sqlglot", "msgspec"}
"""Libraries by which rows are read and judged."""


def reached(root: Path, package: str) -> dict[str, str]:
    """Every module that modules of the package import, and that these import; by name, with a module that imports it."""
    importers = dict.fromkeys(_modules(root, package), package)
    waiting = list(importers)
    while waiting:
        importer = waiting.pop()
        for name in set(_imports(root, importer)) - importers.keys():
            importers[name] = importer
            waiting.append(name)
    return importers


def _modules(root: Path, package: str) -> Iterator[str]:
    for file in sorted((root / package.replace(".", "/")).rglob("*.py")):
        yield ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imports(root: Path, module: str) -> Iterator[str]:
    """Modules that a module of this tree imports anywhere in it. A package on the way to one of them is `package.__init__`: of that only
    the statements count, because its functions are not called."""
    file = _file(root, module)
    tree = ast.parse(file.read_text(encoding="utf-8") if file else "")
    for node in tree.body if module.endswith(".__init__") else ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{module} has a relative import"
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [member if _file(root, member) else node.module for member in members]
        for name in names:
            parts = name.split(".")
            yield from (name, *(".".join([*parts[:length], "__init__"]) for length in range(1, len(parts))))


def _file(root: Path, module: str) -> Path | None:
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def test_of_the_layers_it_reaches_the_declarations_alone() -> None:
    of_layers = {name: importer for name, importer in reached(ROOT, PACKAGE).items() if name.split(".")[0] in LAYERS}
    allowed = DECLARATIONS | SCHEMAS | DECODERS
    others = {name: importer for name, importer in of_layers.items() if not name.endswith(".__init__") and name not in allowed}
    assert {name: importer for name, importer in others.items() if not name.startswith("silver.decoders.")} == {}
    assert of_layers.keys() >= DECLARATIONS


def test_another_version_of_what_it_reaches_of_the_layers_proves_anew() -> None:
    of_layers = {name for name in reached(ROOT, PACKAGE) if name.split(".")[0] in LAYERS and not name.endswith(".__init__")}
    files = {_file(ROOT, name) for name in of_layers - SCHEMAS - {"gold.flows"}}
    assert files <= {file for pattern in EVALUATOR for file in ROOT.glob(pattern)}


def test_it_reaches_no_spark() -> None:
    assert {name: importer for name, importer in reached(ROOT, PACKAGE).items() if name.split(".")[0] in ENGINES} == {}


def test_the_declarations_have_nothing_that_reads_or_judges_rows() -> None:
    for module in DECLARATIONS:
        assert _file(ROOT, module) is not None
        names = {name for name in _imports(ROOT, module) if not name.endswith(".__init__")}
        assert OF_ROWS & {name.split(".")[0] for name in names} == set()
        assert {name for name in names if name.split(".")[0] in LAYERS} <= DECLARATIONS


def test_a_layer_is_found_behind_other_modules_and_inside_functions(tmp_path: Path) -> None:
    sources = {
        "verify/__init__.py": "",
        "verify/check.py": "from shared import retired",
        "shared/__init__.py": "def lazy():\n    import silver.rules",
        "shared/retired.py": "def shapes():\n    from intake import INTAKE\n    return INTAKE",
        "intake.py": "import bronze.events as events",
        "bronze/events.py": "from pyspark.sql import functions",
        "silver/rules.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    importers = reached(tmp_path, "verify")
    assert (importers["shared.retired"], importers["intake"]) == ("verify.check", "shared.retired")
    assert (importers["bronze.events"], importers["pyspark.sql"]) == ("intake", "bronze.events")
    assert "silver.rules" not in importers
