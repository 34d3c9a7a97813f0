"""The files that Spark and Python need to run: a sandboxed process sees these, read-only, and no others."""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from orchestration.engine.java import archive, java_command

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/bin", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache")
"""Shells, libraries and time zones of the operating system, and the list of the libraries; the sandbox recreates links among them."""
PACKAGES = ("bronze", "silver", "gold", "expectations", "orchestration")
"""Without conf: in a clone that folder may hold the conf of the plant."""


def mounts(jars: Iterable[Path]) -> list[Path]:
    """Folders and files to mount, each at its own path; none lies in another."""
    system = [path for path in map(Path, SYSTEM) if not path.is_symlink()]
    folders = [*system, *_python(), java_home(), *_packages()]
    paths = [path for path in dict.fromkeys([*folders, *jars, archive()]) if path.exists()]
    paths += _link_targets_outside(java_home(), paths)
    return [path for path in paths if not any(path != other and path.is_relative_to(other) for other in paths)]


def java_home() -> Path:
    """The folder of the Java that Spark will use, with all links resolved."""
    return Path(java_command()).resolve().parents[1]


def _python() -> Iterator[Path]:
    """The environment of this process and the Python that it was made from: not all of its folder, which may be /usr."""
    yield from (Path(sys.prefix) / name for name in ("bin", "lib", "lib64", "pyvenv.cfg"))
    yield from (Path(sys.base_prefix) / name for name in ("bin", "lib"))


def _packages() -> Iterator[Path]:
    """Tidemark's packages, in a clone or in the environment, and the folder that pyspark is installed in."""
    origins = {name: find_spec(name) for name in (*PACKAGES, "pyspark")}
    folders = {name: Path(spec.origin).parent for name, spec in origins.items() if spec and spec.origin}
    yield from (folders[name] for name in PACKAGES)
    yield folders["pyspark"].parent


def _link_targets_outside(folder: Path, mounted: list[Path]) -> list[Path]:
    """Targets of links in a folder that are not mounted yet: Debian keeps the settings of its Java in /etc."""
    targets = {Path(os.readlink(link)) for link in folder.rglob("*") if link.is_symlink()}
    existing = [target for target in targets if target.is_absolute() and target.exists()]
    return sorted(target for target in existing if not any(target.is_relative_to(path) for path in mounted))
