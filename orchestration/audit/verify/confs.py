"""Which conf each bronze batch was read with, read once more: from ops.confs and from what silver's checkpoint was bound to.

`with_settings` is a declaration: it reads settings as conf does, and judges no row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.conf.model import Conf
from orchestration.conf.texts import Texts, digest_of, texts_of, with_settings
from orchestration.location import Location
from orchestration.storage.delta import path_of, rows_of
from orchestration.storage.generations import Generation, active_generation
from orchestration.storage.state_file import StateFile

DAMAGED = "Restore the checkpoint of silver.readings, or run `tidemark replay`."


@dataclass(frozen=True)
class ConfEra:
    """Bronze batches from `since_batch` on were read with this conf, until the next era."""

    since_batch: int
    conf: Conf


@dataclass(frozen=True)
class ConfHistory:
    """Eras in order, at least one. `retried`: confs with which events in quarantine were looked at again, the newest last."""

    eras: Sequence[ConfEra]
    retried: Sequence[Conf] = ()

    @property
    def running(self) -> Conf:
        """The conf of the newest era: gold goes on with it."""
        return self.eras[-1].conf

    def since_batch(self, group: str, metric: str) -> int:
        """The first bronze batch from which on the group has had the metric all the time."""
        since: int | None = None
        for era in self.eras:
            has_it = group in era.conf.groups and metric in era.conf.groups[group].metrics
            since = None if not has_it else era.since_batch if since is None else since
        return since or 0


def running_conf(conf: Conf) -> Conf:
    """Return the conf with which the lake runs: what is written now may not be taken up."""
    return conf_history(conf, active_generation(conf.lake)).running


def conf_history(conf: Conf, generation: Generation) -> ConfHistory:
    """Read the confs of a generation; today's alone where the lake keeps none yet."""
    binding = _binding(generation.checkpoint(conf.lake, "silver.readings"))
    noted, retries = binding.get("confs", []), binding.get("retries", [])
    if not noted:
        return ConfHistory([ConfEra(0, conf)])
    texts: dict[int, Texts] = {row["version"]: dict(row["texts"]) for row in rows_of(path_of(conf.lake, "ops.confs"))}
    confs = {version: _as_kept(conf, texts.get(version)) for version in {*(version for _, version in noted), *retries}}
    return ConfHistory([ConfEra(since, confs[version]) for since, version in noted], [confs[version] for version in retries])


def _binding(checkpoint: Location) -> Mapping[str, Any]:
    return StateFile(checkpoint / "tidemark.json", dict[str, Any], DAMAGED).read() or {}


def _as_kept(conf: Conf, texts: Texts | None) -> Conf:
    """Today's conf where it says the same, and where this version of Tidemark cannot read the texts."""
    if texts is None or digest_of(texts) == digest_of(texts_of(conf)):
        return conf
    try:
        return conf if (kept := with_settings(conf, texts)) == conf else kept  # files may come from another folder now
    except (ValueError, LookupError):
        return conf
