"""ops.confs: each conf that the lake was run with. Silver reads a bronze batch with the conf that ran when the batch came.

Which version that is stands in the binding of silver's checkpoint, so that each generation knows its own: a replay reads all of bronze with
the conf that it was started with.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from orchestration.conf.changes import Change, Consequence, changes, grouped, line_of
from orchestration.conf.load import accepted_files, load, read_conf
from orchestration.conf.model import Conf
from orchestration.conf.texts import digest_of, settings_in, texts_of, with_settings
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.bindings import (
    Era,
    HeldBack,
    begin_era,
    changed_plan,
    eras,
    knows_group,
    pipeline_of,
    plan_of_flow,
    retries,
)
from orchestration.storage.log import Log
from orchestration.storage.positions import step_file
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets
from orchestration.storage.tables import LakeStore

REPLAY = "tidemark replay"


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


def files_in(lake: Location) -> Path:
    """Return the folder with the files of the conf that ran last, secrets and all, for parts of `up` that have to start again."""
    return (lake / "up" / "conf").local


def keep_files(conf: Conf) -> None:
    """Copy the files of a conf that is taken up, if they still say what it says."""
    written = {file.name: file.read_bytes() for file in sorted(conf.folder.glob("*.yml"))} if conf.folder.is_dir() else {}
    kept = files_in(conf.lake)
    if not written or written == {file.name: file.read_bytes() for file in sorted(kept.glob("*.yml"))}:
        return
    draft = kept.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    for name, content in written.items():
        (draft / name).write_bytes(content)
    if texts_of(read_conf(conf.folder, draft)) == texts_of(conf):
        shutil.rmtree(kept, ignore_errors=True)
        draft.rename(kept)


def conf_to_run(folder: Path) -> Conf:
    """Return the conf in a folder; in a part of `up` the one that ran last, where the lake cannot go on with it."""
    conf, accepted = load(folder), accepted_files()
    if accepted is not None and held_back(LakeStore(conf)):
        before = read_conf(folder, accepted)
        return running_conf(LakeStore(conf)) if held_back(LakeStore(before)) else before  # after a rollback it is neither
    return conf


def running(lake: LakeStore) -> KeptConf | None:
    """Return the conf that the lake was run with last; None for a lake that keeps none yet."""
    noted = eras(lake)
    return _kept(lake.conf.lake, noted[-1].version) if noted else None


def running_conf(lake: LakeStore) -> Conf:
    """Return the conf with the settings that the lake was run with last: of what is written now it may refuse something."""
    kept = running(lake)
    return lake.conf if kept is None or kept.digest == digest_of(texts_of(lake.conf)) else conf_of(lake, kept.version)


def conf_of(lake: LakeStore, version: int) -> Conf:
    """Return the conf of a version, or today's where this version of Tidemark cannot read its texts."""
    kept = _kept(lake.conf.lake, version)
    try:
        return with_settings(lake.conf, kept.texts) if kept else lake.conf
    except (ValueError, LookupError):
        return lake.conf


def take_up(lake: LakeStore, now: datetime) -> None:
    """Keep the conf of a run that begins, if it is another than that of the run before; it holds from the next bronze batch on."""
    before, digest = running(lake), digest_of(texts_of(lake.conf))
    if before is None or before.digest != digest:
        following = next_bronze_batch(source_offsets(lake.table_path("bronze.events"))) if before else 0
        begin_era(lake, Era(following, keep(lake, following, now)))


def confs_of_replay(lake: LakeStore, first: int, now: datetime) -> tuple[list[Era], list[int]]:
    """Return the eras and retries of a generation that reads bronze anew from a batch on; what is before that is copied."""
    before, digest = running(lake), digest_of(texts_of(lake.conf))
    version = before.version if before and before.digest == digest else keep(lake, first, now)
    copied = [era for era in eras(lake) if era.since_batch < first]
    return [*copied, Era(first, version)], retries(lake) if copied else []


def keep(lake: LakeStore, since_batch: int, now: datetime) -> int:
    """Append the conf to ops.confs; returns its version."""
    version = max((kept.version for kept in CONFS.newest(lake.conf.lake, 1)), default=0) + 1
    texts = texts_of(lake.conf)
    CONFS.append(lake.conf.lake, [KeptConf(version, since_batch, now, digest_of(texts), texts)])
    return version


def former_confs(lake: LakeStore, after: int) -> list[tuple[int, Conf]]:
    """List confs of bronze batches after one that are read with another than the running one: the first batch behind each, and the conf."""
    noted = eras(lake)
    return [(following.since_batch, conf_of(lake, era.version)) for era, following in pairwise(noted) if following.since_batch > after + 1]


def unreplayed_changes(lake: LakeStore) -> list[tuple[Change, int]]:
    """List settings by which earlier batches would be read otherwise, and since which batch they hold; none after a replay."""
    return list(_unreplayed(lake.conf.lake, tuple(eras(lake))))


@lru_cache(maxsize=8)
def _unreplayed(lake: Location, noted: tuple[Era, ...]) -> tuple[tuple[Change, int], ...]:
    by_path: dict[tuple[str, ...], tuple[Change, int]] = {}
    now = _kept(lake, noted[-1].version) if noted else None
    for era, following in reversed([*pairwise(noted)]):
        kept = _kept(lake, era.version)
        for change in changes(kept.texts, now.texts) if kept and now else ():
            if change.consequence is Consequence.FOR_ALL:
                by_path.setdefault(change.path, (change, following.since_batch))
    return tuple(by_path.values())


def describe_unreplayed(lake: LakeStore) -> list[str]:
    """A sentence for each of them."""
    return [
        f"{change} since bronze batch {since}: readings of earlier batches stay as they were read; `{REPLAY}` reads them anew"
        for change, since in unreplayed_changes(lake)
    ]


def pending_changes(lake: LakeStore) -> list[Change]:
    """Compare the conf that is written now with the one that the lake runs; none where the lake keeps no conf yet."""
    kept = running(lake)
    return changes(kept.texts, texts_of(lake.conf), [held.path for held in held_back(lake)]) if kept else []


def held_back(lake: LakeStore) -> list[HeldBack]:
    """List what the conf says that the lake cannot go on with."""
    conf, held = lake.conf, [*_other_pipeline(lake), *_moved_groups(lake)]
    for stream in conf.streams:
        held += changed_plan(lake, f"gold.{stream}")
    for name, flow in conf.flows.items():
        step = step_file(lake, name).read()
        if step and step.number and step.plan != (plan := plan_of_flow(flow)):
            held.append(HeldBack(("flows", name), f"flow {name} was {step.plan}, and is {plan} now"))
    return held


def refusal(lake: LakeStore, folder: Path, held: Sequence[HeldBack]) -> ConfError:
    """Say what the lake cannot go on with, where it is written, and the ways out."""
    lines = "\n".join(f"{line_of(folder, one.path)}{one.sentence}" for one in held)
    renamed = ", or give the flow another name, under which it begins anew" if any(one.path[0] == "flows" for one in held) else ""
    needs_lake = any(one.path == ("pipeline", "pipeline") for one in held)
    way_out = "name another `lake` in pipeline.yml" if needs_lake else f"build silver and gold under it, with `{lake.conf.command} replay`"
    return ConfError(f"{lines}\n  The lake cannot go on with that: put it back{renamed}, or {way_out}.")


def _other_pipeline(lake: LakeStore) -> list[HeldBack]:
    was, now = pipeline_of(lake), lake.conf.pipeline
    return [HeldBack(("pipeline", "pipeline"), f"pipeline was {was}, and is {now} now")] if was not in {None, now} else []


def _moved_groups(lake: LakeStore) -> list[HeldBack]:
    """Open windows of a group that leaves its stream would never close."""
    kept = running(lake)
    groups: Mapping[str, Mapping[str, str]] = settings_in(kept.texts).get("groups", {}) if kept else {}
    moved = {
        name: (was, group.stream)
        for name, group in lake.conf.groups.items()
        if (was := groups.get(name, {}).get("stream", group.stream)) != group.stream
    }
    return [
        HeldBack(("groups", name, "stream"), f"the stream of {name} was {was}, and is {now} now")
        for name, (was, now) in moved.items()
        if knows_group(lake, was, name) and not knows_group(lake, now, name)
    ]


@lru_cache(maxsize=32)
def difference_to_before(lake: Location, version: int) -> tuple[str, ...]:
    """Return what a conf changed of the one before it, in lines for people; nothing for the first."""
    before, kept = _kept(lake, version - 1), _kept(lake, version)
    return tuple(grouped(changes(before.texts, kept.texts))) if before and kept else ()


@lru_cache(maxsize=8)
def _kept(lake: Location, version: int) -> KeptConf | None:
    """A version never changes."""
    return next(iter(CONFS.rows(lake, [("version", "=", version)])), None)
