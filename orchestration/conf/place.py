"""Find the folders that a conf names."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

from gold.flows import TABLE_OF_FLOW
from orchestration.location import Location
from orchestration.secrets import REFERENCE
from orchestration.stores.object_store import SCHEME, ObjectStore

if TYPE_CHECKING:
    from silver.metric import Metric

ADDRESS = r"[a-z0-9][a-z0-9.-]{1,62}(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+"


def absolute(folder: Path, path: str, *, follows_links: bool = True) -> Path:
    """Relative paths start at the parent of the conf folder; `~` and `${VARIABLE}` expand.

    Raises ValueError with the second half of a sentence for a path that cannot be resolved.
    """
    try:
        expanded = os.path.expanduser(Template(path).substitute(os.environ))
        whole = folder.resolve().parent / expanded
        return whole.resolve() if follows_links else whole
    except KeyError as error:
        raise ValueError(f"names the variable {error.args[0]}, which is not set; set it, or write the path out") from None
    except ValueError:
        raise ValueError("holds a $ that names no variable; write ${NAME}, or $$ for a dollar sign") from None
    except (OSError, RuntimeError):
        raise ValueError("cannot be resolved; look for links that lead in a circle") from None


def with_absolute_path(folder: Path, text: str) -> str:
    """A reference for whoever does not know the conf in `folder`; any other text as it is. Links stay: a secret may be renewed."""
    match = re.fullmatch(REFERENCE, text)
    is_file = match is not None and match[1].startswith("file:")
    return f"${{file:{absolute(folder, text[len('${file:') : -1], follows_links=False)}}}" if is_file else text


def lake_path(folder: Path, text: str) -> PurePath:
    """Read the address of a lake: a path, or s3://BUCKET/PREFIX, of which BUCKET/PREFIX is returned. ValueError as of `absolute`."""
    if not text.startswith(SCHEME):
        return absolute(folder, text)
    try:
        path = Template(text.removeprefix(SCHEME)).substitute(os.environ)
    except KeyError as error:
        raise ValueError(f"names the variable {error.args[0]}, which is not set; set it, or write the address out") from None
    if not re.fullmatch(ADDRESS, path):
        raise ValueError("is no address of a lake in an object store; write s3://BUCKET/PREFIX, such as s3://plant/lake")
    return PurePosixPath(path)


def lake_in(path: PurePath, store: ObjectStore) -> Location:
    """The lake at a path as `lake_path` reads it: one that is absolute is a folder."""
    return Location(path) if path.is_absolute() else Location(path, store)


@dataclass(frozen=True)
class GroupWindows:
    """Inputs of the windows of a group. `keeps_late_aside`: late rows do not count in them."""

    metrics: "tuple[Metric, ...]"
    keeps_late_aside: bool


@dataclass(frozen=True)
class Place:
    """The part of a conf that SQL needs: the lake, the stream of each group, and the kind of table of each flow.

    `load`: for a query that reads open windows.
    """

    lake: Location
    stream_of: dict[str, str]
    table_of_flow: dict[str, str]
    load: Callable[[], Mapping[str, GroupWindows]]

    @cached_property
    def group_windows(self) -> Mapping[str, GroupWindows]:
        """Inputs of the windows of each group. ConfError for a conf with mistakes."""
        return self.load()


def place_of(folder: Path, load: Callable[[], Mapping[str, GroupWindows]] = dict) -> Place | None:
    """Read the place from a conf without a check of the rest, which takes half a second; None if `load` will say why."""
    try:
        pipeline, groups = (_read(folder / name) for name in ("pipeline.yml", "groups.yml"))
        streams = {name: group.get("stream") or name for name, group in groups["groups"].items()}
        flows = _read(file)["flows"] if (file := folder / "flows.yml").exists() else None
        tables = {name: TABLE_OF_FLOW[(flow.keys() & TABLE_OF_FLOW.keys()).pop()] for name, flow in (flows or {}).items()}
        keys = {name: value and with_absolute_path(folder, value) for name, value in (pipeline.get("store") or {}).items()}
        return Place(
            lake_in(
                lake_path(folder, pipeline["lake"]),
                ObjectStore(keys.get("endpoint"), keys.get("region"), keys.get("access_key"), keys.get("secret_key")),
            ),
            streams,
            tables,
            load,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return None


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
