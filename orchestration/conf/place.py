"""Find the folders that a conf names."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

from gold.flows import TABLE_OF_FLOW
from orchestration.location import Location

if TYPE_CHECKING:
    from silver.metric import Metric


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
        return Place(Location(absolute(folder, pipeline["lake"])), streams, tables, load)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return None


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
