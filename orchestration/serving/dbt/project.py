"""The dbt project to run, Tidemark's own or the one in conf. dbt's own files go below the lake, never into a project."""

import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.location import Location

OURS, GOLD = "tidemark", "tidemark_gold"
FILE = "dbt_project.yml"
PACKAGES = "dbt_packages"
DELTA = {"+file_format": "delta"}
DEFAULTS = {"models": DELTA | {"+incremental_strategy": "merge"}, "snapshots": DELTA, "seeds": DELTA}
"""Defaults of the project. Without them dbt-spark appends, whatever the `unique_key`."""


def shipped() -> Path:
    """The project of Tidemark itself."""
    return Path(str(files("gold") / "dbt"))


def work_folder(lake: Location) -> Path:
    """The folder of dbt's own files: profile, target and log."""
    return (lake / "dbt").local


def prepare(conf: Conf) -> Path:
    """The folder of the project that dbt must run."""
    if conf.dbt_project is None:
        return shipped()
    folder = _link_project(conf.dbt_project, work_folder(conf.lake) / "project")
    _declare_gold(folder / PACKAGES / GOLD, conf.groups)
    return folder


def environment(conf: Conf, project: Path) -> dict[str, str]:
    """Environment variables for dbt: its folders, no telemetry, and UTC as in Spark. Writes the profile."""
    folder = work_folder(conf.lake)
    folder.mkdir(parents=True, exist_ok=True)
    output = {"type": "spark", "method": "session", "host": "localhost", "schema": "marts", "threads": conf.engine.cores}
    (folder / "profiles.yml").write_text(yaml.safe_dump({OURS: {"target": "lake", "outputs": {"lake": output}}}))
    return {
        "DBT_PROJECT_DIR": str(project),
        "DBT_PROFILES_DIR": str(folder),
        "DBT_TARGET_PATH": str(folder / "target"),
        "DBT_LOG_PATH": str(folder / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "TZ": "UTC",
    }


def text(project: Path) -> str:
    """All SQL and YAML of the project and its packages; the name of every table that it reads occurs in it."""
    files = (file for folder, _, names in os.walk(project, followlinks=True) for file in map(Path(folder).joinpath, names))
    sources = (file for file in files if file.suffix in {".sql", ".yml", ".yaml"} and GOLD not in file.parts)
    return "\n".join(file.read_text(errors="replace") for file in sources)


def _link_project(project: Path, folder: Path) -> Path:
    """A user's project as dbt sees it: links to its entries, Tidemark's project as its package `tidemark`, and Delta as the file format.

    Packages that `dbt deps` fetched into the project are linked too; what it fetches now stays in `folder`.
    """
    settings = _settings(project)
    own = project / PACKAGES
    packages = {OURS: shipped()} | {package.name: package for package in (own.iterdir() if own.is_dir() else ())}
    links = {folder / PACKAGES / name: package for name, package in packages.items()}
    for entry in project.iterdir():
        if entry.name not in {FILE, PACKAGES, "target", "logs"} and not entry.name.startswith("."):
            links[folder / entry.name] = entry
    (folder / PACKAGES).mkdir(parents=True, exist_ok=True)
    for link in {*folder.iterdir(), *links}:
        if link.is_symlink():
            link.unlink()
    for link, target in links.items():
        if not link.exists():
            link.symlink_to(target)
    (folder / FILE).write_text(yaml.safe_dump(_complete_settings(settings)))
    return folder


def _declare_gold(folder: Path, groups: Iterable[str]) -> None:
    """Declare the tables of all groups, and of each in conf, as source `gold`."""
    kinds = ("aggregates", "aggregates_history", "vectors", "vectors_history", "late")
    tables = [{"name": name} for kind in kinds for name in (kind, *(f"{group}_{kind}" for group in groups))]
    (folder / "models").mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(yaml.safe_dump({"name": GOLD, "version": "1.0.0", "model-paths": ["models"]}))
    source = {"name": "gold", "schema": "gold", "tables": tables}
    (folder / "models" / "sources.yml").write_text(yaml.safe_dump({"version": 2, "sources": [source]}))


def _complete_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the project needs to run here; its own settings take precedence."""
    orders = {entry["macro_namespace"]: entry for entry in settings.get("dispatch") or []}
    order = orders.get("dbt", {"search_order": [settings["name"], "dbt"]})["search_order"]
    if OURS not in order:
        order = [*(package for package in order if package != "dbt"), OURS, "dbt"]
    orders["dbt"] = {"macro_namespace": "dbt", "search_order": order}
    formats = {kind: DEFAULTS[kind] | (settings.get(kind) or {}) for kind in DEFAULTS}
    return {**settings, "profile": OURS, **formats, "dispatch": list(orders.values())}


def _settings(project: Path) -> dict[str, Any]:
    """Settings in dbt_project.yml; ConfError if it is no project."""
    try:
        settings: dict[str, Any] = yaml.safe_load((project / FILE).read_text())
        is_project = isinstance(settings, dict) and isinstance(settings.get("name"), str)
    except (OSError, yaml.YAMLError) as error:
        raise ConfError(f"dbt.project: {project / FILE} cannot be read: {str(error).splitlines()[0]}.") from None
    if not is_project:
        raise ConfError(f"dbt.project: {project / FILE} names no project; write `name: ...`, as dbt asks.")
    return settings
