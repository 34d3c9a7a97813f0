"""What Spark and its Python need of this machine to run: the files that a process behind the fence can see, and no others."""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from orchestration.engine.class_archive import archive
from orchestration.engine.java import java_command

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/bin", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache")
"""Shells, libraries and time zones of the operating system, and the list of the libraries; links among them are made anew by the fence."""
PACKAGES = ("bronze", "silver", "gold", "expectations", "orchestration")
"""Without conf: in a clone that is the folder which the conf of the plant may be kept in."""


def provisions(jars: Iterable[Path]) -> list[Path]:
    """Folders and files, each at its own path; none lies in another."""
    system = [path for path in map(Path, SYSTEM) if not path.is_symlink()]
    folders = [*system, *_python(), java_home(), *_packages()]
    files = [*jars, archive()]
    found = [path for path in dict.fromkeys([*folders, *files]) if path.exists()]
    found += _linked_from(java_home(), found)
    return [path for path in found if not any(path != other and path.is_relative_to(other) for other in found)]


def java_home() -> Path:
    """The folder of the Java that Spark will use, behind all links."""
    return Path(java_command()).resolve().parents[1]


def _python() -> Iterator[Path]:
    """The environment of this process and the Python that it was made from: not all of its folder, which may be /usr."""
    yield from (Path(sys.prefix) / name for name in ("bin", "lib", "lib64", "pyvenv.cfg"))
    yield from (Path(sys.base_prefix) / name for name in ("bin", "lib"))


def _packages() -> Iterator[Path]:
    """Ours, which lie in a clone or among those of the environment, and the folder that pyspark was installed into."""
    origins = {name: find_spec(name) for name in (*PACKAGES, "pyspark")}
    places = {name: Path(spec.origin).parent for name, spec in origins.items() if spec and spec.origin}
    yield from (places[name] for name in PACKAGES)
    yield places["pyspark"].parent


def _linked_from(folder: Path, known: list[Path]) -> list[Path]:
    """Files elsewhere that links in a folder lead to: Debian keeps the settings of its Java in /etc."""
    targets = {Path(os.readlink(link)) for link in folder.rglob("*") if link.is_symlink()}
    outside = [target for target in targets if target.is_absolute() and target.exists()]
    return sorted(target for target in outside if not any(target.is_relative_to(path) for path in known))
