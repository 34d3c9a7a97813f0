"""The shape of the tree: which room may know which, what a layer may touch, how long things may grow, and what no file may name."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("bronze", "silver", "gold")
ROOMS = (*LAYERS, "expectations", "orchestration")
MAY_IMPORT = {
    "bronze": {"bronze"},
    "silver": {"silver", "bronze", "expectations"},
    "gold": {"gold", "silver", "bronze", "expectations"},
    "expectations": {"expectations"},
    "orchestration": {*ROOMS},
    "conf": set(),
}
ORDER = (
    *("cli", "service", "web", "supervisor", "serving", "flows", "audit", "quality", "jobs", "engine", "flow", "alerts"),
    *("connectors", "storage", "conf", "column_texts", "rendering", "crash", "location", "stores", "secrets"),
    *("errors", "utc", "end_signals"),
)
"""Rooms of orchestration, from top to bottom: a room imports only what stands below it."""
TOP_LEVEL = {
    *("bronze", "silver", "gold", "expectations", "orchestration", "tests", "conf", ".ci"),
    *(
        "README.md",
        "pipeline.svg",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
    ),
    *("Makefile", "pyproject.toml", "requirements.lock", "requirements-uv.lock"),
}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "base", "core", "shared"}
IO_OF_A_DATAFRAME = {
    "read",
    "readStream",
    "write",
    "writeStream",
    "writeTo",
    "collect",
    "toPandas",
    "toLocalIterator",
    "toArrow",
    "foreach",
}
IO_CALLS = {"open", "print", "input", "exec", "eval"}
IO_MODULES = {"os", "io", "pathlib", "shutil", "subprocess", "socket", "threading", "time", "tempfile", "deltalake", "sqlite3", "requests"}
CLOCKS = {"now", "utcnow", "today", "current_timestamp", "current_date", "localtimestamp", "unix_timestamp"}
LONGEST_FILE, LONGEST_FUNCTION = 300, 40
HOSTS = r"repo1?\.maven|maven\.org|maven\.google|pypi\.org|pythonhosted|crates\.io|npmjs|artifactory|nexus\.|conda\.anaconda"
MACHINE_PATHS = r"(?<![\w.])/(?:root|Users|work|opt|mnt)/\w"


def tracked() -> list[Path]:
    """Files that belong to the repository: what git knows, and what it would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


FILES = tracked()
MODULES = [file for file in FILES if file.suffix == ".py"]
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in MODULES}


def room_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0]


def imported(tree: ast.Module) -> Iterator[str]:
    """Names of the modules that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def in_layers() -> list[Path]:
    return [file for file in MODULES if room_of(file) in LAYERS]


def test_the_tree_that_is_looked_at_is_not_empty() -> None:
    assert {room_of(file) for file in MODULES} >= {*ROOMS, "tests"}


def test_arrows_point_from_gold_to_silver_to_bronze_and_nothing_imports_orchestration() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in MODULES
        if (room := room_of(file)) in MAY_IMPORT
        for name in imported(TREES[file])
        if name.startswith(".") or (name.split(".")[0] in {*ROOMS, "tests"} - MAY_IMPORT[room])
    ]
    assert wrong == []


def test_from_bronze_other_layers_take_schemas_only() -> None:
    taken = {name for file in MODULES if room_of(file) in {"silver", "gold"} for name in imported(TREES[file]) if name.startswith("bronze")}
    assert taken <= {"bronze.schema"}


def imported_modules(file: Path) -> Iterator[str]:
    """Modules of orchestration that a module imports, anywhere in it; also those imported as a name of their package."""
    for node in ast.walk(TREES[file]):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "orchestration":
            for alias in node.names:
                submodule = ROOT.joinpath(*node.module.split("."), f"{alias.name}.py")
                yield f"{node.module}.{alias.name}" if submodule.exists() else node.module


def rank(module: str) -> int:
    """Of the room that a module of orchestration is in, counted from the top."""
    return ORDER.index(module.split(".")[1])


def in_orchestration() -> Iterator[tuple[str, Path]]:
    """Modules in rooms of orchestration, by name; orchestration itself only offers Lake."""
    for file in MODULES:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module.startswith("orchestration."):
            yield module, file


def test_a_room_of_orchestration_imports_only_rooms_below_it() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, file in in_orchestration()
        for name in imported_modules(file)
        if name != "orchestration" and rank(name) < rank(module)
    ]
    assert wrong == []


def test_only_storage_imports_deltalake() -> None:
    assert [
        module
        for module, file in in_orchestration()
        if not module.startswith("orchestration.storage") and any(name.split(".")[0] == "deltalake" for name in imported(TREES[file]))
    ] == []


ON_THE_HOST = {
    *("alerts.tails", "cli.up", "connectors", "engine.lake", "engine.writing", "jobs.account.retry", "jobs.bronze", "location"),
    *("service", "serving.dbt.project", "serving.postgres.address", "storage", "stores", "web.facts"),
    *("supervisor.health", "supervisor.history", "supervisor.service_state", "supervisor.status"),
}
"""Modules and rooms that keep locks, logs, scratch, claims, spools or the state of `up` on this host, whatever store the lake is in."""


def test_only_modules_that_keep_something_on_this_host_ask_a_location_for_a_path_there() -> None:
    asking = {module.removeprefix("orchestration.") for module, file in in_orchestration() if "local" in dict(attributes(file))}
    assert {
        module for module in asking if module not in ON_THE_HOST and not any(module.startswith(f"{room}.") for room in ON_THE_HOST)
    } == set()


def attributes(file: Path) -> Iterator[tuple[str, int]]:
    """Names after a dot, with their line."""
    yield from ((node.attr, node.lineno) for node in ast.walk(TREES[file]) if isinstance(node, ast.Attribute))


def test_layers_do_no_input_and_no_output() -> None:
    wrong = []
    for file in in_layers():
        name = file.relative_to(ROOT)
        called = [node.func.id for node in ast.walk(TREES[file]) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        wrong += [f"{name}:{line} .{attribute}" for attribute, line in attributes(file) if attribute in IO_OF_A_DATAFRAME]
        wrong += [f"{name} calls {function}()" for function in called if function in IO_CALLS]
        wrong += [f"{name} imports {module}" for module in imported(TREES[file]) if module.split(".")[0] in IO_MODULES]
        wrong += [f"{name} has a session" for node in ast.walk(TREES[file]) if isinstance(node, ast.alias) and node.name == "SparkSession"]
    assert wrong == []


def test_layers_read_no_clock() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line} {attribute}"
        for file in in_layers()
        for attribute, line in attributes(file)
        if attribute in CLOCKS
    ]
    assert wrong == []


def test_layers_make_no_column_at_import() -> None:
    """`F.col` needs a session, which is not there when a module is imported."""
    made = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in in_layers()
        for statement in TREES[file].body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value
        for node in evaluated(statement.value)
        if isinstance(node, ast.Name) and node.id == "F"
    ]
    assert made == []


def evaluated(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that run when the module is imported: all but the bodies of lambdas."""
    if isinstance(node, ast.expr):
        yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from evaluated(child)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_stay_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    functions = [node for node in ast.walk(TREES[file]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [node.name for node in functions if (node.end_lineno or node.lineno) - node.lineno + 1 > LONGEST_FUNCTION] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(file.relative_to(ROOT)) for file in MODULES if {file.stem, *file.relative_to(ROOT).parts[:-1]} & BANNED_NAMES] == []


def test_modules_say_what_they_promise() -> None:
    silent = [str(file.relative_to(ROOT)) for file in MODULES if TREES[file].body and not ast.get_docstring(TREES[file])]
    assert silent == []


def test_the_top_level_is_fixed() -> None:
    top = {room_of(file) for file in FILES}
    assert {name for name in top - TOP_LEVEL if not name.startswith(".") or (ROOT / name).is_dir()} == set()


def test_tests_have_no_packages() -> None:
    assert [str(file.relative_to(ROOT)) for file in MODULES if room_of(file) == "tests" and file.name == "__init__.py"] == []


def test_every_package_is_listed_in_pyproject() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    in_tree = {".".join(file.relative_to(ROOT).parent.parts) for file in MODULES if room_of(file) in ROOMS}
    assert in_tree == {name for name in setuptools["packages"] if name.split(".")[0] in ROOMS}


def test_every_data_file_of_a_package_is_shipped() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    patterns = [f"{package.replace('.', '/')}/{pattern.replace('**/', '')}" for package, found in data.items() for pattern in found]
    files = [
        str(file.relative_to(ROOT)) for file in FILES if room_of(file) in {*ROOMS, "conf"} and file.suffix not in {".py", ".md", ".png"}
    ]
    assert [file for file in files if not any(fnmatch(file, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("pattern", [HOSTS, MACHINE_PATHS], ids=["registry", "machine path"])
def test_no_file_names_a_package_registry_or_a_path_of_one_machine(pattern: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for file in FILES
        if file != Path(__file__) and file.suffix not in {".png", ".gz", ".parquet"}
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert wrong == []


def test_a_step_of_make_has_no_comma_which_would_end_it() -> None:
    steps = re.findall(r"\$\(call step,(.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [step for step in steps if "," in step] == []
