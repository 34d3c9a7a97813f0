"""The confs that bronze batches were read with, from the record of the lake: see storage/kept_confs.py."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestration.conf.model import Conf
from orchestration.storage.generations import Generation
from orchestration.storage.kept_confs import READINGS, conf_of, eras, retries


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


def conf_history(conf: Conf, generation: Generation) -> ConfHistory:
    """Read the confs of a generation; today's alone where the lake keeps none yet."""
    silver = generation.checkpoint(conf.lake, READINGS)
    read = [ConfEra(since_batch, conf_of(conf, version)) for since_batch, version in eras(silver)]
    return ConfHistory(read or [ConfEra(0, conf)], [conf_of(conf, version) for version in retries(silver)])
