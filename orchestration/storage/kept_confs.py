"""ops.confs: each conf that a lake was run with, and with which of them each bronze batch is read.

The latter stands in the binding of silver's checkpoint, so that each generation knows its own: a replay reads all of bronze with the conf
that it was started with. Runs and `verify` read the same record, so nothing here knows of a layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from orchestration.conf.model import Conf
from orchestration.conf.texts import digest_of, texts_of, with_settings
from orchestration.location import Location
from orchestration.storage.checkpoints import REPAIR
from orchestration.storage.generations import active_generation
from orchestration.storage.log import Log
from orchestration.storage.state_file import StateFile

BINDING = "tidemark.json"
READINGS, ERAS, RETRIES = "silver.readings", "confs", "retries"


@dataclass(frozen=True)
class KeptConf:
    """Grain: one conf that came to run, or that a replay read bronze with; versions are numbered from 1.

    `since_batch`: the first bronze batch that is read with it. `digest`: of the texts; `texts`: settings by file, without secrets.
    """

    version: int
    since_batch: int
    at: datetime
    digest: str
    texts: dict[str, str]


CONFS = Log("ops.confs", KeptConf, order="version")


class Era(NamedTuple):
    """From this bronze batch on silver reads with the conf of that version in ops.confs."""

    since_batch: int
    version: int


def binding_of(checkpoint: Location) -> StateFile[dict[str, Any]]:
    """The file that says what a checkpoint belongs to; see bindings.py."""
    return StateFile(checkpoint / BINDING, dict[str, Any], REPAIR)


def eras(silver: Location) -> list[Era]:
    """List the confs that silver reads bronze with, in order; none where silver has not begun, or began before confs were kept.

    `silver`: the checkpoint of a generation.
    """
    return [Era(*era) for era in (binding_of(silver).read() or {}).get(ERAS, [])]


def retries(silver: Location) -> list[int]:
    """List the versions of confs by which a retry of quarantine has judged events, the newest last."""
    noted: list[int] = (binding_of(silver).read() or {}).get(RETRIES, [])
    return noted


def note(silver: Location, read: Sequence[Era], retried: Sequence[int]) -> None:
    """Write both down, where silver has begun."""
    if binding := binding_of(silver).read():
        binding_of(silver).write(binding | {ERAS: read, RETRIES: retried})


def keep(conf: Conf, since_batch: int, now: datetime) -> int:
    """Append the conf to ops.confs; returns its version."""
    version = max((kept.version for kept in CONFS.newest(conf.lake, 1)), default=0) + 1
    texts = texts_of(conf)
    CONFS.append(conf.lake, [KeptConf(version, since_batch, now, digest_of(texts), texts)])
    return version


@lru_cache(maxsize=32)
def kept_conf(lake: Location, version: int) -> KeptConf | None:
    """Return the conf of a version, which never changes."""
    return next(iter(CONFS.rows(lake, [("version", "=", version)])), None)


def conf_of(conf: Conf, version: int) -> Conf:
    """Return the conf of a version; `conf`, today's, where it says the same, and where this version of Tidemark cannot read the texts."""
    kept = kept_conf(conf.lake, version)
    if kept is None or kept.digest == digest_of(texts_of(conf)):
        return conf
    try:
        return conf if (then := with_settings(conf, kept.texts)) == conf else then  # files may come from another folder now
    except (ValueError, LookupError):
        return conf


def running_conf(conf: Conf) -> Conf:
    """Return the conf with the settings that the lake was run with last: of what is written now it may refuse something."""
    noted = eras(active_generation(conf.lake).checkpoint(conf.lake, READINGS))
    return conf_of(conf, noted[-1].version) if noted else conf
