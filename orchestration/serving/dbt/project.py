"""The dbt project that runs, ours or the one that conf names, and where dbt's own files go: below the lake, never into a project."""

import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from orchestration.conf.model import Conf
from orchestration.errors import ConfError

OURS, GOLD = "tidemark", "tidemark_gold"
FILE = "dbt_project.yml"
PACKAGES = "dbt_packages"
FOLDERS = ("models", "snapshots", "seeds")
DELTA = {"+file_format": "delta"}


def shipped() -> Path:
    """The project of Tidemark itself."""
    return Path(str(files("gold") / "dbt"))


def below(lake: Path) -> Path:
    """Where dbt's files go: its profile, target and log."""
    return lake / "dbt"


def prepared(conf: Conf) -> Path:
    """The folder of the project that dbt is to run."""
    if conf.dbt_project is None:
        return shipped()
    folder = _adopted(conf.dbt_project, below(conf.lake) / "project")
    _declare_gold(folder / PACKAGES / GOLD, conf.groups)
    return folder


def surroundings(conf: Conf, project: Path) -> dict[str, str]:
    """What dbt reads from the environment. It tells nobody anything, and takes hours as Spark gives them, in UTC."""
    place = below(conf.lake)
    place.mkdir(parents=True, exist_ok=True)
    _write_profile(place, conf.engine.cores)
    return {
        "DBT_PROJECT_DIR": str(project),
        "DBT_PROFILES_DIR": str(place),
        "DBT_TARGET_PATH": str(place / "target"),
        "DBT_LOG_PATH": str(place / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DO_NOT_TRACK": "1",
        "TZ": "UTC",
    }


def text(project: Path) -> str:
    """All that is written in it and its packages: a table that it can mean is named in there."""
    written = (file for folder, _, names in os.walk(project, followlinks=True) for file in map(Path(folder).joinpath, names))
    told = (file for file in written if file.suffix in {".sql", ".yml", ".yaml"} and GOLD not in file.parts)
    return "\n".join(file.read_text(errors="replace") for file in told)


def _write_profile(place: Path, threads: int) -> None:
    output = {"type": "spark", "method": "session", "host": "localhost", "schema": "marts", "threads": threads}
    (place / "profiles.yml").write_text(yaml.safe_dump({OURS: {"target": "lake", "outputs": {"lake": output}}}))


def _adopted(project: Path, folder: Path) -> Path:
    """A user's project as dbt is to see it: its entries by links, our project as its package `tidemark`, and Delta as what tables are.

    Packages that `dbt deps` fetched into the project are linked too; what it fetches now stays in `folder`.
    """
    settings = _settings(project)
    (folder / PACKAGES).mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_symlink():
            entry.unlink()
    for entry in project.iterdir():
        if entry.name not in {FILE, PACKAGES, "target", "logs"} and not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    own = project / PACKAGES
    for package in [shipped(), *(own.iterdir() if own.is_dir() else ())]:
        link = folder / PACKAGES / (OURS if package == shipped() else package.name)
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(package)
    (folder / FILE).write_text(yaml.safe_dump(_completed(settings)))
    return folder


def _declare_gold(folder: Path, groups: Iterable[str]) -> None:
    """Tables of groups as source `gold`, which no project can know before the conf does."""
    kinds = ("aggregates", "aggregates_history", "vectors", "vectors_history", "late")
    tables = [{"name": f"{group}_{kind}"} for group in groups for kind in kinds]
    (folder / "models").mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(yaml.safe_dump({"name": GOLD, "version": "1.0.0", "model-paths": ["models"]}))
    source = {"name": "gold", "schema": "gold", "tables": tables}
    (folder / "models" / "sources.yml").write_text(yaml.safe_dump({"version": 2, "sources": [source]}))


def _completed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With what makes the project run here; what it says itself holds."""
    mine = dict(settings) | {"profile": OURS}
    for kind in FOLDERS:
        mine[kind] = DELTA | (settings.get(kind) or {})
    orders = {each["macro_namespace"]: each for each in settings.get("dispatch") or []}
    order = orders.get("dbt", {"search_order": [settings["name"], "dbt"]})["search_order"]
    if OURS not in order:
        order = [*(each for each in order if each != "dbt"), OURS, "dbt"]
    mine["dispatch"] = [*(each for name, each in orders.items() if name != "dbt"), {"macro_namespace": "dbt", "search_order": order}]
    return mine


def _settings(project: Path) -> dict[str, Any]:
    """Of dbt_project.yml; ConfError where dbt would not take it for a project."""
    try:
        settings: dict[str, Any] = yaml.safe_load((project / FILE).read_text())
        is_project = isinstance(settings, dict) and isinstance(settings.get("name"), str)
    except (OSError, yaml.YAMLError) as error:
        raise ConfError(f"dbt.project: {project / FILE} cannot be read: {str(error).splitlines()[0]}.") from None
    if not is_project:
        raise ConfError(f"dbt.project: {project / FILE} names no project; write `name: ...`, as dbt asks.")
    return settings
